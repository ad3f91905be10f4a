//! Import and export in chunks: `PETAL.IMPORT` and `PETAL.EXPORT` of `.petal` files,
//! `PETAL.LOADCHUNK`, and the part of `SCANDUMP` and `LOADCHUNK` for petal's layout.
//!
//! During an import the key holds a [`PartialImport`], which is replicated, saved and deleted like
//! a filter, but not queried. The last chunk turns it into a filter; an invalid chunk deletes it.

use std::borrow::Cow;

use petal::embed::SerializedView;

use super::args::integer;
use super::memory_limit;
use crate::bindings::command_spec::{
    Arg, ArgKind, CommandSpec, RO_ACCESS, RW_ACCESS_INSERT, first_key,
};
use crate::bindings::config::Settings;
use crate::bindings::{Call, Command, ReplayLoss, ReplicatedArg, ReplyError, not_usable};
use crate::error::FilterError;
use crate::filters::{MAGIC, PREFIX_BYTES, PartialImport, StoredFilter};
use crate::persistence::CHUNK_BYTES;

const OFFSET: Arg = Arg::new(c"offset", ArgKind::Integer);
const DATA: Arg = Arg::new(c"data", ArgKind::Text);
/// Offset of the data in a file without metadata.
const DATA_OFFSET: u64 = 4096;
/// The header of a file has the number of ticks of a window, but not their unit.
const TIME_WINDOW: ReplyError = ReplyError::Static(
    "ERR a window by time cannot be in a file, which counts seconds instead of milliseconds: \
     create it with PETAL.RESERVE, or move it by DUMP and RESTORE",
);

pub(super) struct Import;

impl Command for Import {
    const REPLAY_LOSS: ReplayLoss = ReplayLoss::Items;

    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.IMPORT",
        summary: c"Imports a .petal file in chunks, in order; the last chunk makes it a filter",
        complexity: c"O(bytes)",
        flags: c"write deny-oom",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: &[Arg::KEY, OFFSET, DATA],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        import_chunk(call, offset(call.arg(2))?, PartialImport::file)
    }
}

pub(super) struct LoadChunk;

impl Command for LoadChunk {
    const REPLAY_LOSS: ReplayLoss = ReplayLoss::Items;

    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.LOADCHUNK",
        summary: c"Loads a filter from the chunks of an append-only file, in order",
        complexity: c"O(bytes)",
        flags: c"write deny-oom",
        keys: &[first_key(RW_ACCESS_INSERT)],
        args: &[Arg::KEY, OFFSET, DATA],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        import_chunk(call, offset(call.arg(2))?, PartialImport::container)
    }
}

fn offset(arg: &[u8]) -> Result<u64, ReplyError> {
    let offset = integer(arg).and_then(|offset| u64::try_from(offset).ok());
    offset.ok_or(ReplyError::Static("ERR an offset is a number of bytes from 0"))
}

/// Adds a chunk; replies with the bytes received and, of a file, the total.
fn import_chunk(
    call: &Call<'_>,
    offset: u64,
    new_import: fn(u64) -> PartialImport,
) -> Result<(), ReplyError> {
    let (received, total) = push(call, offset, call.arg(3), new_import)?;
    call.array(2);
    call.count(received);
    call.count(total);
    Ok(())
}

/// Adds a chunk to the import of a key; offset 0 starts it again. Returns the bytes received, and
/// the total if it is known.
fn push(
    call: &Call<'_>,
    offset: u64,
    data: &[u8],
    new_import: fn(u64) -> PartialImport,
) -> Result<(u64, u64), ReplyError> {
    if data.is_empty() {
        // An empty import cannot be written to an append-only file.
        return Err(ReplyError::Static("ERR a chunk has at least one byte"));
    }
    let limit = memory_limit(call, Settings::current().memory_limit);
    let mut started = (offset == 0).then(|| new_import(limit));
    let mut key = call.open_write(1);
    let exists = ReplyError::KeyExists("ERR item exists: load under another name, then RENAME");
    let received = match key.filter_mut().any_filter()? {
        // A log that starts the import again replaces a damaged filter; a client must delete it.
        Some(stored) if stored.damage().is_some() && (offset > 0 || !call.is_replay()) => {
            return Err(not_usable(stored));
        }
        Some(StoredFilter::Partial(import)) if offset > 0 && import.received_bytes() != offset => {
            let received = import.received_bytes();
            return Err(ReplyError::Message(format!(
                "ERR {received} bytes received: continue with offset {received}, or start again \
                 with 0"
            )));
        }
        Some(StoredFilter::Partial(import)) => match &mut started {
            Some(started) => receive(started, data, limit),
            None if import.is_file() != new_import(0).is_file() => {
                return Err(ReplyError::Static(
                    "ERR another command started this import: continue with that, or delete the key",
                ));
            }
            None => receive(import, data, limit),
        },
        Some(_) => return Err(exists),
        None => match &mut started {
            // If the first chunk is invalid, the key stays missing.
            Some(started) => receive(started, data, limit),
            None => {
                return Err(ReplyError::Static("ERR no import in progress: start with offset 0"));
            }
        },
    };
    let Received { filter, bytes, total } = match received {
        Ok(received) => received,
        Err(error) => {
            if key.filter().any_filter()?.is_some() {
                // The import cannot be continued, here or on a replica.
                key.delete();
                call.replicate(c"DEL", &[ReplicatedArg::FromCall(1)]);
                call.notify(c"del", 1);
            }
            return Err(error);
        }
    };
    let complete = filter.is_some();
    let started = started.map(|import| StoredFilter::Partial(Box::new(import)));
    if let Some(value) = filter.or(started) {
        match key.filter_mut().any_filter()? {
            // In place, because setting a key removes its time to live.
            Some(stored) => *stored = value,
            None => key.set(value)?,
        }
    }
    call.replicate_verbatim();
    if complete {
        call.notify(c"petal.import", 1);
    }
    Ok((bytes, total))
}

/// The state of an import after a chunk.
struct Received {
    /// The filter, if it is complete.
    filter: Option<StoredFilter>,
    bytes: u64,
    /// 0 if it is unknown.
    total: u64,
}

/// Adds a chunk to an import.
fn receive(import: &mut PartialImport, data: &[u8], limit: u64) -> Result<Received, ReplyError> {
    let (pushed, is_file) = (import.push(data), import.is_file());
    let (bytes, total) = (import.received_bytes(), import.total_bytes());
    let filter = pushed
        .and_then(|content| content.map(StoredFilter::from_content).transpose())
        .map_err(|error| match error {
            FilterError::OverLimit { .. } | FilterError::OutOfMemory => error.into(),
            error => ReplyError::Message(format!("ERR received bad data: {error}")),
        })?;
    // An import that was started before a restart has no limit, so it is checked here as well, with
    // an allowance for headers.
    let memory = filter.as_ref().map_or(import.memory_usage(), StoredFilter::memory_usage);
    if memory > limit.saturating_add(DATA_OFFSET) {
        return Err(FilterError::OverLimit { bytes: memory, limit }.into());
    }
    if is_file && filter.as_ref().is_some_and(StoredFilter::is_time_window) {
        return Err(TIME_WINDOW);
    }
    let total = if filter.is_some() { bytes } else { total };
    Ok(Received { filter, bytes, total })
}

pub(super) struct Export;

impl Command for Export {
    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.EXPORT",
        summary:
            c"Exports a filter as a .petal file in chunks: the next offset (0 at the end) and bytes",
        complexity:
            c"O(bytes); with an offset below 4096 one pass over the filter, 0.1 to 0.3 ms per MB",
        flags: c"readonly",
        keys: &[first_key(RO_ACCESS)],
        args: &[Arg::KEY, OFFSET, Arg::new(c"count", ArgKind::Integer).option(c"COUNT")],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let max_len = match call.len() {
            3 => CHUNK_BYTES,
            5 if super::args::is_option(call.arg(3), "COUNT") => {
                let count = integer(call.arg(4)).and_then(|count| usize::try_from(count).ok());
                let invalid =
                    ReplyError::Static("ERR COUNT is a number of bytes from 1 to 67108864");
                count.filter(|count| (1..=64 << 20).contains(count)).ok_or(invalid)?
            }
            5 => return Err(ReplyError::Static("ERR the only option is COUNT")),
            _ => return Err(ReplyError::WrongArity),
        };
        let offset = offset(call.arg(2))?;
        let key = call.open_read(1);
        let stored = key.filter().complete()?.ok_or(ReplyError::NOT_FOUND)?;
        if stored.is_time_window() {
            return Err(TIME_WINDOW);
        }
        let view = stored.serialized().ok_or(ReplyError::Static(
            "ERR PETAL.EXPORT does not support CF.* filters and RedisBloom's layout",
        ))?;
        let (chunk, total) = file_chunk(&view, offset, max_len);
        let next = offset + chunk.len() as u64;
        call.array(2);
        call.count(if next < total { next } else { 0 });
        call.bytes(&chunk);
        Ok(())
    }
}

/// Returns up to `max_len` bytes of a filter's file from an offset, and the length of the file.
fn file_chunk<'i>(
    view: &'i SerializedView<'_>,
    offset: u64,
    max_len: usize,
) -> (Cow<'i, [u8]>, u64) {
    let total = DATA_OFFSET + view.data_len();
    if offset < DATA_OFFSET {
        let mut header = view.header().to_vec();
        header.resize(DATA_OFFSET as usize, 0);
        let rest = &header[offset as usize..];
        return (rest[..rest.len().min(max_len)].to_vec().into(), total);
    }
    (view.read(offset - DATA_OFFSET, max_len).into(), total)
}

/// Replies to `SCANDUMP` of a filter in petal's layout: the container's prefix with iterator 1,
/// then chunks with the position after them. Returns `false` for other layouts.
pub(super) fn scan_dump(call: &Call<'_>, stored: &StoredFilter, iterator: u64) -> bool {
    let Some(container) = stored.container() else { return false };
    let (next, chunk) = match iterator {
        0 => (1, container.read(0, PREFIX_BYTES)),
        position => {
            let offset = (position - 1).saturating_add(PREFIX_BYTES as u64);
            let chunk = container.read(offset, CHUNK_BYTES);
            let next = position.saturating_add(chunk.len() as u64);
            (if chunk.is_empty() { 0 } else { next }, chunk)
        }
    };
    call.array(2);
    call.count(next);
    if chunk.is_empty() && stored.as_cuckoo().is_some() {
        // `CF.SCANDUMP` ends with null, `BF.SCANDUMP` with an empty string.
        call.null();
    } else {
        call.bytes(&chunk);
    }
    true
}

/// Replies to `SCANDUMP` as RedisBloom does: a header with iterator 1, then chunks with the
/// position after them.
pub(super) fn reply_chunk<'c>(
    call: &Call<'_>,
    iterator: u64,
    header: impl AsRef<[u8]>,
    chunk: impl Fn(u64) -> Option<(u64, &'c [u8])>,
) {
    call.array(2);
    if iterator == 0 {
        call.count(1);
        call.bytes(header.as_ref());
        return;
    }
    let (next, bytes) = chunk(iterator).unwrap_or((0, &[]));
    call.count(next);
    call.bytes(bytes);
}

/// Executes `LOADCHUNK` of a filter in petal's layout. `None` for other layouts.
pub(super) fn load_chunk(call: &Call<'_>, iterator: u64) -> Option<Result<(), ReplyError>> {
    let data = call.arg(3);
    let starts = iterator == 1 && data.starts_with(&MAGIC);
    let continues =
        || matches!(call.open_read(1).filter().any_filter(), Ok(Some(StoredFilter::Partial(_))));
    if !starts && !continues() {
        return None;
    }
    let end = iterator.checked_sub(1).and_then(|at| at.checked_add(PREFIX_BYTES as u64));
    let start = end.and_then(|end| end.checked_sub(data.len() as u64));
    let pushed = match if starts { Some(0) } else { start } {
        Some(offset) => push(call, offset, data, PartialImport::container),
        None => Err(ReplyError::Static("ERR invalid offset - no link found")),
    };
    Some(pushed.map(|_| call.ok()))
}
