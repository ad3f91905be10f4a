//! `BF.*`: Bloom filters, as RedisBloom's clients know them.

mod add;
mod ask;
mod chunks;
mod create;

pub(super) use add::{Add, Insert, Madd};
pub(super) use ask::{Card, Exists, Info, Mexists};
pub(super) use chunks::{LoadChunk, ScanDump};
pub(super) use create::{Reserve, capacity, expansion, rate};

use crate::about::{Arg, ArgKind};

const KEY: Arg = Arg::key();
const ITEM: Arg = Arg::item();
const ITEMS: Arg = Arg::item().or_more();
const EXPANSION: Arg = Arg::new(c"expansion", ArgKind::Integer).after(c"EXPANSION");
const NONSCALING: Arg = Arg::flag(c"nonscaling", c"NONSCALING");
const BLOOM: &std::ffi::CStr = c"bloom";
