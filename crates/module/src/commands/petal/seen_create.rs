//! `PETAL.SEENCREATE`: [`PETAL.SEEN`](super::Seen) that creates the filter if the key is missing.

use super::reserve::{NewFilter, TTL};
use super::seen::seen;
use crate::bindings::command_spec::{Arg, ArgKind, CommandSpec, RW_ACCESS_INSERT, first_key};
use crate::bindings::{Call, Command, ReplyError};
use crate::commands::args::is_option;

/// Argument index of the first option.
const OPTIONS: usize = 4;

pub(in crate::commands) struct SeenCreate;

impl Command for SeenCreate {
    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.SEENCREATE",
        summary: c"PETAL.SEEN that creates the filter if the key is missing, with the error rate, \
            capacity and options of PETAL.RESERVE. They have no effect on an existing key",
        complexity: c"O(items)",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: &[
            Arg::KEY,
            Arg::new(c"error_rate", ArgKind::Double),
            Arg::new(c"capacity", ArgKind::Integer),
            Arg::new(c"options", ArgKind::Text).optional().multiple(),
            TTL,
            Arg::ITEMS.after(c"ITEMS"),
        ],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let items = (OPTIONS..call.len()).find(|at| is_option(call.arg(*at), "ITEMS"));
        let items = items.filter(|at| at + 1 < call.len()).ok_or(ReplyError::WrongArity)?;
        let new = NewFilter::parse(call, 2..items)?;
        let mut key = call.open_write(1);
        if key.filter().complete()?.is_none() {
            if !new.spec.accepts_bf_inserts() {
                return Err(ReplyError::Static(
                    "ERR items are added to a filter of TYPE cuckoo by CF.*: use PETAL.RESERVE",
                ));
            }
            new.create(call, &mut key)?;
        }
        drop(key);
        seen(call, items + 1, None, false)
    }
}
