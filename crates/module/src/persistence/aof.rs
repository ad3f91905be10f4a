//! Commands that recreate a filter, for the rewrite of an append-only file.

use std::ffi::CStr;

use super::CHUNK_BYTES;
use crate::filters::StoredFilter;

/// Passes the commands that recreate a filter to `emit_at`: command, offset or iterator, bytes.
pub(crate) fn rewrite(stored: &StoredFilter, mut emit_at: impl FnMut(&CStr, u64, &[u8])) {
    let mut offset = 0;
    let mut emit = |command: &CStr, chunk: &[u8]| {
        emit_at(command, offset, chunk);
        offset += chunk.len() as u64;
    };
    match stored {
        StoredFilter::Partial(import) => {
            let command = if import.is_file() { c"PETAL.IMPORT" } else { c"PETAL.LOADCHUNK" };
            import.received_chunks(CHUNK_BYTES, |chunk| emit(command, chunk));
        }
        StoredFilter::RedisBloom(filter) => {
            emit_chunks(&mut emit_at, c"BF.LOADCHUNK", &filter.header(), |at| filter.chunk(at));
        }
        StoredFilter::RedisCuckoo(filter) => {
            emit_chunks(&mut emit_at, c"CF.LOADCHUNK", &filter.header(), |at| filter.chunk(at));
        }
        stored => {
            let container = stored.container();
            let chunks = container.iter().flat_map(|container| container.chunks(CHUNK_BYTES));
            chunks.for_each(|chunk| emit(c"PETAL.LOADCHUNK", &chunk));
        }
    }
}

/// Emits RedisBloom's chunks: the header with iterator 1, the others with the position after them.
fn emit_chunks<'c>(
    emit: &mut impl FnMut(&CStr, u64, &[u8]),
    command: &CStr,
    header: &[u8],
    chunk: impl Fn(u64) -> Option<(u64, &'c [u8])>,
) {
    emit(command, 1, header);
    let mut position = 1;
    while let Some((next, bytes)) = chunk(position) {
        emit(command, next, bytes);
        position = next;
    }
}
