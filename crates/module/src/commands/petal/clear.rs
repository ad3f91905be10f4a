//! `PETAL.CLEAR`: removes all items of a filter.

use super::{KEY, NOT_FOUND, PETAL};
use crate::bindings::command_spec::{CommandSpec, RW_INSERT, first_key};
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
        since: c"0.1.0",
        arity: 2,
        flags: c"write",
        keys: &[first_key(RW_INSERT)],
        args: &[KEY],
        categories: PETAL,
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        call.expect_len(2)?;
        let mut key = call.open_write(1);
        let stored = key.filter_mut().complete()?.ok_or(NOT_FOUND)?;
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
