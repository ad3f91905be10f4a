//! `PETAL.SEEN`: whether items were there, and now they are. In one step, so that of several
//! clients that ask about the same item at once one alone is told that it is new.

use super::{ITEMS, KEY, NOT_FOUND, PETAL};
use crate::about::{About, Arg, ArgKind, CHANGED, key};
use crate::commands::words::integer;
use crate::commands::{Added, added, limit, tick};
use crate::config::Settings;
use crate::ffi::{Call, Command, Failure, Loses};
use crate::metrics;
use crate::object::{Clock, Refusal};

pub(in crate::commands) struct Seen;

impl Command for Seen {
    const LOSES: Loses = Loses::Items;

    const ABOUT: About = About {
        name: c"PETAL.SEEN",
        summary: c"Whether each item was (maybe) there before: 0 for new ones. All are there \
            after. The key must exist, so that a filter that was lost or misspelt is noticed, \
            and not replaced by one of another kind: reserve it first",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -3,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: &[KEY, ITEMS],
        categories: PETAL,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        seen(call, 2, None, true)
    }
}

pub(in crate::commands) struct SeenAt;

impl Command for SeenAt {
    const LOSES: Loses = Loses::Items;

    const ABOUT: About = About {
        name: c"PETAL.SEENAT",
        summary: c"PETAL.SEEN at a time, in milliseconds since 1970, for windows of time: how \
            replicas are told, and how what happened elsewhere is put in. A window's clock never \
            goes back: of a time before its own it takes its own. It moves when a generation \
            begins",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -4,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: &[KEY, Arg::new(c"milliseconds", ArgKind::Integer), ITEMS],
        categories: PETAL,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 4 {
            return Err(Failure::Arity);
        }
        let time = integer(call.word(2)).and_then(|time| u64::try_from(time).ok());
        let time = time.ok_or(Failure::Says("ERR a time is milliseconds since 1970"))?;
        // It would stop the window's clock. A master's clock may be ahead.
        if !call.is_replayed() && time > call.now() {
            return Err(Failure::Says("ERR this time is yet to come"));
        }
        seen(call, 3, Some(time), true)
    }
}

/// Puts in the items from a word on, at a time that the call tells, or now; replies which were
/// there. `same`: replicas execute the call as it is.
pub(super) fn seen(
    call: &Call<'_>,
    first: usize,
    told: Option<u64>,
    same: bool,
) -> Result<(), Failure> {
    let limit = limit(call, Settings::now().memory_limit);
    let mut key = call.write(1);
    let object = key.object_mut().known()?.ok_or(NOT_FOUND)?;
    let time = match told {
        // The call itself tells replicas.
        Some(time) => {
            object.advance(time);
            None
        }
        None => tick(call, object),
    };
    if call.len() == first + 1 {
        let new = object.insert(call.word(first), limit)?;
        metrics::added(u64::from(new), 1);
        added(call, object, Added { items: first..first + 1, any_new: new, same, time });
        call.array(1);
        call.boolean(!new);
        return Ok(());
    }
    let inserted = object.insert_all(call.words_from(first), limit);
    if inserted.refused == Some(Refusal::Type) {
        return Err(Failure::WrongType);
    }
    metrics::added(inserted.new.count_ones(), inserted.taken as u64);
    let refused = inserted.refused.is_some();
    let same = same && !refused;
    let (items, any_new) = (first..first + inserted.taken, inserted.new.count_ones() > 0);
    added(call, object, Added { items, any_new, same, time });
    call.array(inserted.taken + usize::from(refused));
    (0..inserted.taken).for_each(|at| call.boolean(!inserted.new.get(at)));
    if let Some(refusal) = inserted.refused {
        let failure = refusal.into();
        if call.is_replayed() {
            // A master sends only items that its filter took.
            call.damage_key(&mut key, &failure);
        }
        call.failure(&failure);
    }
    Ok(())
}
