//! `PETAL.DEL` and `PETAL.COUNT`, for counting and vector quotient filters.

use petal::BatchResults;

use crate::bindings::command_spec::{Arg, CommandSpec, RO_ACCESS, RW_ACCESS_DELETE, first_key};
use crate::bindings::{Call, Command, ReplyError, metrics};
use crate::error::FilterError;

pub(in crate::commands) struct Del;

impl Command for Del {
    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.DEL",
        summary:
            c"Deletes one copy of each item from a filter of TYPE counting or vector-quotient; \
            returns whether a copy of each was deleted: false if it is absent, or if it was added \
            more often than its counters count. Delete only items that were added: a false \
            positive deletes others",
        complexity: c"O(items)",
        flags: c"write fast",
        keys: &[first_key(RW_ACCESS_DELETE)],
        args: &[Arg::KEY, Arg::ITEMS],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let mut key = call.open_write(1);
        let mut removed = BatchResults::new();
        let exists = match key.filter_mut().complete()? {
            Some(stored) if stored.as_cuckoo().is_some() => {
                return Err(ReplyError::Static("ERR this filter is for CF.*: use CF.DEL"));
            }
            Some(stored) => {
                let result = stored.remove_all(call.args_from(2), &mut removed);
                result.map_err(|error| match error {
                    FilterError::Unsupported => ReplyError::Static(
                        "ERR this filter does not support deletion: reserve one of TYPE counting \
                         or vector-quotient, or use CF.*",
                    ),
                    error => error.into(),
                })?;
                true
            }
            None => false,
        };
        if exists && removed.count_ones() > 0 {
            metrics::deleted(removed.count_ones());
            call.replicate_verbatim();
            call.notify(c"petal.del", 1);
        }
        call.booleans(call.len() - 2, |at| exists && removed.get(at));
        Ok(())
    }
}

pub(in crate::commands) struct Count;

impl Command for Count {
    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.COUNT",
        summary:
            c"Returns the number of copies of each item in a filter of TYPE counting, up to 8, or \
            vector-quotient; an upper bound",
        complexity: c"O(items)",
        flags: c"readonly fast",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY, Arg::ITEMS],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let key = call.open_read(1);
        let counts = match key.filter().complete()? {
            Some(stored) if stored.as_cuckoo().is_some() => {
                return Err(ReplyError::Static("ERR this filter is for CF.*: use CF.COUNT"));
            }
            Some(stored) => stored.counts(call.args_from(2)).map_err(|error| match error {
                FilterError::Unsupported => ReplyError::Static(
                    "ERR this filter has no counters: reserve one of TYPE counting or \
                     vector-quotient",
                ),
                error => error.into(),
            })?,
            None => vec![0; call.len() - 2],
        };
        call.array(counts.len());
        counts.into_iter().for_each(|count| call.count(count));
        Ok(())
    }
}
