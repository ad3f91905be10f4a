//! The commands. Each is a type that implements [`Command`](crate::bindings::Command): a description,
//! and a function that parses the arguments, executes and replies.

mod args;
mod bf;
mod cf;
mod debug;
mod petal;
mod transfer;

use std::ops::Deref;

use ::petal::BatchResults;

use crate::bindings::{
    Call, CommandEntry, KeyContent, ReplicatedArg, ReplyError, WriteKey, metrics,
};
use crate::error::FilterError;
use crate::filters::{
    Clock, FilterSpec, InsertOutcome, Insertion, MAX_EXPANSION, StoredFilter, StoredType,
};

/// All commands.
pub(crate) const ALL: &[CommandEntry] = &[
    CommandEntry::of::<bf::Reserve>(),
    CommandEntry::of::<bf::Add>(),
    CommandEntry::of::<bf::Madd>(),
    CommandEntry::of::<bf::Insert>(),
    CommandEntry::of::<bf::Exists>(),
    CommandEntry::of::<bf::Mexists>(),
    CommandEntry::of::<bf::Info>(),
    CommandEntry::of::<bf::Card>(),
    CommandEntry::of::<debug::Bloom>(),
    CommandEntry::of::<bf::ScanDump>(),
    CommandEntry::of::<bf::LoadChunk>(),
    CommandEntry::of::<cf::Reserve>(),
    CommandEntry::of::<cf::Add>(),
    CommandEntry::of::<cf::AddNx>(),
    CommandEntry::of::<cf::Insert>(),
    CommandEntry::of::<cf::InsertNx>(),
    CommandEntry::of::<cf::Exists>(),
    CommandEntry::of::<cf::Mexists>(),
    CommandEntry::of::<cf::Count>(),
    CommandEntry::of::<cf::Del>(),
    CommandEntry::of::<cf::Mdel>(),
    CommandEntry::of::<cf::Compact>(),
    CommandEntry::of::<cf::Info>(),
    CommandEntry::of::<debug::Cuckoo>(),
    CommandEntry::of::<cf::ScanDump>(),
    CommandEntry::of::<cf::LoadChunk>(),
    CommandEntry::of::<petal::Reserve>(),
    CommandEntry::of::<petal::Seen>(),
    CommandEntry::of::<petal::SeenAt>(),
    CommandEntry::of::<petal::SeenCreate>(),
    CommandEntry::of::<petal::Exists>(),
    CommandEntry::of::<petal::Clear>(),
    CommandEntry::of::<petal::Del>(),
    CommandEntry::of::<petal::Count>(),
    CommandEntry::of::<petal::Merge>(),
    CommandEntry::of::<petal::Compare>(),
    CommandEntry::of::<petal::Info>(),
    CommandEntry::of::<transfer::Import>(),
    CommandEntry::of::<transfer::Export>(),
    CommandEntry::of::<transfer::LoadChunk>(),
];

/// Returns the filter of a key for `BF.*`; an error for a `CF.*` filter.
#[inline]
fn bloom<T: Deref<Target = StoredFilter>>(content: KeyContent<T>) -> Result<Option<T>, ReplyError> {
    match content.complete()? {
        Some(stored) if stored.as_cuckoo().is_some() => Err(ReplyError::WrongType),
        stored => Ok(stored),
    }
}

/// Queries the items after the key and replies; without a filter all are absent.
fn query_all(call: &Call<'_>, stored: Option<&StoredFilter>) {
    let (count, mut found) = (call.len() - 2, BatchResults::new());
    match stored {
        Some(stored) => stored.contains_all(call.args_from(2), call, &mut found),
        None => found.fill_with(count, |_| false),
    }
    metrics::queried(found.count_ones(), count as u64);
    call.booleans(count, |at| found.get(at));
}

/// Returns the memory limit of a filter. Replayed commands have none: they were accepted before.
fn memory_limit(call: &Call<'_>, setting: u64) -> u64 {
    if call.is_replay() { u64::MAX } else { setting }
}

/// Replicates the creation of a filter by a command that creates an identical one.
fn replicate_creation(call: &Call<'_>, spec: &FilterSpec) {
    let (command, args) = petal::creation_command(spec);
    let args: Vec<_> = [ReplicatedArg::FromCall(1)]
        .into_iter()
        .chain(args.split(' ').map(|arg| ReplicatedArg::Bytes(arg.as_bytes())))
        .collect();
    call.replicate(command, &args);
}

/// Advances the clock of a window by time before an insert. Returns the time if the clock changed.
///
/// Such times are replicated by `PETAL.SEENAT`; on replicas and in append-only files the clock
/// moves only then.
fn advance_window(call: &Call<'_>, stored: &mut StoredFilter) -> Option<u64> {
    if !stored.is_time_window() || call.is_replay() {
        return None;
    }
    let now = call.now();
    stored.advance(now).then_some(now)
}

/// How a command inserts items into the filter of its first key.
struct Inserts {
    /// Argument index of the first item.
    first: usize,
    memory_limit: u64,
    /// Whether the command can be replicated verbatim: it has the items and no options.
    verbatim: bool,
    /// The new time of the window, if its clock changed and the command does not have the time.
    time: Option<u64>,
    /// Whether the filter has changed before the first item.
    changed: bool,
}

impl Inserts {
    /// Inserts a single item and replicates it. Returns whether it was new.
    #[inline]
    fn single(self, call: &Call<'_>, stored: &mut StoredFilter) -> Result<bool, FilterError> {
        let inserted = stored.insert(call.arg(self.first), self.memory_limit)?;
        let new = inserted.is_new();
        metrics::added(new.into(), 1);
        self.replicate(call, stored, 1, new, inserted != Insertion::Unchanged);
        Ok(new)
    }

    /// Inserts all items and replicates those before the first error.
    fn all(mut self, call: &Call<'_>, stored: &mut StoredFilter) -> InsertOutcome {
        let outcome = stored.insert_all(call.args_from(self.first), self.memory_limit);
        let new = outcome.new.count_ones();
        metrics::added(new, outcome.inserted as u64);
        self.verbatim &= outcome.error.is_none();
        self.replicate(call, stored, outcome.inserted, new > 0, outcome.changed);
        outcome
    }

    /// Replicates inserted items and notifies keyspace events, if the filter changed: also if a
    /// counter or the age of a present item did.
    fn replicate(
        self,
        call: &Call<'_>,
        stored: &StoredFilter,
        count: usize,
        any_new: bool,
        changed: bool,
    ) {
        if count == 0 || !(changed || self.changed || self.time.is_some()) {
            return;
        }
        let key = [ReplicatedArg::FromCall(1)].into_iter();
        let items = (self.first..self.first + count).map(ReplicatedArg::FromCall);
        if let Some(time) = self.time {
            let time = time.to_string();
            let time = [ReplicatedArg::Bytes(time.as_bytes())].into_iter();
            call.replicate(c"PETAL.SEENAT", &key.chain(time).chain(items).collect::<Vec<_>>());
        } else if self.verbatim
            && !(stored.stored_type() == StoredType::RedisBloom && call.is_petal_command())
        {
            call.replicate_verbatim();
        } else {
            // A replica with RedisBloom does not support `PETAL.*`.
            call.replicate(c"BF.MADD", &key.chain(items).collect::<Vec<_>>());
        }
        if any_new {
            call.notify(c"bloom.add", 1);
        }
    }
}

/// Replaces the filter by a damaged one if a replayed command could not insert an item that the
/// master inserted.
fn damage_if_replayed(call: &Call<'_>, key: &mut WriteKey<'_>, error: &FilterError) {
    let is_expected = match error {
        FilterError::Unsupported => true,
        // RedisBloom also replicates items that did not fit into its own filter; petal does not.
        FilterError::Full | FilterError::MaxLayers => {
            matches!(
                key.filter(),
                KeyContent::Filter(StoredFilter::RedisBloom(_) | StoredFilter::RedisCuckoo(_))
            )
        }
        _ => false,
    };
    if call.is_replay() && !is_expected {
        call.damage_key(key, &error.clone().into());
    }
}

impl From<FilterError> for ReplyError {
    fn from(error: FilterError) -> Self {
        metrics::rejected(&error);
        error.into_reply()
    }
}

impl FilterError {
    /// Returns the reply, without counting the error for `INFO`.
    fn into_reply(self) -> ReplyError {
        match self {
            Self::Full => ReplyError::Static("ERR non scaling filter is full"),
            Self::MaxLayers => ReplyError::Static("Maximum expansions reached"),
            Self::TooManyCopies => ReplyError::Static(
                "ERR the filter has 65535 copies of this item, the maximum: delete copies, or \
                 count the item in a key of its own",
            ),
            Self::MemoryLimit => {
                ReplyError::Static("ERR operation exceeds bloom object memory limit")
            }
            Self::OverLimit { bytes, limit } => ReplyError::Message(format!(
                "ERR the filter takes {bytes} bytes, more than the setting memory-limit, {limit}: \
                 raise it, or split the set over several keys"
            )),
            Self::OutOfMemory | Self::TooLarge => {
                ReplyError::Static("ERR Insufficient memory to create filter")
            }
            Self::LayerTooLarge => ReplyError::Static(
                "ERR a layer of a cuckoo filter in RedisBloom's layout takes at most 4294967296 \
                 bytes: reserve fewer items, or use petal's layout",
            ),
            Self::FprUnattainable => ReplyError::Static(
                "ERR 64-bit hashes cannot keep this error rate for this capacity: choose a \
                 higher rate or a smaller capacity",
            ),
            Self::FprTooSmall => ReplyError::Static("ERR could not create filter"),
            Self::ExpansionTooLarge => {
                ReplyError::Message(format!("ERR EXPANSION is at most {MAX_EXPANSION}"))
            }
            Self::Unsupported => ReplyError::WrongType,
            Self::Malformed(_) => ReplyError::Static("ERR received bad data"),
            Self::BadOffset => ReplyError::Static("ERR invalid offset - no link found"),
            Self::ChunkTooLong => {
                ReplyError::Static("ERR invalid chunk - Too big for current filter")
            }
            Self::Other(message) => ReplyError::Message(format!("ERR {message}")),
        }
    }
}
