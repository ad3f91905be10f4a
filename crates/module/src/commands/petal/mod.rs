//! `PETAL.*`: commands of petal that RedisBloom does not have, such as windows, counting filters,
//! unions and comparisons.

mod clear;
mod counting;
mod exists;
mod info;
mod merge;
mod reserve;
mod seen;
mod seen_create;

pub(super) use clear::Clear;
pub(super) use counting::{Count, Del};
pub(super) use exists::Exists;
pub(super) use info::Info;
pub(super) use merge::{Compare, Merge};
pub(super) use reserve::{Reserve, creation_command};
pub(super) use seen::{Seen, SeenAt};
pub(super) use seen_create::SeenCreate;
