//! `BF.ADD`, `BF.MADD` and `BF.INSERT`.

use petal::HashSpec;

use super::reserve::NewBloom;
use super::{EXPANSION, NONSCALING};
use crate::bindings::ReplyError::Static;
use crate::bindings::command_spec::{Arg, ArgKind, CommandSpec, RW_ACCESS_INSERT, first_key};
use crate::bindings::config::Settings;
use crate::bindings::{Call, Command, ReplyError, metrics};
use crate::commands::args::CallOption::{Flag, Value};
use crate::commands::args::{CallOptions, Strictness, integer, positive};
use crate::commands::{
    Inserts, advance_window, bloom, damage_if_replayed, memory_limit, replicate_creation,
};
use crate::error::FilterError;

pub(in crate::commands) struct Add;

impl Command for Add {
    const SPEC: CommandSpec = CommandSpec {
        name: c"BF.ADD",
        summary: c"Adds an item to a Bloom filter; creates the filter if the key is missing",
        complexity: c"O(layers), of which there are few",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: &[Arg::KEY, Arg::ITEM],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        insert(call, 2, None, ReplyShape::Single)
    }
}

pub(in crate::commands) struct Madd;

impl Command for Madd {
    const SPEC: CommandSpec = CommandSpec {
        name: c"BF.MADD",
        summary: c"Adds items to a Bloom filter; creates the filter if the key is missing",
        complexity: c"O(items)",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: &[Arg::KEY, Arg::ITEMS],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        insert(call, 2, None, ReplyShape::Array)
    }
}

/// Whether the command replies with a single boolean or with an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplyShape {
    Single,
    Array,
}

/// Inserts the items from an argument index on. Creates the filter if the key is missing, with
/// default parameters if `new` is `None`.
fn insert(
    call: &Call<'_>,
    items: usize,
    new: Option<NewBloom>,
    shape: ReplyShape,
) -> Result<(), ReplyError> {
    let settings = Settings::current();
    let mut key = call.open_write(1);
    let mut created = false;
    if bloom(key.filter())?.is_none() {
        let new = new.unwrap_or_else(|| NewBloom::defaults(&settings));
        let mut spec = new.spec(call, &settings);
        let limit = memory_limit(call, settings.memory_limit);
        let sized = new.spec_for_items(&spec, call.len() - items);
        let filter = match sized.and_then(|sized| Some((sized.build(limit).ok()?, sized))) {
            Some((filter, sized)) => {
                spec = sized;
                filter
            }
            None => {
                spec.build(limit).inspect_err(|error| damage_if_replayed(call, &mut key, error))?
            }
        };
        if new.scale_to.is_some_and(|capacity| filter.capacity_within(limit) < capacity) {
            return Err(Static(
                "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit",
            ));
        }
        key.set(filter)?;
        replicate_creation(call, &spec);
        call.notify(c"bloom.reserve", 1);
        created = true;
    }
    let Some(stored) = bloom(key.filter_mut())? else { return Err(ReplyError::WrongType) };
    let time = advance_window(call, stored);
    let is_single = shape == ReplyShape::Single;
    let memory_limit = if is_single && !stored.may_grow() {
        u64::MAX
    } else {
        memory_limit(call, settings.memory_limit)
    };
    let verbatim = new.is_none() && (!created || !is_single);
    let inserts = Inserts { first: items, memory_limit, verbatim, time, changed: false };
    if is_single {
        match inserts.single(call, stored) {
            Ok(new) => call.boolean(new),
            Err(error) => {
                damage_if_replayed(call, &mut key, &error);
                return Err(insert_error(error));
            }
        }
        return Ok(());
    }
    let outcome = inserts.all(call, stored);
    call.array(outcome.inserted + usize::from(outcome.error.is_some()));
    (0..outcome.inserted).for_each(|at| call.boolean(outcome.new.get(at)));
    if let Some(error) = outcome.error {
        damage_if_replayed(call, &mut key, &error);
        call.error(&insert_error(error));
    }
    Ok(())
}

/// Returns the reply for an item that was not added; RedisBloom's text where it has one.
fn insert_error(error: FilterError) -> ReplyError {
    match error {
        FilterError::OutOfMemory => {
            metrics::rejected(&error);
            Static("ERR problem inserting into filter")
        }
        FilterError::Unsupported => Static(
            "ERR items cannot be added to a filter of this type: build it again and import it",
        ),
        error => error.into(),
    }
}

pub(in crate::commands) struct Insert;

impl Command for Insert {
    const SPEC: CommandSpec = CommandSpec {
        name: c"BF.INSERT",
        summary:
            c"Adds items to a Bloom filter; creates it with the given options if the key is missing",
        complexity: c"O(items)",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: &[
            Arg::KEY,
            Arg::new(c"capacity", ArgKind::Integer).option(c"CAPACITY"),
            Arg::new(c"error", ArgKind::Double).option(c"ERROR"),
            EXPANSION,
            Arg::flag(c"nocreate", c"NOCREATE"),
            NONSCALING,
            Arg::new(c"tightening_ratio", ArgKind::Double).option(c"TIGHTENING"),
            Arg::new(c"seed", ArgKind::Text).option(c"SEED"),
            Arg::new(c"scale_to", ArgKind::Integer).option(c"VALIDATESCALETO"),
            Arg::ITEMS.after(c"ITEMS"),
        ],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let (strictness, settings) = (Strictness::of(call), Settings::current());
        let mut new = NewBloom::defaults(&settings);
        let (mut nocreate, mut nonscaling) = (false, false);
        let (mut capacity, mut fpr, mut growth) = (None, None, None);
        let mut items = None;
        let mut options = CallOptions::new(Self::SPEC.args, call.args_from(2), |token| {
            strictness.option(token, true)
        });
        while let Some(option) = options.next() {
            match option {
                Flag("ITEMS") => {
                    items = Some(call.len() - options.rest());
                    break;
                }
                Flag("NOCREATE") => nocreate = true,
                Flag("NONSCALING") => nonscaling = true,
                // RedisBloom compares the number of arguments first.
                Value("CAPACITY" | "ERROR" | "EXPANSION", None) => {
                    return Err(ReplyError::WrongArity);
                }
                Value("CAPACITY", Some(value)) => {
                    capacity = Some(integer(value).ok_or(Static("Bad capacity"))?);
                }
                Value("ERROR", Some(value)) => {
                    fpr = Some(strictness.number(value).ok_or(Static("Bad error rate"))?);
                }
                Value("EXPANSION", Some(value)) => {
                    growth = Some(integer(value).ok_or(Static("Bad expansion"))?);
                }
                Value("SEED", value) => {
                    let seed = value.and_then(fold_seed).ok_or(Static("ERR invalid seed"))?;
                    new.seed = Some(seed);
                }
                Value("VALIDATESCALETO", value) => {
                    let scale_to = value.and_then(integer).and_then(positive);
                    new.scale_to = Some(scale_to.ok_or(Static("ERR bad capacity"))?);
                }
                // It is checked only: petal chooses the rates of its layers.
                Value("TIGHTENING", value) => {
                    let ratio = value.and_then(|value| strictness.number(value));
                    let ratio = ratio.ok_or(Static("ERR bad tightening ratio"))?;
                    if !(ratio > 0.0 && ratio < 1.0) {
                        return Err(Static("ERR (0 < tightening ratio range < 1)"));
                    }
                }
                _ => return Err(Static("Unknown argument received")),
            }
        }
        let items = items.filter(|items| *items < call.len()).ok_or(ReplyError::WrongArity)?;
        // As in RedisBloom, numbers out of range are reported after all that cannot be parsed.
        let bad = Static("Bad argument received");
        if let Some(capacity) = capacity {
            new.capacity = positive(capacity).ok_or(bad.clone())?;
            new.has_capacity = true;
        }
        if let Some(fpr) = fpr {
            new.fpr = Some(fpr).filter(|fpr| 0.0 < *fpr && *fpr < 1.0).ok_or(bad.clone())?;
        }
        if let Some(growth) = growth {
            new.growth = Some(positive(growth).ok_or(bad)?);
        }
        if nonscaling {
            new.growth = None;
        }
        if nonscaling && new.scale_to.is_some() {
            return Err(Static("ERR cannot use NONSCALING and VALIDATESCALETO options together"));
        }
        if nocreate && bloom(call.open_read(1).filter())?.is_none() {
            return Err(ReplyError::NOT_FOUND);
        }
        insert(call, items, Some(new), ReplyShape::Array)
    }
}

/// Folds a seed of 32 bytes, as in valkey-bloom, to a key of 16 bytes.
fn fold_seed(seed: &[u8]) -> Option<[u8; 16]> {
    let (first, second) = seed.split_first_chunk::<16>()?;
    let second: &[u8; 16] = second.try_into().ok()?;
    let (low, high) = (HashSpec::keyed(*first).hash(second), HashSpec::keyed(*second).hash(first));
    Some((u128::from(high) << 64 | u128::from(low)).to_le_bytes())
}
