//! `PETAL.EXISTS`: queries for which a missing key is an error.

use crate::bindings::command_spec::{Arg, CommandSpec, RO_ACCESS, first_key};
use crate::bindings::{Call, Command, ReplyError};
use crate::commands::query_all;

pub(in crate::commands) struct Exists;

impl Command for Exists {
    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.EXISTS",
        summary: c"Returns which items may be in a filter of any type. A missing key is an error; \
            BF.MEXISTS and CF.MEXISTS reply 0",
        complexity: c"O(items)",
        flags: c"readonly fast",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY, Arg::ITEMS],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let key = call.open_read(1);
        let stored = key.filter().complete()?.ok_or(ReplyError::NOT_FOUND)?;
        query_all(call, Some(stored));
        Ok(())
    }
}
