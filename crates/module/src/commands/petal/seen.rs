//! `PETAL.SEEN` and `PETAL.SEENAT`: query and insert in one step. If several clients send the same
//! item at the same time, exactly one of them gets the reply that it is new.

use crate::bindings::command_spec::{Arg, ArgKind, CommandSpec, RW_ACCESS_INSERT, first_key};
use crate::bindings::config::Settings;
use crate::bindings::{Call, Command, ReplayLoss, ReplyError};
use crate::commands::args::integer;
use crate::commands::{Inserts, advance_window, memory_limit};
use crate::error::FilterError;
use crate::filters::Clock;

pub(in crate::commands) struct Seen;

impl Command for Seen {
    const REPLAY_LOSS: ReplayLoss = ReplayLoss::Items;

    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.SEEN",
        summary:
            c"Adds items; returns whether each was (maybe) present before: 0 for new ones. The \
            key must exist, so that a lost or misspelt filter is an error: reserve it first",
        complexity: c"O(items)",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: &[Arg::KEY, Arg::ITEMS],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        seen(call, 2, None, true)
    }
}

pub(in crate::commands) struct SeenAt;

impl Command for SeenAt {
    const REPLAY_LOSS: ReplayLoss = ReplayLoss::Items;

    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.SEENAT",
        summary: c"PETAL.SEEN at a time in milliseconds since 1970, for windows by time: used for \
            replication, and to add past events. The clock of a window never goes back: for an \
            earlier time its own is used. It moves when a generation begins",
        complexity: c"O(items)",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: &[Arg::KEY, Arg::new(c"milliseconds", ArgKind::Integer), Arg::ITEMS],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let time = integer(call.arg(2)).and_then(|time| u64::try_from(time).ok());
        let time =
            time.ok_or(ReplyError::Static("ERR a time is a number of milliseconds since 1970"))?;
        // A time in the future would stop the window's clock. A master's clock may be ahead.
        if !call.is_replay() && time > call.now() {
            return Err(ReplyError::Static("ERR the time is in the future"));
        }
        seen(call, 3, Some(time), true)
    }
}

/// Inserts the items from an argument index on, at a given time or now. Replies which were present.
/// With `verbatim` the call can be replicated as it is.
pub(super) fn seen(
    call: &Call<'_>,
    first: usize,
    at_time: Option<u64>,
    verbatim: bool,
) -> Result<(), ReplyError> {
    let memory_limit = memory_limit(call, Settings::current().memory_limit);
    let mut key = call.open_write(1);
    let stored = key.filter_mut().complete()?.ok_or(ReplyError::NOT_FOUND)?;
    let (changed, time) = match at_time {
        // The replicated call has the time.
        Some(time) => (stored.advance(time), None),
        None => (false, advance_window(call, stored)),
    };
    let inserts = Inserts { first, memory_limit, verbatim, time, changed };
    if call.len() == first + 1 {
        let new = inserts.single(call, stored)?;
        call.booleans(1, |_| !new);
        return Ok(());
    }
    let outcome = inserts.all(call, stored);
    if outcome.error == Some(FilterError::Unsupported) {
        return Err(ReplyError::WrongType);
    }
    call.array(outcome.inserted + usize::from(outcome.error.is_some()));
    (0..outcome.inserted).for_each(|at| call.boolean(!outcome.new.get(at)));
    if let Some(error) = outcome.error {
        let error = error.into();
        if call.is_replay() {
            // A master replicates only items that its filter accepted.
            call.damage_key(&mut key, &error);
        }
        call.error(&error);
    }
    Ok(())
}
