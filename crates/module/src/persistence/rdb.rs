//! RDB fields of a filter.

use super::CHUNK_BYTES;
use crate::error::FilterError;
use crate::filters::{PartialImport, StoredFilter, StoredType};
use crate::redisbloom;
use crate::server::{FieldReader, FieldWriter};

/// Memory that a filter may use beyond its limit, for headers.
const MEMORY_OVERHEAD: u64 = 4096;

// The first field of a value in petal's layout.
const CONTAINER: u64 = 0;
const PARTIAL_CONTAINER: u64 = 1;
const PARTIAL_FILE: u64 = 2;

/// Writes a filter. In petal's layout: the content, then chunks until an empty one.
pub(crate) fn save(stored: &StoredFilter, out: &mut impl FieldWriter) {
    match stored {
        StoredFilter::Partial(import) => {
            out.unsigned(match import.damage() {
                Some(_) => CONTAINER,
                None if import.is_file() => PARTIAL_FILE,
                None => PARTIAL_CONTAINER,
            });
            import.received_chunks(CHUNK_BYTES, |chunk| out.bytes(chunk));
            out.bytes(&[]);
        }
        StoredFilter::RedisBloom(filter) => filter.save(out),
        StoredFilter::RedisCuckoo(filter) => filter.save(out),
        stored => {
            if let Some(container) = stored.container() {
                out.unsigned(CONTAINER);
                container.chunks(CHUNK_BYTES).for_each(|chunk| out.bytes(&chunk));
                out.bytes(&[]);
            }
        }
    }
}

/// Reads a filter within a memory limit and validates every byte.
///
/// # Errors
/// If the value is invalid, or larger than the limit.
pub(crate) fn load(
    stored_type: StoredType,
    version: i32,
    memory_limit: u64,
    input: &mut impl FieldReader,
) -> Result<StoredFilter, FilterError> {
    let stored = match (stored_type, version) {
        (StoredType::Petal, 1) => load_petal(memory_limit, input),
        (StoredType::RedisBloom, version) => {
            redisbloom::Bloom::load(version, input).map(StoredFilter::from)
        }
        (StoredType::RedisCuckoo, version) => {
            redisbloom::Cuckoo::load(version, input).map(StoredFilter::from)
        }
        (StoredType::Petal, version) => Err(FilterError::Malformed(format!(
            "encoding version {version} of type petal-flt is not supported"
        ))),
    }?;
    // The import of a container checks the limit itself.
    if stored_type != StoredType::Petal
        && stored.memory_usage() > memory_limit.saturating_add(MEMORY_OVERHEAD)
    {
        return Err(FilterError::OverLimit { bytes: stored.memory_usage(), limit: memory_limit });
    }
    Ok(stored)
}

fn load_petal(
    memory_limit: u64,
    input: &mut impl FieldReader,
) -> Result<StoredFilter, FilterError> {
    let content = input.unsigned()?;
    let mut import = match content {
        CONTAINER | PARTIAL_CONTAINER => PartialImport::container(memory_limit),
        PARTIAL_FILE => PartialImport::file(memory_limit),
        other => {
            let reason = format!("content {other} of type petal-flt is not supported");
            return Err(FilterError::Malformed(reason));
        }
    };
    let mut complete = None;
    loop {
        let chunk = input.bytes()?;
        if chunk.is_empty() {
            break;
        }
        if complete.is_some() {
            return FilterError::malformed("bytes after the end of the container");
        }
        complete = import.push(&chunk)?;
    }
    match (content, complete) {
        (CONTAINER, Some(content)) => StoredFilter::from_content(content),
        // An empty import cannot be written to an append-only file.
        (PARTIAL_CONTAINER | PARTIAL_FILE, None) if import.received_bytes() > 0 => {
            Ok(StoredFilter::Partial(Box::new(import)))
        }
        _ => Err(FilterError::truncated()),
    }
}

/// Passes the bytes of all fields to a function. Filters with the same bytes give the same replies,
/// now and after the same commands.
pub(crate) struct DigestWriter<F>(pub(crate) F);

impl<F: FnMut(&[u8])> FieldWriter for DigestWriter<F> {
    fn unsigned(&mut self, number: u64) {
        self.0(&number.to_le_bytes());
    }

    fn double(&mut self, number: f64) {
        self.0(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0(bytes);
    }
}
