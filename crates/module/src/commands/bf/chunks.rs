//! `BF.SCANDUMP` and `BF.LOADCHUNK`.

use crate::bindings::command_spec::{Arg, ArgKind, CommandSpec, RO_ACCESS, RW_INSERT, first_key};
use crate::bindings::config::Settings;
use crate::bindings::{Call, Command, ReplayLoss, ReplyError, metrics};
use crate::commands::args::integer;
use crate::commands::{bloom, memory_limit, transfer};
use crate::error::FilterError;
use crate::filters::StoredFilter;
use crate::redisbloom;

pub(in crate::commands) struct ScanDump;

impl Command for ScanDump {
    const SPEC: CommandSpec = CommandSpec {
        name: c"BF.SCANDUMP",
        summary: c"Dumps a Bloom filter in chunks for BF.LOADCHUNK",
        complexity: c"O(bytes of a chunk)",
        flags: c"readonly",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY, Arg::new(c"iterator", ArgKind::Integer)],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let key = call.open_read(1);
        let stored = bloom(key.filter())?.ok_or(ReplyError::NOT_FOUND)?;
        let iterator =
            integer(call.arg(2)).ok_or(ReplyError::Static("Second argument must be numeric"))?;
        let iterator = u64::try_from(iterator).unwrap_or(u64::MAX);
        if transfer::scan_dump(call, stored, iterator) {
            return Ok(());
        }
        let StoredFilter::RedisBloom(filter) = stored else { return Err(ReplyError::WrongType) };
        transfer::reply_chunk(call, iterator, filter.header(), |at| filter.chunk(at));
        Ok(())
    }
}

pub(in crate::commands) struct LoadChunk;

impl Command for LoadChunk {
    const REPLAY_LOSS: ReplayLoss = ReplayLoss::Items;

    const SPEC: CommandSpec = CommandSpec {
        name: c"BF.LOADCHUNK",
        summary: c"Loads a chunk of a Bloom filter; the first one creates it",
        complexity: c"O(bytes of the chunk)",
        flags: c"write deny-oom",
        keys: &[first_key(RW_INSERT)],
        args: &[
            Arg::KEY,
            Arg::new(c"iterator", ArgKind::Integer),
            Arg::new(c"data", ArgKind::Text),
        ],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let iterator = integer(call.arg(2))
            .ok_or(ReplyError::Static("ERR Second argument must be numeric"))?;
        let iterator = u64::try_from(iterator).unwrap_or(0);
        if let Some(loaded) = transfer::load_chunk(call, iterator) {
            return loaded;
        }
        let mut key = call.open_write(1);
        let changed = match key.filter_mut().complete()? {
            None if iterator == 1 => {
                let limit = memory_limit(call, Settings::current().memory_limit);
                let filter = redisbloom::Bloom::from_header(call.arg(3), limit);
                let filter = filter.map_err(|error| {
                    metrics::rejected(&error);
                    match error {
                        FilterError::MemoryLimit => ReplyError::Static(
                            "ERR received bad data: the header is of a filter larger than the \
                             setting memory-limit",
                        ),
                        FilterError::OutOfMemory | FilterError::TooLarge => ReplyError::Static(
                            "ERR received bad data: out of memory for the filter of the header",
                        ),
                        error => error.into_reply(),
                    }
                })?;
                key.set(filter.into())?;
                true
            }
            Some(StoredFilter::RedisBloom(filter)) => filter.put_chunk(iterator, call.arg(3))?,
            Some(_) => return Err(ReplyError::WrongType),
            None => return Err(ReplyError::NOT_FOUND),
        };
        if changed {
            call.replicate_verbatim();
        }
        call.ok();
        Ok(())
    }
}
