//! `CF.*`: filters that delete and count, as RedisBloom's clients know them.

use petal::Answers;

use super::words::{integer, is};
use super::{limit, replicate_creation, transfer};
use crate::about::{ASKED, About, Arg, ArgKind, CHANGED, PUT, REMOVED, key};
use crate::compat::Cuckoo;
use crate::config::{Layout, Settings};
use crate::ffi::{Call, Command, Failure, Opened, Word};
use crate::object::{Object, Refusal};
use crate::persist::redis_chunk;
use crate::plan::{Buckets, Form, Plan};

const KEY: Arg = Arg::key();
const ITEM: Arg = Arg::item();
const CAPACITY: Arg = Arg::new(c"capacity", ArgKind::Integer);
const CUCKOO: &std::ffi::CStr = c"cuckoo";

const EXISTS: Failure = Failure::Says("ERR item exists");
const NOT_FOUND: Failure = Failure::Says("ERR not found");

// ---- Made ---------------------------------------------------------------------------------------

/// What is asked for when a filter is made.
struct Wanted {
    keys: i64,
    buckets: Buckets,
}

impl Wanted {
    fn usual(settings: &Settings) -> Self {
        let small = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        let buckets = Buckets {
            size: small(settings.cf_bucket_size),
            iterations: small(settings.cf_max_iterations),
            expansion: small(settings.cf_expansion),
        };
        Self { keys: settings.cf_initial_size.try_into().unwrap_or(i64::MAX), buckets }
    }

    /// RedisBloom wants two buckets.
    fn check(&self) -> Result<(), Failure> {
        if self.keys < 2 * i64::from(self.buckets.size) {
            return Err(Failure::Says("Capacity must be at least (BucketSize * 2)"));
        }
        Ok(())
    }

    /// Makes it, and tells replicas.
    fn make(
        &self,
        call: &Call<'_>,
        settings: &Settings,
        key: &mut Opened<'_>,
    ) -> Result<(), Failure> {
        let (form, seed) = match settings.layout {
            Layout::Petal => (Form::Row(self.buckets), call.random_key()),
            Layout::RedisBloom => (Form::RedisCuckoo(self.buckets), [0; 16]),
        };
        let keys = self.keys.unsigned_abs();
        let plan = Plan { form, rate: settings.cf_error_rate, keys, seed };
        key.set(plan.make(limit(call, settings.memory_limit))?)?;
        replicate_creation(call, &plan);
        call.notify(c"cuckoo.reserve", 1);
        Ok(())
    }
}

fn keys(word: &[u8]) -> Result<i64, Failure> {
    integer(word).ok_or(Failure::Says("Bad capacity"))
}

/// A number in a range, or one of two errors.
fn number(
    word: &[u8],
    range: std::ops::RangeInclusive<u16>,
    [unreadable, outside]: [&'static str; 2],
) -> Result<u16, Failure> {
    let number = integer(word).ok_or(Failure::Says(unreadable))?;
    let number = u16::try_from(number).ok().filter(|number| range.contains(number));
    number.ok_or(Failure::Says(outside))
}

pub(super) fn bucket_size(word: &[u8]) -> Result<u16, Failure> {
    let outside = "BUCKETSIZE: value must be an integer between 1 and 255, inclusive.";
    number(word, 1..=255, ["Couldn't parse BUCKETSIZE", outside])
}

pub(super) fn iterations(word: &[u8]) -> Result<u16, Failure> {
    let outside = "MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.";
    number(word, 1..=65535, ["Couldn't parse MAXITERATIONS", outside])
}

fn expansion(word: &[u8]) -> Result<u16, Failure> {
    let outside = "EXPANSION: value must be an integer between 0 and 32768, inclusive.";
    number(word, 0..=32768, ["Couldn't parse EXPANSION", outside])
}

pub(super) struct Reserve;

impl Command for Reserve {
    const ABOUT: About = About {
        name: c"CF.RESERVE",
        summary: c"Creates an empty filter that deletes",
        complexity: c"O(1)",
        since: c"0.1.0",
        arity: -3,
        flags: c"write deny-oom fast",
        keys: &[key(PUT)],
        args: &[
            KEY,
            CAPACITY,
            Arg::new(c"bucketsize", ArgKind::Integer).after(c"BUCKETSIZE"),
            Arg::new(c"maxiterations", ArgKind::Integer).after(c"MAXITERATIONS"),
            Arg::new(c"expansion", ArgKind::Integer).after(c"EXPANSION"),
        ],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        // Options are pairs.
        if call.len() < 3 || call.len().is_multiple_of(2) {
            return Err(Failure::Arity);
        }
        let settings = Settings::now();
        let usual = Wanted::usual(&settings).buckets;
        let keys = keys(call.word(2))?;
        let (mut size, mut moves, mut growth) = (None, None, None);
        for at in (3..call.len()).step_by(2) {
            let (word, value) = (call.word(at), call.word(at + 1));
            // Of two the first counts.
            if is(word, "BUCKETSIZE") {
                size = size.or(Some(bucket_size(value)?));
            } else if is(word, "MAXITERATIONS") {
                moves = moves.or(Some(iterations(value)?));
            } else if is(word, "EXPANSION") {
                growth = growth.or(Some(expansion(value)?));
            } else {
                return Err(Failure::Says("ERR unknown argument received"));
            }
        }
        let buckets = Buckets {
            size: size.unwrap_or(usual.size),
            iterations: moves.unwrap_or(usual.iterations),
            expansion: growth.unwrap_or(usual.expansion),
        };
        let wanted = Wanted { keys, buckets };
        wanted.check()?;
        let mut key = call.write(1);
        if key.object().cuckoo()?.is_some() {
            return Err(EXISTS);
        }
        wanted.make(call, &settings, &mut key)?;
        call.ok();
        Ok(())
    }
}

// ---- Put in -------------------------------------------------------------------------------------

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

pub(super) struct Add;

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

pub(super) struct AddNx;

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

pub(super) struct Insert;

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

pub(super) struct InsertNx;

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

// ---- Taken out ----------------------------------------------------------------------------------

pub(super) struct Del;

impl Command for Del {
    const ABOUT: About = About {
        name: c"CF.DEL",
        summary: c"Deletes an item once. Only for items that were added: others may take one along",
        complexity: c"O(layers), of which there are few",
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
        let object = key.object_mut().cuckoo()?.ok_or(Failure::Says("Not found"))?;
        let removed = object.remove_copy(call.word(2))?;
        if removed {
            call.replicate_same();
            call.notify(c"cuckoo.del", 1);
        }
        call.boolean(removed);
        Ok(())
    }
}

pub(super) struct Compact;

impl Command for Compact {
    const ABOUT: About = About {
        name: c"CF.COMPACT",
        summary: c"Moves items from the newest layers to older ones, and frees those it empties",
        complexity: c"O(items that are moved)",
        since: c"0.1.0",
        arity: 2,
        flags: c"write",
        keys: &[key(CHANGED)],
        args: &[KEY],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 2 {
            return Err(Failure::Arity);
        }
        let mut key = call.write(1);
        let missing = Failure::Says("Cuckoo filter was not found");
        key.object_mut().cuckoo()?.ok_or(missing)?.compact()?;
        call.replicate_same();
        call.ok();
        Ok(())
    }
}

// ---- Asked --------------------------------------------------------------------------------------

pub(super) struct Exists;

impl Command for Exists {
    const ABOUT: About = About {
        name: c"CF.EXISTS",
        summary: c"Whether an item may be in a filter that deletes",
        complexity: c"O(layers), of which there are few",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, ITEM],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let found = match key.object().cuckoo()? {
            Some(object) => object.contains(call.word(2), call),
            None => false,
        };
        call.boolean(found);
        Ok(())
    }
}

pub(super) struct Mexists;

impl Command for Mexists {
    const ABOUT: About = About {
        name: c"CF.MEXISTS",
        summary: c"Which items may be in a filter that deletes",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, Arg::item().or_more()],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let mut found = Answers::new();
        let object = key.object().cuckoo()?;
        if let Some(object) = object {
            object.contains_all(call.words_from(2), call, &mut found);
        }
        call.array(call.len() - 2);
        (0..call.len() - 2).for_each(|at| call.boolean(object.is_some() && found.get(at)));
        Ok(())
    }
}

pub(super) struct Count;

impl Command for Count {
    const ABOUT: About = About {
        name: c"CF.COUNT",
        summary: c"How often an item may be in a filter that deletes: never too low",
        complexity: c"O(layers), of which there are few",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, ITEM],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let copies = key.object().cuckoo()?.map(|object| object.copies(call.word(2)));
        call.count(copies.transpose()?.unwrap_or(0));
        Ok(())
    }
}

pub(super) struct Info;

impl Command for Info {
    const ABOUT: About = About {
        name: c"CF.INFO",
        summary: c"What a filter that deletes is made for, and what it has become",
        complexity: c"O(1)",
        since: c"0.1.0",
        arity: 2,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 2 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let object = key.object().cuckoo()?.ok_or(NOT_FOUND)?;
        let figures = object.cuckoo().unwrap_or_default();
        let fields = [
            (c"Size", figures.size),
            (c"Number of buckets", figures.buckets),
            (c"Number of filters", figures.filters),
            (c"Number of items inserted", figures.items),
            (c"Number of items deleted", figures.deletes),
            (c"Bucket size", figures.bucket_size),
            (c"Expansion rate", figures.expansion),
            (c"Max iterations", figures.iterations),
        ];
        call.map(fields.len());
        for (name, number) in fields {
            call.simple(name);
            call.count(number);
        }
        Ok(())
    }
}

// ---- As chunks ----------------------------------------------------------------------------------

const INVALID: Failure = Failure::Says("Invalid position");

pub(super) struct ScanDump;

impl Command for ScanDump {
    const ABOUT: About = About {
        name: c"CF.SCANDUMP",
        summary: c"A filter that deletes in chunks, to be loaded elsewhere",
        complexity: c"O(bytes of a chunk)",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly",
        keys: &[key(ASKED)],
        args: &[KEY, Arg::new(c"iterator", ArgKind::Integer)],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let number = integer(call.word(2)).and_then(|number| u64::try_from(number).ok());
        let number = number.ok_or(INVALID)?;
        let key = call.read(1);
        let object = key.object().cuckoo()?.ok_or(NOT_FOUND)?;
        if transfer::scan_dump(call, object, number) {
            return Ok(());
        }
        let Object::RedisCuckoo(filter) = object else { return Err(Failure::WrongType) };
        call.array(2);
        match (number, redis_chunk(object, number)) {
            (0, _) if filter.len() > 0 => {
                call.integer(1);
                call.bytes(&filter.header());
            }
            (1.., Some((next, chunk))) => {
                call.count(next);
                call.bytes(chunk);
            }
            // RedisBloom tells nothing of an empty filter.
            _ => {
                call.integer(0);
                call.null();
            }
        }
        Ok(())
    }
}

pub(super) struct LoadChunk;

impl Command for LoadChunk {
    const ABOUT: About = About {
        name: c"CF.LOADCHUNK",
        summary: c"Loads a chunk of a filter that deletes; the first one creates it",
        complexity: c"O(bytes of the chunk)",
        since: c"0.1.0",
        arity: 4,
        flags: c"write deny-oom",
        keys: &[key(PUT)],
        args: &[KEY, Arg::new(c"iterator", ArgKind::Integer), Arg::new(c"data", ArgKind::Text)],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 4 {
            return Err(Failure::Arity);
        }
        let number = integer(call.word(2)).filter(|number| *number != 0).ok_or(INVALID)?;
        let number = u64::try_from(number).unwrap_or(0);
        if let Some(loaded) = transfer::load_chunk(call, number) {
            return loaded;
        }
        let data = call.word(3);
        let mut key = call.write(1);
        let unloaded = Failure::Says("Couldn't load chunk!");
        match key.object_mut().cuckoo()? {
            None if number == 1 => {
                let limit = limit(call, Settings::now().memory_limit);
                let filter =
                    Cuckoo::from_header(data, limit).ok_or(Failure::Says("Invalid header"))?;
                let filter = filter.map_err(|refusal| match refusal {
                    Refusal::Limit => refusal.into(),
                    _ => Failure::Says("Couldn't create filter!"),
                })?;
                key.set(Object::RedisCuckoo(Box::new(filter)))?;
            }
            None => return Err(NOT_FOUND),
            Some(_) if number == 1 => return Err(EXISTS),
            Some(Object::RedisCuckoo(filter)) => {
                filter.put_chunk(number, data).map_err(|_| unloaded)?;
            }
            Some(_) => return Err(unloaded),
        }
        call.replicate_same();
        call.notify(c"cuckoo.loadchunk", 1);
        call.ok();
        Ok(())
    }
}
