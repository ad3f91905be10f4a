//! `PETAL.*`: what no other module has. Filters that delete and count, filters that forget, and
//! filters put together and compared.

mod clear;
mod counts;
mod exists;
mod info;
mod reserve;
mod seen;
mod seencreate;
mod unite;

pub(super) use clear::Clear;
pub(super) use counts::{Count, Del};
pub(super) use exists::Exists;
pub(super) use info::Info;
pub(super) use reserve::{Reserve, creation};
pub(super) use seen::{Seen, SeenAt};
pub(super) use seencreate::SeenCreate;
pub(super) use unite::{Compare, Merge};

use crate::about::Arg;
use crate::ffi::Failure;

const KEY: Arg = Arg::key();
const ITEMS: Arg = Arg::item().or_more();
const PETAL: &std::ffi::CStr = c"petal";

const NOT_FOUND: Failure = Failure::Says("ERR not found");
