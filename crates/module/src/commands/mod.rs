//! The commands. Each is a type with a description and a function that parses, does and replies.

mod bf;
mod cf;
mod debug;
mod petal;
mod transfer;
mod words;

use std::ops::{Deref, Range};

use crate::ffi::{Call, Entry, Failure, Found, Opened, Word};
use crate::metrics;
use crate::object::{Clock, Kind, Object, Refusal};
use crate::plan::Plan;

/// All of them.
pub(crate) const ALL: &[Entry] = &[
    Entry::of::<bf::Reserve>(),
    Entry::of::<bf::Add>(),
    Entry::of::<bf::Madd>(),
    Entry::of::<bf::Insert>(),
    Entry::of::<bf::Exists>(),
    Entry::of::<bf::Mexists>(),
    Entry::of::<bf::Info>(),
    Entry::of::<bf::Card>(),
    Entry::of::<debug::Bloom>(),
    Entry::of::<bf::ScanDump>(),
    Entry::of::<bf::LoadChunk>(),
    Entry::of::<cf::Reserve>(),
    Entry::of::<cf::Add>(),
    Entry::of::<cf::AddNx>(),
    Entry::of::<cf::Insert>(),
    Entry::of::<cf::InsertNx>(),
    Entry::of::<cf::Exists>(),
    Entry::of::<cf::Mexists>(),
    Entry::of::<cf::Count>(),
    Entry::of::<cf::Del>(),
    Entry::of::<cf::Mdel>(),
    Entry::of::<cf::Compact>(),
    Entry::of::<cf::Info>(),
    Entry::of::<debug::Cuckoo>(),
    Entry::of::<cf::ScanDump>(),
    Entry::of::<cf::LoadChunk>(),
    Entry::of::<petal::Reserve>(),
    Entry::of::<petal::Seen>(),
    Entry::of::<petal::SeenAt>(),
    Entry::of::<petal::SeenCreate>(),
    Entry::of::<petal::Exists>(),
    Entry::of::<petal::Clear>(),
    Entry::of::<petal::Del>(),
    Entry::of::<petal::Count>(),
    Entry::of::<petal::Merge>(),
    Entry::of::<petal::Compare>(),
    Entry::of::<petal::Info>(),
    Entry::of::<transfer::Import>(),
    Entry::of::<transfer::Export>(),
    Entry::of::<transfer::LoadChunk>(),
];

/// What a key holds, if it is not for `CF.*`.
#[inline]
fn bloom<T: Deref<Target = Object>>(found: Found<T>) -> Result<Option<T>, Failure> {
    match found.known()? {
        Some(object) if object.deleting().is_some() => Err(Failure::WrongType),
        found => Ok(found),
    }
}

/// Bytes that a command may make a filter take: what a master or an append-only file says has been
/// accepted before.
fn limit(call: &Call<'_>, limit: u64) -> u64 {
    if call.is_replayed() { u64::MAX } else { limit }
}

/// Tells replicas of a new filter all that they need to make the same.
fn replicate_creation(call: &Call<'_>, plan: &Plan) {
    let (command, words) = petal::creation(plan);
    let words: Vec<_> = [Word::Same(1)]
        .into_iter()
        .chain(words.iter().map(|word| Word::Bytes(word.as_bytes())))
        .collect();
    call.replicate(command, &words);
}

/// Tells a window of time what time it is, before items are put in; the time, if it matters.
///
/// Replicas and the append-only file are told of such times as they come, by `PETAL.SEENAT`: for
/// them it is the time of the last one.
fn tick(call: &Call<'_>, object: &mut Object) -> Option<u64> {
    if !object.has_clock() || call.is_replayed() {
        return None;
    }
    let now = call.now();
    object.advance(now).then_some(now)
}

/// Items that were put into the filter of the first word.
struct Added {
    /// Where they stand in the call.
    items: Range<usize>,
    /// Whether any was new.
    any_new: bool,
    /// Whether they are all that the call names, and it tells nothing else.
    same: bool,
    /// The time, if it has mattered.
    time: Option<u64>,
}

/// Tells replicas and watchers of items that were put in, if they changed the filter.
fn added(call: &Call<'_>, object: &Object, added: Added) {
    let Added { items, any_new, same, time } = added;
    if items.is_empty() || !(any_new || time.is_some() || object.takes_again()) {
        return;
    }
    let key = [Word::Same(1)].into_iter();
    if let Some(time) = time {
        let time = time.to_string();
        let time = [Word::Bytes(time.as_bytes())].into_iter();
        let words: Vec<_> = key.chain(time).chain(items.map(Word::Same)).collect();
        call.replicate(c"PETAL.SEENAT", &words);
    } else if same && !(object.kind() == Kind::RedisBloom && call.is_own()) {
        call.replicate_same();
    } else {
        // RedisBloom knows no commands of petal's.
        call.replicate(c"BF.MADD", &key.chain(items.map(Word::Same)).collect::<Vec<_>>());
    }
    if any_new {
        call.notify(c"bloom.add", 1);
    }
}

/// Keeps the filter of a key from answering without an item that a master or an append-only file
/// says it has, and that was refused here.
fn keep_honest(call: &Call<'_>, key: &mut Opened<'_>, refusal: &Refusal) {
    let is_expected = match refusal {
        Refusal::Type => true,
        // RedisBloom also sends items that its own filter was too full for. petal sends only items
        // that its filter took.
        Refusal::Full | Refusal::Layers => {
            matches!(key.object(), Found::Object(Object::RedisBloom(_) | Object::RedisCuckoo(_)))
        }
        _ => false,
    };
    if call.is_replayed() && !is_expected {
        call.damage_key(key, &refusal.clone().into());
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        count_rejection(&refusal);
        match refusal {
            Refusal::Full => Self::Says("ERR non scaling filter is full"),
            Refusal::Layers => Self::Says("Maximum expansions reached"),
            Refusal::Limit => Self::Says("ERR operation exceeds bloom object memory limit"),
            Refusal::Memory | Refusal::TooLarge => {
                Self::Says("ERR Insufficient memory to create filter")
            }
            Refusal::LargeLayer => Self::Says(
                "ERR a layer of a cuckoo filter in RedisBloom's layout takes at most 4294967296 \
                 bytes: reserve fewer items, or use petal's layout",
            ),
            Refusal::Rate => Self::Says(
                "ERR hashes of 64 bits cannot keep this error rate for so many items: choose a \
                 higher rate or a smaller capacity",
            ),
            Refusal::Type => Self::WrongType,
            Refusal::Malformed(_) => Self::Says("ERR received bad data"),
            Refusal::NoRow => Self::Says("ERR invalid offset - no link found"),
            Refusal::TooLong => Self::Says("ERR invalid chunk - Too big for current filter"),
            Refusal::Other(what) => Self::Told(format!("ERR {what}")),
        }
    }
}

/// Counts a refusal for `INFO`, if it is for lack of room.
fn count_rejection(refusal: &Refusal) {
    match refusal {
        Refusal::Full | Refusal::Layers => metrics::REJECTED_FULL.add(1),
        Refusal::Limit => metrics::REJECTED_LIMIT.add(1),
        Refusal::Memory | Refusal::TooLarge => metrics::REJECTED_MEMORY.add(1),
        _ => {}
    }
}
