//! What filters of `CF.*` are told: items to add, to delete, and to make do with less memory.

use super::create::Wanted;
use super::{CUCKOO, ITEM, KEY, adding, filter_mut, room};
use crate::about::{About, Arg, ArgKind, CHANGED, PUT, REMOVED, key};
use crate::commands::keep_honest;
use crate::commands::words::{Reading, integer};
use crate::config::Settings;
use crate::ffi::{Call, Command, Failure, Opened, Word};
use crate::metrics;
use crate::object::{Deleting, Refusal};

/// Items whose memory is asked for ahead.
const AHEAD: usize = 8;

const INSERTED: &[Arg] = &[
    KEY,
    Arg::new(c"capacity", ArgKind::Integer).after(c"CAPACITY"),
    Arg::flag(c"nocreate", c"NOCREATE"),
    Arg::item().or_more().named(c"ITEMS"),
];

/// Whether items are added that seem to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    New,
}

pub(in crate::commands) struct Add;

impl Command for Add {
    const ABOUT: About = About {
        name: c"CF.ADD",
        summary: c"Adds an item to a filter once more; the filter is created if it is not there",
        complexity: c"O(1), and O(layers) where items were deleted",
        since: c"0.1.0",
        arity: 3,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: &[KEY, ITEM],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        add(call, Which::All)
    }
}

pub(in crate::commands) struct AddNx;

impl Command for AddNx {
    const ABOUT: About = About {
        name: c"CF.ADDNX",
        summary:
            c"Adds an item to a filter if it is not there; the filter is created if it is not \
            there",
        complexity: c"O(layers)",
        since: c"0.1.0",
        arity: 3,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: &[KEY, ITEM],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        add(call, Which::New)
    }
}

fn add(call: &Call<'_>, which: Which) -> Result<(), Failure> {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    let mut key = call.write(1);
    let created = create(call, &mut key, None)?;
    let filter = open(call, &mut key)?;
    let hash = filter.hash(call.word(2));
    let new = which == Which::All || !filter.contains(hash);
    if new {
        if let Err(refusal) = filter.add(hash, &|| room(call)) {
            keep_honest(call, &mut key, &refusal);
            return Err(adding(refusal));
        }
        if created {
            call.replicate(c"CF.ADD", &[Word::Same(1), Word::Same(2)]);
        } else {
            call.replicate_same();
        }
        call.notify(c"cuckoo.add", 1);
    }
    metrics::added(new.into(), 1);
    call.boolean(new);
    Ok(())
}

/// Makes the filter that is wanted, or what is usual, if there is nothing; whether it did.
#[inline]
fn create(call: &Call<'_>, key: &mut Opened<'_>, wanted: Option<Wanted>) -> Result<bool, Failure> {
    if key.object().known()?.is_some() {
        return Ok(false);
    }
    let wanted = wanted.unwrap_or_else(|| Wanted::usual(&Settings::now()));
    if let Err(failure) = wanted.make(call, key) {
        if call.is_replayed() {
            call.damage_key(key, &failure);
        }
        return Err(failure);
    }
    Ok(true)
}

/// The filter that items are to be added to, if it takes any.
#[inline]
fn open<'k>(call: &Call<'_>, key: &'k mut Opened<'_>) -> Result<&'k mut dyn Deleting, Failure> {
    let filter = filter_mut(key.object_mut())?.ok_or(Failure::WrongType)?;
    if filter.is_closed(Settings::now().cf_max_expansions) && !call.is_replayed() {
        return Err(Refusal::Layers.into());
    }
    Ok(filter)
}

pub(in crate::commands) struct Insert;

impl Command for Insert {
    const ABOUT: About = About {
        name: c"CF.INSERT",
        summary: c"Adds items to a filter once more, which is created as told if it is not there",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -4,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: INSERTED,
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        insert(call, Which::All)
    }
}

pub(in crate::commands) struct InsertNx;

impl Command for InsertNx {
    const ABOUT: About = About {
        name: c"CF.INSERTNX",
        summary: c"Adds items to a filter that are not there; it is created as told if it is not \
            there",
        complexity: c"O(items * layers)",
        since: c"0.1.0",
        arity: -4,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: INSERTED,
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        insert(call, Which::New)
    }
}

fn insert(call: &Call<'_>, which: Which) -> Result<(), Failure> {
    if call.len() < 4 {
        return Err(Failure::Arity);
    }
    let reading = Reading::of(call);
    let (mut capacity, mut nocreate, mut items) = (None, false, None);
    let mut at = 2;
    while at < call.len() {
        let option = reading.option(call.word(at), false);
        at += 1;
        if option == b"ITEMS" {
            items = Some(at);
            break;
        } else if option == b"NOCREATE" {
            nocreate = true;
        } else if option == b"CAPACITY" {
            capacity = Some(integer(call.word(at)).ok_or(Failure::Says("Bad capacity"))?);
            at += 1;
        } else {
            return Err(Failure::Says("Unknown argument received"));
        }
    }
    let items = items.filter(|items| *items < call.len()).ok_or(Failure::Arity)?;
    let mut wanted = Wanted::usual(&Settings::now());
    if let Some(capacity) = capacity {
        wanted = wanted.of(reading, capacity)?;
    }
    let mut key = call.write(1);
    if nocreate && key.object().known()?.is_none() {
        return Err(Failure::Says("ERR not found"));
    }
    let created = create(call, &mut key, Some(wanted))?;
    let filter = open(call, &mut key)?;
    let (outcomes, refused) = put_all(call, filter, items, which);
    let added = |at: &usize| outcomes.get(at - items) == Some(&Outcome::Added);
    let done: Vec<usize> = (items..call.len()).filter(added).collect();
    let full = outcomes.iter().filter(|outcome| **outcome == Outcome::Full).count();
    let first_refusal = if full > 0 { Some(&Refusal::Full) } else { refused.as_ref() };
    if let Some(refusal) = first_refusal {
        keep_honest(call, &mut key, refusal);
    }
    metrics::REJECTED_FULL.add(full as u64);
    metrics::added(done.len() as u64, (outcomes.len() - full) as u64);
    if !done.is_empty() {
        if done.len() == call.len() - items && !created {
            call.replicate_same();
        } else {
            let front = [Word::Same(1), Word::Bytes(b"NOCREATE"), Word::Bytes(b"ITEMS")];
            let done = done.into_iter().map(Word::Same);
            call.replicate(c"CF.INSERT", &front.into_iter().chain(done).collect::<Vec<_>>());
        }
        call.notify(c"cuckoo.add", 1);
    }
    if let (true, Some(refusal)) = (outcomes.is_empty(), &refused) {
        return Err(adding(refusal.clone()));
    }
    call.array(outcomes.len() + usize::from(refused.is_some()));
    let as_numbers = which == Which::New || !call.is_resp3();
    for outcome in outcomes {
        if as_numbers {
            call.integer(outcome as i64);
        } else {
            call.boolean(outcome == Outcome::Added);
        }
    }
    if let Some(refusal) = refused {
        call.failure(&adding(refusal));
    }
    Ok(())
}

/// What came of an item, as it is replied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Full = -1,
    There = 0,
    Added = 1,
}

/// Puts in the items from a word on, up to one that is refused for another reason than that the
/// filter is full.
fn put_all(
    call: &Call<'_>,
    filter: &mut dyn Deleting,
    items: usize,
    which: Which,
) -> (Vec<Outcome>, Option<Refusal>) {
    let hashes = filter.hashes(&mut call.words_from(items));
    let mut outcomes = Vec::with_capacity(hashes.len());
    for (at, hash) in hashes.iter().enumerate() {
        if let Some(later) = hashes.get(at + AHEAD) {
            filter.prefetch(*later);
        }
        if which == Which::New && filter.contains(*hash) {
            outcomes.push(Outcome::There);
            continue;
        }
        match filter.add(*hash, &|| room(call)) {
            Ok(()) => outcomes.push(Outcome::Added),
            Err(Refusal::Full) => outcomes.push(Outcome::Full),
            Err(refusal) => return (outcomes, Some(refusal)),
        }
    }
    (outcomes, None)
}

pub(in crate::commands) struct Del;

impl Command for Del {
    const ABOUT: About = About {
        name: c"CF.DEL",
        summary: c"Deletes an item from a filter once; whether it was (maybe) there. Delete only \
            what was added: a false positive takes another with it",
        complexity: c"O(layers)",
        since: c"0.1.0",
        arity: 3,
        flags: c"write fast",
        keys: &[key(REMOVED)],
        args: &[KEY, ITEM],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let mut key = call.write(1);
        let filter = filter_mut(key.object_mut())?.ok_or(Failure::Says("Not found"))?;
        let removed = filter.remove(filter.hash(call.word(2)));
        if removed {
            metrics::deleted(1);
            call.replicate_same();
            call.notify(c"cuckoo.del", 1);
        }
        call.boolean(removed);
        Ok(())
    }
}

pub(in crate::commands) struct Compact;

impl Command for Compact {
    const ABOUT: About = About {
        name: c"CF.COMPACT",
        summary: c"Moves items of newer layers to older ones where others were deleted, and gives \
            back the layers that are empty then",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: 2,
        flags: c"write",
        keys: &[key(PUT)],
        args: &[KEY],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 2 {
            return Err(Failure::Arity);
        }
        let mut key = call.write(1);
        let not_found = Failure::Says("Cuckoo filter was not found");
        let filter = filter_mut(key.object_mut())?.ok_or(not_found)?;
        filter.compact();
        // Items may have moved though no figure tells of it.
        call.replicate_same();
        call.ok();
        Ok(())
    }
}
