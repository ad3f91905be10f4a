//! `BF.*`: Bloom filters, compatible with RedisBloom.

mod add;
mod chunks;
mod query;
mod reserve;

pub(super) use add::{Add, Insert, Madd};
pub(super) use chunks::{LoadChunk, ScanDump};
pub(super) use query::{Card, Exists, Info, Mexists};
pub(super) use reserve::{Reserve, parse_capacity, parse_expansion, parse_fpr};

use crate::bindings::command_spec::{Arg, ArgKind};

const EXPANSION: Arg = Arg::new(c"expansion", ArgKind::Integer).option(c"EXPANSION");
const NONSCALING: Arg = Arg::flag(c"nonscaling", c"NONSCALING");
