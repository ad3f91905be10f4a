//! `BF.ADD`, `BF.MADD` and `BF.INSERT`.

use petal::HashSpec;

use super::create::Wanted;
use super::{BLOOM, EXPANSION, ITEM, ITEMS, KEY, NONSCALING};
use crate::about::{About, Arg, ArgKind, CHANGED, key};
use crate::commands::words::{Reading, integer};
use crate::commands::{
    Added, added, bloom, count_rejection, keep_honest, limit, replicate_creation, tick,
};
use crate::config::Settings;
use crate::ffi::{Call, Command, Failure};
use crate::metrics;
use crate::object::Refusal;

pub(in crate::commands) struct Add;

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

pub(in crate::commands) struct Madd;

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
        let limit = limit(call, settings.memory_limit);
        let made = plan.make(limit).inspect_err(|refusal| keep_honest(call, &mut key, refusal))?;
        if wanted.scale_to.is_some_and(|keys| made.capacity_within(limit) < keys) {
            return Err(Failure::Says(
                "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit",
            ));
        }
        key.set(made)?;
        replicate_creation(call, &plan);
        call.notify(c"bloom.reserve", 1);
        created = true;
    }
    let Some(object) = bloom(key.object_mut())? else { return Err(Failure::WrongType) };
    let time = tick(call, object);
    if many == Many::One {
        let most = if object.may_grow() { limit(call, settings.memory_limit) } else { u64::MAX };
        let new = match object.insert(call.word(items), most) {
            Ok(new) => new,
            Err(refusal) => {
                keep_honest(call, &mut key, &refusal);
                return Err(adding(refusal));
            }
        };
        metrics::added(u64::from(new), 1);
        added(call, object, Added { items: items..items + 1, any_new: new, same: !created, time });
        call.boolean(new);
        return Ok(());
    }
    let most = limit(call, settings.memory_limit);
    let inserted = object.insert_all(call.words_from(items), most);
    let new = inserted.new.count_ones();
    metrics::added(new, inserted.taken as u64);
    let any_new = new > 0;
    let same = !created && inserted.refused.is_none() && wanted.is_none();
    let items = items..items + inserted.taken;
    added(call, object, Added { items, any_new, same, time });
    call.array(inserted.taken + usize::from(inserted.refused.is_some()));
    (0..inserted.taken).for_each(|at| call.boolean(inserted.new.get(at)));
    if let Some(refusal) = inserted.refused {
        keep_honest(call, &mut key, &refusal);
        call.failure(&adding(refusal));
    }
    Ok(())
}

/// Why an item was not added, in RedisBloom's words.
fn adding(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Memory => {
            count_rejection(&refusal);
            Failure::Says("ERR problem inserting into filter")
        }
        Refusal::Type => Failure::Says(
            "ERR a filter that is made once of all its items takes no more: build it again and \
             import it",
        ),
        refusal => refusal.into(),
    }
}

pub(in crate::commands) struct Insert;

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
            Arg::new(c"tightening_ratio", ArgKind::Double).after(c"TIGHTENING"),
            Arg::new(c"seed", ArgKind::Text).after(c"SEED"),
            Arg::new(c"scale_to", ArgKind::Integer).after(c"VALIDATESCALETO"),
            Arg::item().or_more().named(c"ITEMS"),
        ],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 4 {
            return Err(Failure::Arity);
        }
        let (reading, settings) = (Reading::of(call), Settings::now());
        let mut wanted = Wanted::usual(&settings);
        let (mut nocreate, mut nonscaling) = (false, false);
        let (mut keys, mut rate, mut growth) = (None, None, None);
        let mut items = None;
        let mut at = 2;
        while at < call.len() {
            let option = reading.option(call.word(at), true);
            let value = call.word(at + 1);
            at += 1;
            if option == b"ITEMS" {
                items = Some(at);
                break;
            } else if option == b"NOCREATE" {
                nocreate = true;
                continue;
            } else if option == b"NONSCALING" {
                nonscaling = true;
                continue;
            }
            if option == b"CAPACITY" {
                keys = Some(integer(value).ok_or(Failure::Says("Bad capacity"))?);
            } else if option == b"ERROR" {
                rate = Some(reading.number(value).ok_or(Failure::Says("Bad error rate"))?);
            } else if option == b"EXPANSION" {
                growth = Some(integer(value).ok_or(Failure::Says("Bad expansion"))?);
            } else if option == b"TIGHTENING" {
                // The parts of the rate that layers have are petal's to choose.
                let ratio =
                    reading.number(value).ok_or(Failure::Says("ERR bad tightening ratio"))?;
                if !(ratio > 0.0 && ratio < 1.0) {
                    return Err(Failure::Says("ERR (0 < tightening ratio range < 1)"));
                }
            } else if option == b"SEED" {
                wanted.seed = Some(folded(value).ok_or(Failure::Says("ERR invalid seed"))?);
            } else if option == b"VALIDATESCALETO" {
                let keys = integer(value).and_then(|keys| u64::try_from(keys).ok());
                let bad = Failure::Says("ERR bad capacity");
                wanted.scale_to = Some(keys.filter(|keys| *keys > 0).ok_or(bad)?);
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
            wanted.is_stated = true;
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
        if nonscaling && wanted.scale_to.is_some() {
            return Err(Failure::Says(
                "ERR cannot use NONSCALING and VALIDATESCALETO options together",
            ));
        }
        if nocreate && bloom(call.read(1).object())?.is_none() {
            return Err(Failure::Says("ERR not found"));
        }
        put(call, items, Some(wanted), Many::Several)
    }
}

/// A seed of 32 bytes, as valkey-bloom takes them, as a key of 16.
fn folded(seed: &[u8]) -> Option<[u8; 16]> {
    let (first, second) = seed.split_first_chunk::<16>()?;
    if second.len() != 16 {
        return None;
    }
    let [low, high] = HashSpec::wide_keyed(*first).hash_wide(second);
    Some((u128::from(high) << 64 | u128::from(low)).to_le_bytes())
}
