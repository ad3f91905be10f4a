//! `BF.*`: Bloom filters, as RedisBloom's clients know them.

use petal::Answers;

use super::words::{integer, is, number};
use super::{Added, added, bloom, limit, replicate_creation, tick, transfer};
use crate::about::{ASKED, About, Arg, ArgKind, CHANGED, PUT, key};
use crate::compat;
use crate::config::{Layout, Settings};
use crate::ffi::{Call, Command, Failure};
use crate::object::{Object, Refusal};
use crate::plan::{Form, Plan};

const KEY: Arg = Arg::key();
const ITEM: Arg = Arg::item();
const ITEMS: Arg = Arg::item().or_more();
const EXPANSION: Arg = Arg::new(c"expansion", ArgKind::Integer).after(c"EXPANSION");
const NONSCALING: Arg = Arg::flag(c"nonscaling", c"NONSCALING");
const BLOOM: &std::ffi::CStr = c"bloom";

/// What is asked for when a filter is made.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    rate: f64,
    keys: u64,
    growth: Option<u64>,
}

impl Wanted {
    fn usual(settings: &Settings) -> Self {
        Self {
            rate: settings.bf_error_rate,
            keys: settings.bf_initial_size,
            growth: Some(settings.bf_expansion).filter(|growth| *growth > 0),
        }
    }

    fn plan(&self, call: &Call<'_>, settings: &Settings) -> Plan {
        let (growth, rate, keys) = (self.growth, self.rate, self.keys);
        // A master of petal's tells the seed of what is in petal's layout, by another command: this
        // is one of RedisBloom's.
        if settings.layout == Layout::RedisBloom || call.is_replayed() {
            return Plan { form: Form::RedisBloom { growth }, rate, keys, seed: [0; 16] };
        }
        Plan { form: Form::Bloom { growth }, rate, keys, seed: call.random_key() }
    }
}

pub(super) struct Reserve;

impl Command for Reserve {
    const ABOUT: About = About {
        name: c"BF.RESERVE",
        summary: c"Creates an empty Bloom filter",
        complexity: c"O(1)",
        since: c"0.1.0",
        arity: -4,
        flags: c"write deny-oom fast",
        keys: &[key(PUT)],
        args: &[
            KEY,
            Arg::new(c"error_rate", ArgKind::Double),
            Arg::new(c"capacity", ArgKind::Integer),
            EXPANSION,
            NONSCALING,
        ],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if !(4..=7).contains(&call.len()) {
            return Err(Failure::Arity);
        }
        let rate = rate(call.word(2))?;
        let keys = capacity(call.word(3))?;
        let (mut growth, mut nonscaling) = (None, false);
        let mut at = 4;
        while at < call.len() {
            let word = call.word(at);
            if is(word, "NONSCALING") {
                nonscaling = true;
            } else if is(word, "EXPANSION") {
                at += 1;
                if at == call.len() {
                    return Err(Failure::Says("ERR no expansion"));
                }
                growth = Some(expansion(call.word(at))?);
            } else {
                return Err(Failure::Says("ERR unknown argument received"));
            }
            at += 1;
        }
        if nonscaling && growth.is_some() {
            return Err(Failure::Says("Nonscaling filters cannot expand"));
        }
        let settings = Settings::now();
        let usual = Wanted::usual(&settings).growth;
        let growth = if nonscaling { None } else { growth.or(usual) };
        let mut key = call.write(1);
        if bloom(key.object())?.is_some() {
            return Err(Failure::Says("ERR item exists"));
        }
        let plan = Wanted { rate, keys, growth }.plan(call, &settings);
        key.set(plan.make(limit(call, settings.memory_limit))?)?;
        replicate_creation(call, &plan);
        call.notify(c"bloom.reserve", 1);
        call.ok();
        Ok(())
    }
}

pub(super) fn rate(word: &[u8]) -> Result<f64, Failure> {
    let rate = number(word).ok_or(Failure::Says("ERR bad error rate"))?;
    if rate > 0.0 && rate < 1.0 {
        Ok(rate)
    } else {
        Err(Failure::Says("ERR (0 < error rate range < 1) "))
    }
}

pub(super) fn capacity(word: &[u8]) -> Result<u64, Failure> {
    let keys = integer(word).ok_or(Failure::Says("ERR bad capacity"))?;
    u64::try_from(keys)
        .ok()
        .filter(|keys| *keys > 0)
        .ok_or(Failure::Says("ERR (capacity should be larger than 0)"))
}

pub(super) fn expansion(word: &[u8]) -> Result<u64, Failure> {
    let growth = integer(word).ok_or(Failure::Says("ERR bad expansion"))?;
    u64::try_from(growth)
        .ok()
        .filter(|growth| *growth > 0)
        .ok_or(Failure::Says("ERR expansion should be greater or equal to 1"))
}

pub(super) struct Add;

impl Command for Add {
    const ABOUT: About = About {
        name: c"BF.ADD",
        summary: c"Adds an item to a Bloom filter, which is created if it is not there",
        complexity: c"O(layers), of which there are few",
        since: c"0.1.0",
        arity: 3,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: &[KEY, ITEM],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        put(call, 2, None, Many::One)
    }
}

pub(super) struct Madd;

impl Command for Madd {
    const ABOUT: About = About {
        name: c"BF.MADD",
        summary: c"Adds items to a Bloom filter, which is created if it is not there",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -3,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: &[KEY, ITEMS],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        put(call, 2, None, Many::Several)
    }
}

/// Whether one answer is replied, or a row of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Many {
    One,
    Several,
}

/// Adds the items from a word on; creates what is wanted, or what is usual, if there is nothing.
fn put(call: &Call<'_>, items: usize, wanted: Option<Wanted>, many: Many) -> Result<(), Failure> {
    let settings = Settings::now();
    let mut key = call.write(1);
    let mut created = false;
    if bloom(key.object())?.is_none() {
        let wanted = wanted.unwrap_or_else(|| Wanted::usual(&settings));
        let plan = wanted.plan(call, &settings);
        key.set(plan.make(limit(call, settings.memory_limit))?)?;
        replicate_creation(call, &plan);
        call.notify(c"bloom.reserve", 1);
        created = true;
    }
    let Some(object) = bloom(key.object_mut())? else { return Err(Failure::WrongType) };
    let time = tick(call, object);
    if many == Many::One {
        let most = if object.may_grow() { limit(call, settings.memory_limit) } else { u64::MAX };
        let new = object.insert(call.word(items), most).map_err(adding)?;
        added(call, object, Added { items: items..items + 1, any_new: new, same: !created, time });
        call.boolean(new);
        return Ok(());
    }
    let most = limit(call, settings.memory_limit);
    let inserted = object.insert_all(call.words_from(items), most);
    let any_new = inserted.new.count_ones() > 0;
    let same = !created && inserted.refused.is_none() && wanted.is_none();
    let items = items..items + inserted.taken;
    added(call, object, Added { items, any_new, same, time });
    call.array(inserted.taken + usize::from(inserted.refused.is_some()));
    (0..inserted.taken).for_each(|at| call.boolean(inserted.new.get(at)));
    if let Some(refusal) = inserted.refused {
        call.failure(&adding(refusal));
    }
    Ok(())
}

/// Why an item was not added, in RedisBloom's words.
fn adding(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Memory => Failure::Says("ERR problem inserting into filter"),
        refusal => refusal.into(),
    }
}

pub(super) struct Insert;

impl Command for Insert {
    const ABOUT: About = About {
        name: c"BF.INSERT",
        summary: c"Adds items to a Bloom filter, which is created as told if it is not there",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -4,
        flags: c"write deny-oom fast",
        keys: &[key(CHANGED)],
        args: &[
            KEY,
            Arg::new(c"capacity", ArgKind::Integer).after(c"CAPACITY"),
            Arg::new(c"error", ArgKind::Double).after(c"ERROR"),
            EXPANSION,
            Arg::flag(c"nocreate", c"NOCREATE"),
            NONSCALING,
            Arg::item().or_more().named(c"ITEMS"),
        ],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 4 {
            return Err(Failure::Arity);
        }
        let settings = Settings::now();
        let mut wanted = Wanted::usual(&settings);
        let (mut nocreate, mut nonscaling) = (false, false);
        let (mut keys, mut rate, mut growth) = (None, None, None);
        let mut items = None;
        let mut at = 2;
        while at < call.len() {
            let word = call.word(at);
            let value = call.word(at + 1);
            at += 1;
            if is(word, "ITEMS") {
                items = Some(at);
                break;
            } else if is(word, "NOCREATE") {
                nocreate = true;
                continue;
            } else if is(word, "NONSCALING") {
                nonscaling = true;
                continue;
            }
            if is(word, "CAPACITY") {
                keys = Some(integer(value).ok_or(Failure::Says("Bad capacity"))?);
            } else if is(word, "ERROR") {
                rate = Some(number(value).ok_or(Failure::Says("Bad error rate"))?);
            } else if is(word, "EXPANSION") {
                growth = Some(integer(value).ok_or(Failure::Says("Bad expansion"))?);
            } else {
                return Err(Failure::Says("Unknown argument received"));
            }
            at += 1;
        }
        let items = items.filter(|items| *items < call.len()).ok_or(Failure::Arity)?;
        // Numbers that are none are told apart from numbers that will not do.
        let positive = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
        let bad = Failure::Says("Bad argument received");
        if let Some(keys) = keys {
            wanted.keys = positive(keys).ok_or(bad.clone())?;
        }
        if let Some(rate) = rate {
            wanted.rate =
                Some(rate).filter(|rate| 0.0 < *rate && *rate < 1.0).ok_or(bad.clone())?;
        }
        if let Some(growth) = growth {
            wanted.growth = Some(positive(growth).ok_or(bad)?);
        }
        if nonscaling {
            wanted.growth = None;
        }
        if nocreate && bloom(call.read(1).object())?.is_none() {
            return Err(Failure::Says("ERR not found"));
        }
        put(call, items, Some(wanted), Many::Several)
    }
}

pub(super) struct Exists;

impl Command for Exists {
    const ABOUT: About = About {
        name: c"BF.EXISTS",
        summary: c"Whether an item may be in a Bloom filter",
        complexity: c"O(layers), of which there are few",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, ITEM],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let found = match bloom(key.object())? {
            Some(object) => {
                let asked = object.ask(call.word(2));
                // Closing takes as long as fetching a line.
                drop(key);
                asked.found(call)
            }
            None => false,
        };
        call.boolean(found);
        Ok(())
    }
}

pub(super) struct Mexists;

impl Command for Mexists {
    const ABOUT: About = About {
        name: c"BF.MEXISTS",
        summary: c"Which items may be in a Bloom filter",
        complexity: c"O(items)",
        since: c"0.1.0",
        arity: -3,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY, ITEMS],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let mut found = Answers::new();
        let there = match bloom(key.object())? {
            Some(object) => {
                object.contains_all(call.words_from(2), call, &mut found);
                true
            }
            None => false,
        };
        call.array(call.len() - 2);
        (0..call.len() - 2).for_each(|at| call.boolean(there && found.get(at)));
        Ok(())
    }
}

pub(super) struct Card;

impl Command for Card {
    const ABOUT: About = About {
        name: c"BF.CARD",
        summary: c"How many items were added to a Bloom filter that were new to it",
        complexity: c"O(1)",
        since: c"0.1.0",
        arity: 2,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[KEY],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 2 {
            return Err(Failure::Arity);
        }
        let items = bloom(call.read(1).object())?.map_or(0, |object| object.figures().items);
        call.count(items);
        Ok(())
    }
}

pub(super) struct Info;

impl Command for Info {
    const ABOUT: About = About {
        name: c"BF.INFO",
        summary: c"What a Bloom filter is made for, and what it has become",
        complexity: c"O(1)",
        since: c"0.1.0",
        arity: -2,
        flags: c"readonly fast",
        keys: &[key(ASKED)],
        args: &[
            KEY,
            Arg::one_of(
                c"field",
                &[
                    Arg::flag(c"capacity", c"CAPACITY"),
                    Arg::flag(c"size", c"SIZE"),
                    Arg::flag(c"filters", c"FILTERS"),
                    Arg::flag(c"items", c"ITEMS"),
                    Arg::flag(c"expansion", c"EXPANSION"),
                ],
            )
            .or_nothing(),
        ],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if !(2..=3).contains(&call.len()) {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let object = bloom(key.object())?.ok_or(Failure::Says("ERR not found"))?;
        let figures = object.figures();
        let fields = [
            ("CAPACITY", c"Capacity", Some(figures.capacity)),
            ("SIZE", c"Size", Some(figures.size)),
            ("FILTERS", c"Number of filters", Some(figures.layers)),
            ("ITEMS", c"Number of items inserted", Some(figures.items)),
            ("EXPANSION", c"Expansion rate", figures.expansion),
        ];
        let value = |value: Option<u64>| match value {
            Some(number) => call.count(number),
            None => call.null(),
        };
        if call.len() == 2 {
            call.map(fields.len());
            for (_, name, number) in fields {
                call.simple(name);
                value(number);
            }
            return Ok(());
        }
        let asked = fields.into_iter().find(|(option, ..)| is(call.word(2), option));
        let (_, name, number) = asked.ok_or(Failure::Says("Invalid information value"))?;
        if call.is_resp3() {
            call.map(1);
            call.simple(name);
        } else {
            call.array(1);
        }
        value(number);
        Ok(())
    }
}

pub(super) struct ScanDump;

impl Command for ScanDump {
    const ABOUT: About = About {
        name: c"BF.SCANDUMP",
        summary: c"A Bloom filter in chunks, to be loaded elsewhere",
        complexity: c"O(bytes of a chunk)",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly",
        keys: &[key(ASKED)],
        args: &[KEY, Arg::new(c"iterator", ArgKind::Integer)],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let key = call.read(1);
        let object = bloom(key.object())?.ok_or(Failure::Says("ERR not found"))?;
        let number =
            integer(call.word(2)).ok_or(Failure::Says("Second argument must be numeric"))?;
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        if transfer::scan_dump(call, object, number) {
            return Ok(());
        }
        let Object::RedisBloom(filter) = object else { return Err(Failure::WrongType) };
        transfer::reply_chunk(call, number, filter.header(), |at| filter.chunk(at));
        Ok(())
    }
}

pub(super) struct LoadChunk;

impl Command for LoadChunk {
    const ABOUT: About = About {
        name: c"BF.LOADCHUNK",
        summary: c"Loads a chunk of a Bloom filter; the first one creates it",
        complexity: c"O(bytes of the chunk)",
        since: c"0.1.0",
        arity: 4,
        flags: c"write deny-oom",
        keys: &[key(PUT)],
        args: &[KEY, Arg::new(c"iterator", ArgKind::Integer), Arg::new(c"data", ArgKind::Text)],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 4 {
            return Err(Failure::Arity);
        }
        let number =
            integer(call.word(2)).ok_or(Failure::Says("ERR Second argument must be numeric"))?;
        let number = u64::try_from(number).unwrap_or(0);
        if let Some(loaded) = transfer::load_chunk(call, number) {
            return loaded;
        }
        let bad = Failure::Says("ERR received bad data");
        let mut key = call.write(1);
        match key.object_mut().known()? {
            None if number == 1 => {
                let limit = limit(call, Settings::now().memory_limit);
                let filter = compat::Bloom::from_header(call.word(3), limit);
                key.set(filter.map_err(loading)?.into())?;
            }
            Some(Object::RedisBloom(filter)) => {
                filter.put_chunk(number, call.word(3)).map_err(loading)?;
            }
            Some(_) => return Err(Failure::WrongType),
            None => return Err(bad),
        }
        call.replicate_same();
        call.ok();
        Ok(())
    }
}

/// Why a chunk was not loaded, in RedisBloom's words.
fn loading(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::NoRow => Failure::Says("ERR invalid offset - no link found"),
        Refusal::TooLong => Failure::Says("ERR invalid chunk - Too big for current filter"),
        Refusal::Malformed(_) => Failure::Says("ERR received bad data"),
        refusal => refusal.into(),
    }
}
