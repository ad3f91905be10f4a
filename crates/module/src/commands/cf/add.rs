//! `CF.ADD`, `CF.ADDNX`, `CF.INSERT` and `CF.INSERTNX`.

use super::reserve::NewCuckoo;
use super::{filter_mut, growth_limits, insert_error};
use crate::bindings::command_spec::{Arg, ArgKind, CommandSpec, RW_ACCESS_INSERT, first_key};
use crate::bindings::config::Settings;
use crate::bindings::{Call, Command, ReplicatedArg, ReplyError, WriteKey, metrics};
use crate::commands::args::CallOption::{Flag, Value};
use crate::commands::args::{CallOptions, Strictness, integer};
use crate::commands::damage_if_replayed;
use crate::error::FilterError;
use crate::filters::CuckooOps;

/// Number of items to prefetch ahead.
const PREFETCH_DISTANCE: usize = 8;

const INSERT_ARGS: &[Arg] = &[
    Arg::KEY,
    Arg::new(c"capacity", ArgKind::Integer).option(c"CAPACITY"),
    Arg::flag(c"nocreate", c"NOCREATE"),
    Arg::ITEMS.after(c"ITEMS"),
];

/// Whether a copy of a present item is added.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Always,
    IfAbsent,
}

pub(in crate::commands) struct Add;

impl Command for Add {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.ADD",
        summary:
            c"Adds a copy of an item to a cuckoo filter; creates the filter if the key is missing",
        complexity: c"O(1); O(layers) after deletions",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: &[Arg::KEY, Arg::ITEM],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        add(call, Mode::Always)
    }
}

pub(in crate::commands) struct AddNx;

impl Command for AddNx {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.ADDNX",
        summary:
            c"Adds an item to a cuckoo filter if it is absent; creates the filter if the key is \
            missing",
        complexity: c"O(layers)",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: &[Arg::KEY, Arg::ITEM],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        add(call, Mode::IfAbsent)
    }
}

fn add(call: &Call<'_>, mode: Mode) -> Result<(), ReplyError> {
    let mut key = call.open_write(1);
    let created = create(call, &mut key, None)?;
    let filter = open_filter(call, &mut key)?;
    let hash = filter.hash(call.arg(2));
    let new = mode == Mode::Always || !filter.contains(hash);
    if new {
        if let Err(error) = filter.add(hash, &|| growth_limits(call)) {
            damage_if_replayed(call, &mut key, &error);
            return Err(insert_error(error));
        }
        if created {
            call.replicate(c"CF.ADD", &[ReplicatedArg::FromCall(1), ReplicatedArg::FromCall(2)]);
        } else {
            call.replicate_verbatim();
        }
        call.notify(c"cuckoo.add", 1);
    }
    metrics::added(new.into(), 1);
    call.boolean(new);
    Ok(())
}

/// Creates the filter if the key is missing, with default parameters if `new` is `None`. Returns
/// whether it was created.
#[inline]
fn create(
    call: &Call<'_>,
    key: &mut WriteKey<'_>,
    new: Option<NewCuckoo>,
) -> Result<bool, ReplyError> {
    if key.filter().complete()?.is_some() {
        return Ok(false);
    }
    let new = new.unwrap_or_else(|| NewCuckoo::defaults(&Settings::current()));
    if let Err(error) = new.create(call, key) {
        if call.is_replay() {
            call.damage_key(key, &error);
        }
        return Err(error);
    }
    Ok(true)
}

/// Returns the filter, unless it rejects inserts.
#[inline]
fn open_filter<'k>(
    call: &Call<'_>,
    key: &'k mut WriteKey<'_>,
) -> Result<&'k mut dyn CuckooOps, ReplyError> {
    let filter = filter_mut(key.filter_mut())?.ok_or(ReplyError::WrongType)?;
    if filter.rejects_inserts(Settings::current().cf_max_expansions) && !call.is_replay() {
        return Err(FilterError::MaxLayers.into());
    }
    Ok(filter)
}

pub(in crate::commands) struct Insert;

impl Command for Insert {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.INSERT",
        summary:
            c"Adds copies of items to a cuckoo filter; creates it with the given options if the \
            key is missing",
        complexity: c"O(items)",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: INSERT_ARGS,
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        insert(call, Mode::Always)
    }
}

pub(in crate::commands) struct InsertNx;

impl Command for InsertNx {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.INSERTNX",
        summary: c"Adds the items that are absent to a cuckoo filter; creates it with the given \
            options if the key is missing",
        complexity: c"O(items * layers)",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: INSERT_ARGS,
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        insert(call, Mode::IfAbsent)
    }
}

fn insert(call: &Call<'_>, mode: Mode) -> Result<(), ReplyError> {
    let strictness = Strictness::of(call);
    let mut new = NewCuckoo::defaults(&Settings::current());
    let (mut nocreate, mut items) = (false, None);
    let spell = |token: &[u8]| strictness.option(token, false);
    let mut options = CallOptions::new(INSERT_ARGS, call.args_from(2), spell);
    while let Some(option) = options.next() {
        match option {
            Flag("ITEMS") => {
                items = Some(call.len() - options.rest());
                break;
            }
            Flag("NOCREATE") => nocreate = true,
            // RedisBloom checks the capacity before it looks at the next argument.
            Value("CAPACITY", capacity) => {
                let capacity = integer(capacity.ok_or(ReplyError::WrongArity)?);
                let capacity = capacity.ok_or(ReplyError::Static("Bad capacity"))?;
                new = new.with_capacity(strictness, capacity)?;
            }
            _ => return Err(ReplyError::Static("Unknown argument received")),
        }
    }
    let items = items.filter(|items| *items < call.len()).ok_or(ReplyError::WrongArity)?;
    let mut key = call.open_write(1);
    if nocreate && key.filter().complete()?.is_none() {
        return Err(ReplyError::NOT_FOUND);
    }
    let created = create(call, &mut key, Some(new))?;
    let filter = open_filter(call, &mut key)?;
    let (outcomes, error) = insert_all(call, filter, items, mode);
    let is_added = |at: &usize| outcomes.get(at - items) == Some(&Outcome::Added);
    let added: Vec<usize> = (items..call.len()).filter(is_added).collect();
    let full = outcomes.iter().filter(|outcome| **outcome == Outcome::Full).count();
    let first_error = if full > 0 { Some(&FilterError::Full) } else { error.as_ref() };
    if let Some(error) = first_error {
        damage_if_replayed(call, &mut key, error);
    }
    metrics::REJECTED_FULL.add(full as u64);
    metrics::added(added.len() as u64, (outcomes.len() - full) as u64);
    if !added.is_empty() {
        if added.len() == call.len() - items && !created {
            call.replicate_verbatim();
        } else {
            let options = [
                ReplicatedArg::FromCall(1),
                ReplicatedArg::Bytes(b"NOCREATE"),
                ReplicatedArg::Bytes(b"ITEMS"),
            ];
            let added = added.into_iter().map(ReplicatedArg::FromCall);
            call.replicate(c"CF.INSERT", &options.into_iter().chain(added).collect::<Vec<_>>());
        }
        call.notify(c"cuckoo.add", 1);
    }
    if let (true, Some(error)) = (outcomes.is_empty(), &error) {
        return Err(insert_error(error.clone()));
    }
    call.array(outcomes.len() + usize::from(error.is_some()));
    let as_numbers = mode == Mode::IfAbsent || !call.is_resp3();
    for outcome in outcomes {
        if as_numbers {
            call.integer(outcome as i64);
        } else {
            call.boolean(outcome == Outcome::Added);
        }
    }
    if let Some(error) = error {
        call.error(&insert_error(error));
    }
    Ok(())
}

/// The reply for an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Full = -1,
    Present = 0,
    Added = 1,
}

/// Inserts the items from an argument index on, up to the first error other than
/// [`Full`](FilterError::Full) and [`TooManyCopies`](FilterError::TooManyCopies).
fn insert_all(
    call: &Call<'_>,
    filter: &mut dyn CuckooOps,
    items: usize,
    mode: Mode,
) -> (Vec<Outcome>, Option<FilterError>) {
    let hashes = filter.hashes(&mut call.args_from(items));
    let mut outcomes = Vec::with_capacity(hashes.len());
    for (at, hash) in hashes.iter().enumerate() {
        if let Some(next) = hashes.get(at + PREFETCH_DISTANCE) {
            filter.prefetch(*next);
        }
        if mode == Mode::IfAbsent && filter.contains(*hash) {
            outcomes.push(Outcome::Present);
            continue;
        }
        match filter.add(*hash, &|| growth_limits(call)) {
            Ok(()) => outcomes.push(Outcome::Added),
            Err(FilterError::Full | FilterError::TooManyCopies) => outcomes.push(Outcome::Full),
            Err(error) => return (outcomes, Some(error)),
        }
    }
    (outcomes, None)
}
