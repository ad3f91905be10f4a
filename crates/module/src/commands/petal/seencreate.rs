//! `PETAL.SEENCREATE`: [`PETAL.SEEN`](super::Seen) that creates the filter if the key is missing.

use super::reserve::{TTL, Wanted};
use super::seen::seen;
use super::{KEY, PETAL};
use crate::about::{About, Arg, ArgKind, CHANGED, key};
use crate::commands::words::is;
use crate::ffi::{Call, Command, Failure};

/// The word of the first option.
const OPTIONS: usize = 4;

pub(in crate::commands) struct SeenCreate;

impl Command for SeenCreate {
    const ABOUT: About = About {
        name: c"PETAL.SEENCREATE",
        summary: c"PETAL.SEEN that creates the filter if the key is missing, with the rate, \
            capacity and options of PETAL.RESERVE. They have no effect on a key that exists",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -6,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: &[
            KEY,
            Arg::new(c"error_rate", ArgKind::Double),
            Arg::new(c"capacity", ArgKind::Integer),
            Arg::new(c"options", ArgKind::Text).or_nothing().or_more(),
            TTL,
            Arg::item().or_more().named(c"ITEMS"),
        ],
        categories: PETAL,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        let items = (OPTIONS..call.len()).find(|at| is(call.word(*at), "ITEMS"));
        let items = items.filter(|at| at + 1 < call.len()).ok_or(Failure::Arity)?;
        let wanted = Wanted::parse(call, 2..items)?;
        let mut key = call.write(1);
        if key.object().known()?.is_none() {
            if !wanted.plan.takes_items() {
                return Err(Failure::Says("ERR TYPE cuckoo is filled by CF.*: reserve it"));
            }
            wanted.create(call, &mut key)?;
        }
        drop(key);
        seen(call, items + 1, None, false)
    }
}
