//! For programs that embed filters in a process of their own, such as a database server.
//!
//! * [`SerializedView`] and [`StreamDecoder`] send a filter to another process in pieces of any
//!   size, without waiting for the whole.
//! * [`RemoteFilter`] asks a filter in a file of a web server, without reading all of it.
//! * [`use_global_allocator`] and [`Relocator`] keep the memory of filters under the control of the
//!   process's allocator, which counts it and defragments it.

pub use crate::any::StreamDecoder;
pub use crate::format::serialized::SerializedView;
pub use crate::remote::{RangeSource, RemoteFilter};
pub use crate::store::{Relocator, use_global_allocator};

// For the crates of this repository; no promise is made about them.
#[doc(hidden)]
pub use crate::cascade::{MemberCollector, OtherCollector};
#[doc(hidden)]
pub use crate::filter::layout::Layout;
#[doc(hidden)]
pub use crate::format::read::metadata_of_file;
#[cfg(feature = "std")]
#[doc(hidden)]
pub use crate::format::write::replace_file;
#[doc(hidden)]
pub use crate::kernel::prefetch;
#[doc(hidden)]
pub use crate::layout::{BlockedLayout, ClassicLayout};
#[doc(hidden)]
pub use crate::quotient::QuotientLayout;
#[doc(hidden)]
pub use crate::static_filter::{HashRanges, HashStore, StaticCollector};
#[doc(hidden)]
pub use crate::store::Words;
#[doc(hidden)]
pub use crate::vector_quotient::VectorQuotientLayout;
