//! `CF.SCANDUMP` and `CF.LOADCHUNK`.

use super::filter;
use crate::bindings::command_spec::{Arg, ArgKind, CommandSpec, RO_ACCESS, RW_INSERT, first_key};
use crate::bindings::config::Settings;
use crate::bindings::{Call, Command, ReplayLoss, ReplyError, metrics};
use crate::commands::args::integer;
use crate::commands::{memory_limit, transfer};
use crate::error::FilterError;
use crate::filters::StoredFilter;
use crate::redisbloom::{Cuckoo, MAX_ANNOUNCED_LAYERS};

const POSITION: Arg = Arg::new(c"iterator", ArgKind::Integer);
const BAD_POSITION: ReplyError = ReplyError::Static("Invalid position");

pub(in crate::commands) struct ScanDump;

impl Command for ScanDump {
    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.SCANDUMP",
        summary: c"Dumps a cuckoo filter in chunks for CF.LOADCHUNK",
        complexity: c"O(bytes of a chunk)",
        flags: c"readonly",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY, POSITION],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let position = integer(call.arg(2)).and_then(|number| u64::try_from(number).ok());
        let position = position.ok_or(BAD_POSITION)?;
        let key = call.open_read(1);
        filter(key.filter())?.ok_or(ReplyError::NOT_FOUND)?;
        let stored = key.filter().complete()?.ok_or(ReplyError::NOT_FOUND)?;
        if transfer::scan_dump(call, stored, position) {
            return Ok(());
        }
        let StoredFilter::RedisCuckoo(filter) = stored else { return Err(ReplyError::WrongType) };
        call.array(2);
        if position == 0 && filter.len() > 0 {
            call.integer(1);
            call.bytes(&filter.header());
        } else if let Some((next, chunk)) = filter.chunk(position) {
            call.count(next);
            call.bytes(chunk);
        } else {
            // An empty filter has no header either.
            call.integer(0);
            call.null();
        }
        Ok(())
    }
}

pub(in crate::commands) struct LoadChunk;

impl Command for LoadChunk {
    const REPLAY_LOSS: ReplayLoss = ReplayLoss::Items;

    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.LOADCHUNK",
        summary: c"Loads a chunk of a cuckoo filter; the first one creates it",
        complexity: c"O(bytes of the chunk)",
        flags: c"write deny-oom",
        keys: &[first_key(RW_INSERT)],
        args: &[Arg::KEY, POSITION, Arg::new(c"data", ArgKind::Text)],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let position = integer(call.arg(2)).filter(|position| *position != 0);
        // A negative position, like one after the end, has no chunk.
        let position = u64::try_from(position.ok_or(BAD_POSITION)?).unwrap_or(u64::MAX);
        if let Some(loaded) = transfer::load_chunk(call, position) {
            return loaded;
        }
        let mut key = call.open_write(1);
        let exists = filter(key.filter())?.is_some();
        let changed = if position == 1 {
            if exists {
                return Err(ReplyError::KeyExists("ERR item exists"));
            }
            let announced = Cuckoo::announced_layers(call.arg(3));
            if announced.is_some_and(|layers| layers > MAX_ANNOUNCED_LAYERS) && !call.is_replay() {
                return Err(ReplyError::Static("Couldn't create filter!"));
            }
            let limit = memory_limit(call, Settings::current().memory_limit);
            let created = Cuckoo::from_header(call.arg(3), limit);
            let created =
                created.ok_or(ReplyError::Static("Invalid header"))?.map_err(|error| {
                    metrics::rejected(&error);
                    match error {
                        FilterError::MemoryLimit => ReplyError::Static(
                            "Couldn't create filter! It would exceed the setting memory-limit",
                        ),
                        FilterError::Malformed(_)
                        | FilterError::OutOfMemory
                        | FilterError::TooLarge
                        | FilterError::LayerTooLarge => {
                            ReplyError::Static("Couldn't create filter!")
                        }
                        error => error.into_reply(),
                    }
                })?;
            key.set(StoredFilter::RedisCuckoo(Box::new(created)))?;
            true
        } else {
            match key.filter_mut().complete()? {
                None => return Err(ReplyError::NOT_FOUND),
                Some(StoredFilter::RedisCuckoo(filter)) => filter
                    .put_chunk(position, call.arg(3))
                    .map_err(|_| ReplyError::Static("Couldn't load chunk!"))?,
                Some(_) => return Err(ReplyError::KeyExists("Couldn't load chunk!")),
            }
        };
        if changed {
            call.replicate_verbatim();
            call.notify(c"cuckoo.loadchunk", 1);
        }
        call.ok();
        Ok(())
    }
}
