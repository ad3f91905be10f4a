//! Filters of other crates for the filter benchmarks, and the memory speed of the machine.
//!
//! Each rival is measured in its best configuration: with its fastest hash and its default one, at petal's rate as far
//! as it can be chosen, in memory that it allocates itself. Only this crate depends on the rivals.
//!
//! | module | purpose |
//! |---|---|
//! | [`rivals`] | fastbloom, sbbf-rs-safe, bloomfilter, growable-bloom-filter, qfilter, xorf |
//! | [`family`] | rivals that delete, count, grow, or are built at once: growable-bloom-filter, qfilter, cuckoofilter, scalable_cuckoo_filter, xorf, pleat |
//! | [`known`] | sets of known keys, built once: petal's static filters, poppy, xorf, clubcard |
//! | `lab`, a feature | ways to remember which URLs were seen: databases, sets, bitmaps, filters |
//! | [`measured_memory`] | the memory of a rival, measured at the allocator |
//! | [`process`], [`rows`] | memory and CPU time of a process; measured figures as rows, in processes of their own |
//! | [`random_reads`] | the speed of random reads of cache lines, the limit of every filter out of cache |

pub mod family;
pub mod known;
#[cfg(feature = "lab")]
pub mod lab;
pub mod measured_memory;
pub mod process;
pub mod random_reads;
pub mod rivals;
pub mod rows;
