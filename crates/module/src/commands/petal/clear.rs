//! `PETAL.CLEAR`: removes all items of a filter.

use crate::bindings::command_spec::{Arg, CommandSpec, RW_INSERT, first_key};
use crate::bindings::{Call, Command, ReplyError};
use crate::error::FilterError;

pub(in crate::commands) struct Clear;

impl Command for Clear {
    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.CLEAR",
        summary:
            c"Removes all items from a filter. Its type, capacity, error rate, seed and time to \
            live are unchanged; layers after the first are freed",
        complexity: c"O(bytes of the first layer)",
        flags: c"write",
        keys: &[first_key(RW_INSERT)],
        args: &[Arg::KEY],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let mut key = call.open_write(1);
        let stored = key.filter_mut().complete()?.ok_or(ReplyError::NOT_FOUND)?;
        let changed = stored.clear().map_err(|error| match error {
            FilterError::Unsupported => {
                ReplyError::Static("ERR a filter of this type cannot be cleared: delete the key")
            }
            error => error.into(),
        })?;
        if changed {
            call.replicate_verbatim();
            call.notify(c"petal.clear", 1);
        }
        call.ok();
        Ok(())
    }
}
