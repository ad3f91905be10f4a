//! Other people's filters as contestants, and the machine's own limit.
//!
//! Each rival in the configuration that serves it best: its fastest hash beside its default one, the same rate as petal
//! as far as it can be chosen, plain memory as its own allocation gives it. Their dependencies are this crate's alone.
//!
//! | module | what it is |
//! |---|---|
//! | [`rivals`] | fastbloom, sbbf-rs-safe, bloomfilter, growable-bloom-filter, qfilter, xorf |
//! | [`family`] | rivals that delete, count, grow, or are made at once: growable-bloom-filter, qfilter, cuckoofilter, scalable_cuckoo_filter, xorf, pleat |
//! | [`weighed`] | the memory of a rival, by the allocator's account |
//! | [`line_reads`] | how fast this machine reads lines at random, which no filter out of cache can beat |

pub mod family;
pub mod line_reads;
pub mod rivals;
pub mod weighed;
