//! `CF.ADD`, `CF.ADDNX`, `CF.INSERT` and `CF.INSERTNX`.

use super::{CAPACITY, CUCKOO, ITEM, KEY, NOT_FOUND, Wanted, keys};
use crate::about::{About, Arg, CHANGED, key};
use crate::commands::limit;
use crate::commands::words::is;
use crate::config::Settings;
use crate::ffi::{Call, Command, Failure, Word};
use crate::object::Refusal;

/// What becomes of items that seem to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    Absent,
}

/// Why an item was not put in, in RedisBloom's words.
fn adding(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Full => Failure::Says("Filter is full"),
        Refusal::Memory => Failure::Says("ERR problem inserting into filter"),
        refusal => refusal.into(),
    }
}

/// Layers that a filter may have: replicas and append-only files are believed.
fn layers(call: &Call<'_>, settings: &Settings) -> u64 {
    limit(call, settings.cf_max_expansions)
}

fn add(call: &Call<'_>, when: When) -> Result<(), Failure> {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    let settings = Settings::now();
    let mut key = call.write(1);
    let absent = key.object().cuckoo()?.is_none();
    if absent {
        Wanted::usual(&settings).make(call, &settings, &mut key)?;
    }
    let Some(object) = key.object_mut().cuckoo()? else { return Err(Failure::WrongType) };
    let (layers, limit) = (layers(call, &settings), limit(call, settings.memory_limit));
    let new = object.add_copy(call.word(2), when == When::Absent, layers, limit).map_err(adding)?;
    if new {
        if absent {
            call.replicate(c"CF.ADD", &[Word::Same(1), Word::Same(2)]);
        } else {
            call.replicate_same();
        }
        call.notify(c"cuckoo.add", 1);
    }
    call.boolean(new);
    Ok(())
}

pub(in crate::commands) struct Add;

impl Command for Add {
    const ABOUT: About = About {
        name: c"CF.ADD",
        summary: c"Adds an item once more to a filter that deletes, which is created if need be",
        complexity: c"O(layers), of which there are few",
        since: c"0.1.0",
        arity: 3,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: &[KEY, ITEM],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        add(call, When::Always)
    }
}

pub(in crate::commands) struct AddNx;

impl Command for AddNx {
    const ABOUT: About = About {
        name: c"CF.ADDNX",
        summary: c"Adds an item to a filter that deletes if it seems not to be there",
        ..Add::ABOUT
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        add(call, When::Absent)
    }
}

/// What has become of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Added,
    There,
    Full,
}

fn insert(call: &Call<'_>, when: When) -> Result<(), Failure> {
    if call.len() < 4 {
        return Err(Failure::Arity);
    }
    let settings = Settings::now();
    let mut wanted = Wanted::usual(&settings);
    let (mut nocreate, mut items, mut at) = (false, None, 2);
    while at < call.len() {
        let word = call.word(at);
        at += 1;
        if is(word, "ITEMS") {
            items = Some(at);
            break;
        } else if is(word, "NOCREATE") {
            nocreate = true;
        } else if is(word, "CAPACITY") {
            wanted.keys = keys(call.word(at))?;
            at += 1;
        } else {
            return Err(Failure::Says("Unknown argument received"));
        }
    }
    let items = items.filter(|items| *items < call.len()).ok_or(Failure::Arity)?;
    wanted.check()?;
    let mut key = call.write(1);
    let absent = key.object().cuckoo()?.is_none();
    if absent && nocreate {
        return Err(NOT_FOUND);
    }
    if absent {
        wanted.make(call, &settings, &mut key)?;
    }
    let Some(object) = key.object_mut().cuckoo()? else { return Err(Failure::WrongType) };
    let (layers, limit) = (layers(call, &settings), limit(call, settings.memory_limit));
    let (mut outcomes, mut refused) = (Vec::with_capacity(call.len() - items), None);
    for item in call.words_from(items) {
        let outcome = match object.add_copy(item, when == When::Absent, layers, limit) {
            Ok(true) => Outcome::Added,
            Ok(false) => Outcome::There,
            Err(Refusal::Type) => return Err(Failure::WrongType),
            Err(refusal) => {
                refused = refused.or(Some(refusal));
                Outcome::Full
            }
        };
        outcomes.push(outcome);
    }
    let added = outcomes.iter().filter(|outcome| **outcome == Outcome::Added).count();
    if added > 0 {
        if added == outcomes.len() && !absent && items == 3 {
            call.replicate_same();
        } else {
            let put = |(at, _): (usize, _)| Word::Same(items + at);
            let put = outcomes.iter().enumerate().filter(|(_, o)| **o == Outcome::Added).map(put);
            let front = [Word::Same(1), Word::Bytes(b"NOCREATE"), Word::Bytes(b"ITEMS")];
            call.replicate(c"CF.INSERT", &front.into_iter().chain(put).collect::<Vec<_>>());
        }
        call.notify(c"cuckoo.add", 1);
    }
    // What does not grow says so item by item; other refusals are errors if nothing was done.
    let full = refused == Some(Refusal::Full);
    if let Some(refusal) = refused.filter(|_| added == 0 && !full) {
        return Err(adding(refusal));
    }
    call.array(outcomes.len());
    for outcome in outcomes {
        match outcome {
            // RedisBloom's own: INSERTNX has three answers.
            _ if when == When::Always && call.is_resp3() => call.boolean(outcome == Outcome::Added),
            Outcome::Added => call.integer(1),
            Outcome::There => call.integer(0),
            Outcome::Full => call.integer(-1),
        }
    }
    Ok(())
}

pub(in crate::commands) struct Insert;

impl Command for Insert {
    const ABOUT: About = About {
        name: c"CF.INSERT",
        summary: c"Adds items once more to a filter that deletes, created as told if need be",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -4,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: &[
            KEY,
            CAPACITY.after(c"CAPACITY"),
            Arg::flag(c"nocreate", c"NOCREATE"),
            Arg::item().or_more().named(c"ITEMS"),
        ],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        insert(call, When::Always)
    }
}

pub(in crate::commands) struct InsertNx;

impl Command for InsertNx {
    const ABOUT: About = About {
        name: c"CF.INSERTNX",
        summary: c"Adds those items to a filter that deletes that seem not to be there",
        ..Insert::ABOUT
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        insert(call, When::Absent)
    }
}
