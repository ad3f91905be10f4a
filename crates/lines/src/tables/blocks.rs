//! The parts of an Arrow IPC file or stream: dictionaries and batches of rows, with their places.
//!
//! Every length is compared with the file and with the memory before it is used. Of a compressed
//! buffer that includes the length that it has when it is decompressed.

use std::sync::Arc;

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{
    Block, CompressionType, Message, MetadataVersion, root_as_footer, root_as_message,
};
use arrow_schema::{Schema, SchemaRef};

use super::kind::TableKind;
use super::source::TableSource;
use crate::error::{Error, Result};
use crate::files::InputFile;

/// A dictionary or a batch of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Its message and its body are consecutive.
    block: Block,
    /// Number of rows; `None`: a dictionary.
    pub(super) rows: Option<u64>,
}

/// The parts of a file, in the order in which they are read.
pub(super) struct Blocks {
    pub(super) schema: SchemaRef,
    version: MetadataVersion,
    pub(super) parts: Vec<Part>,
    /// The compression of the first batch.
    pub(super) codec: Option<CompressionType>,
}

/// Which lengths of decompressed buffers are compared with the memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// The sum of all.
    All,
    /// Each for itself: only some columns are decompressed.
    Some,
}

/// Bytes at the end of a file: the length of the footer and a mark.
const TRAILER: usize = 10;

/// Bytes at the start of a file: the mark and padding.
const START: u64 = 8;

/// Bytes before a message: a mark and its length.
const PREFIX: usize = 8;

impl Blocks {
    /// Finds the parts. What describes them may take `memory` bytes.
    pub(super) fn open(source: &TableSource, file: &InputFile, memory: u64) -> Result<Self> {
        match source.kind {
            TableKind::ArrowStream => Self::of_stream(source, file, memory),
            _ => Self::of_file(source, file, memory),
        }
    }

    fn of_file(source: &TableSource, file: &InputFile, memory: u64) -> Result<Self> {
        let length = source.length();
        let mut trailer = [0; TRAILER];
        let end = length.checked_sub(TRAILER as u64);
        let end = end.ok_or_else(|| source.unreadable("it has no end"))?;
        source.read_at(file, &mut trailer, end)?;
        let size = read_footer_length(trailer).map_err(|_| {
            source.unreadable("it does not end as an Arrow file, so it is incomplete")
        })?;
        let at = end.checked_sub(size as u64).filter(|at| *at >= START);
        let at = at.ok_or_else(|| source.unreadable("its footer is longer than the file"))?;
        let bytes = read(source, file, at, size as u64, memory, "its footer")?;
        let footer = root_as_footer(&bytes).map_err(|error| source.unreadable(error))?;
        let schema = footer.schema().ok_or_else(|| source.unreadable("it has no schema"))?;
        let mut found = Self::new(read_schema(source, schema)?, footer.version());
        for block in footer.dictionaries().into_iter().flatten() {
            found.add(source, file, *block, memory)?;
        }
        for block in footer.recordBatches().into_iter().flatten() {
            found.add(source, file, *block, memory)?;
        }
        Ok(found)
    }

    fn of_stream(source: &TableSource, file: &InputFile, memory: u64) -> Result<Self> {
        let (mut at, mut found) = (0, None::<Self>);
        while at + PREFIX as u64 <= source.length() {
            let mut prefix = [0; PREFIX];
            source.read_at(file, &mut prefix, at)?;
            let [.., a, b, c, d] = prefix;
            let size = u32::from_le_bytes([a, b, c, d]);
            if size == 0 {
                at = source.length();
                break;
            }
            if prefix[..4] != [0xff; 4] {
                return Err(source.unreadable(format!("byte {at} begins no message")));
            }
            let length = PREFIX as u64 + u64::from(size);
            let bytes = read(source, file, at, length, memory, "a message")?;
            let message = message(source, &bytes)?;
            let body = message.bodyLength();
            match (&mut found, message.header_as_schema()) {
                (None, Some(schema)) => {
                    found = Some(Self::new(read_schema(source, schema)?, message.version()));
                }
                (Some(found), None) => {
                    let block = i32::try_from(length).ok().zip(i64::try_from(at).ok());
                    let block = block.map(|(length, at)| Block::new(at, length, body));
                    let block = block.ok_or_else(|| source.unreadable("a message is too long"))?;
                    found.add(source, file, block, memory)?;
                }
                _ => return Err(source.unreadable("it does not begin with a schema")),
            }
            let next = u64::try_from(body).ok().and_then(|body| at.checked_add(length + body));
            at = next.ok_or_else(|| source.unreadable("a message has a negative length"))?;
        }
        // A stream may end without a mark, but not within a message.
        if at != source.length() {
            return Err(source.unreadable("it ends within a batch, so it is incomplete"));
        }
        found.ok_or_else(|| source.unreadable("it has no schema"))
    }

    fn new(schema: Schema, version: MetadataVersion) -> Self {
        Self { schema: Arc::new(schema), version, parts: vec![], codec: None }
    }

    /// Adds a part after looking at its message.
    fn add(
        &mut self,
        source: &TableSource,
        file: &InputFile,
        block: Block,
        memory: u64,
    ) -> Result<()> {
        let (at, length, _) = place(source, &block)?;
        let bytes = read(source, file, at, length, memory, "a message")?;
        let message = message(source, &bytes)?;
        let rows = match message.header_as_record_batch() {
            Some(batch) => {
                self.codec = self.codec.or(batch.compression().map(|codec| codec.codec()));
                let rows = u64::try_from(batch.length()).ok();
                Some(rows.ok_or_else(|| source.unreadable("a batch has a negative length"))?)
            }
            None if message.header_as_dictionary_batch().is_some() => None,
            None => return Err(source.unreadable("a message is neither dictionary nor batch")),
        };
        self.parts.push(Part { block, rows });
        Ok(())
    }

    /// Returns a decoder that has no dictionary yet; `projection`: decode only these columns.
    pub(super) fn decoder(&self, projection: Option<Vec<usize>>) -> FileDecoder {
        let decoder = FileDecoder::new(SchemaRef::clone(&self.schema), self.version);
        match projection {
            Some(columns) => decoder.with_projection(columns),
            None => decoder,
        }
    }
}

impl Part {
    pub(super) fn block(&self) -> &Block {
        &self.block
    }

    /// Reads the message and the body, for which there are `memory` bytes in all.
    pub(super) fn read(
        &self,
        source: &TableSource,
        file: &InputFile,
        memory: u64,
        columns: Columns,
    ) -> Result<Buffer> {
        let what = if self.rows.is_some() { "a batch of rows" } else { "a dictionary" };
        let (at, length, body) = place(source, &self.block)?;
        let bytes = read(source, file, at, length + body, memory, what)?;
        let body = &bytes[length as usize..];
        let message = message(source, &bytes)?;
        let start = |from: u64| {
            let from = usize::try_from(from).unwrap_or(usize::MAX);
            Ok(body.get(from..).and_then(<[u8]>::first_chunk).copied())
        };
        let needed = decompressed(source, &message, columns, start)?;
        if needed > memory {
            return Err(source.too_large(what, needed, memory));
        }
        Ok(bytes)
    }

    /// Returns the memory that the part needs, decompressed or not.
    pub(super) fn needed(&self, source: &TableSource, file: &InputFile) -> Result<u64> {
        let (at, length, body) = place(source, &self.block)?;
        let bytes = read(source, file, at, length, u64::MAX, "a message")?;
        let start = |from: u64| {
            let mut start = [0; 8];
            let is_within = from.checked_add(8).is_some_and(|end| end <= body);
            is_within
                .then(|| source.read_at(file, &mut start, at + length + from).map(|()| start))
                .transpose()
        };
        let message = message(source, &bytes)?;
        Ok((length + body).max(decompressed(source, &message, Columns::All, start)?))
    }
}

/// Returns the decompressed length of the buffers of a message; 0 if they are not compressed. `start`
/// returns the first bytes from a position of the body on.
fn decompressed(
    source: &TableSource,
    message: &Message<'_>,
    columns: Columns,
    start: impl Fn(u64) -> Result<Option<[u8; 8]>>,
) -> Result<u64> {
    let batch = message.header_as_record_batch();
    let batch = batch.or_else(|| message.header_as_dictionary_batch()?.data());
    let compressed = batch.filter(|batch| batch.compression().is_some());
    let mut needed = 0u64;
    for buffer in compressed.and_then(|batch| batch.buffers()).into_iter().flatten() {
        let (Ok(from), Ok(size)) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length()))
        else {
            return Err(source.unreadable("a buffer has a negative length"));
        };
        // An empty buffer has no length before it; -1: it is not compressed.
        let length = if size >= 8 { start(from)? } else { None };
        let plain = length.map_or(0, i64::from_le_bytes);
        let plain = u64::try_from(plain).unwrap_or(0);
        needed = match columns {
            Columns::All => needed.saturating_add(plain),
            Columns::Some => needed.max(plain),
        };
    }
    Ok(needed)
}

/// Reads a schema. A type that the library does not have is an error of one column, if it is known.
fn read_schema(source: &TableSource, schema: arrow_ipc::Schema<'_>) -> Result<Schema> {
    try_fb_to_schema(schema).map_err(|error| {
        let wide = schema.fields().into_iter().flatten().find_map(|field| {
            let (name, bits) = (field.name()?, field.type_as_int()?.bitWidth());
            let unknown = !matches!(bits, 8 | 16 | 32 | 64);
            unknown.then(|| format!("column {name:?} has integers of {bits} bits"))
        });
        let problem = wide.unwrap_or_else(|| format!("its schema has an unknown type: {error}"));
        Error::input(&source.name, problem)
            .advise("convert the column to a type that other programs have")
    })
}

/// Returns the position of a block, the length of its message, and that of its body.
fn place(source: &TableSource, block: &Block) -> Result<(u64, u64, u64)> {
    let place = u64::try_from(block.offset()).ok().zip(u64::try_from(block.bodyLength()).ok());
    let place = place.zip(u64::try_from(block.metaDataLength()).ok().filter(|l| *l > 0));
    let within = place.filter(|((at, body), length)| {
        let end = at.checked_add(*length).and_then(|end| end.checked_add(*body));
        end.is_some_and(|end| end <= source.length())
    });
    let within = within.map(|((at, body), length)| (at, length, body));
    within.ok_or_else(|| source.unreadable("it ends within a batch, or names bytes beyond its end"))
}

/// Reads bytes, for which there are `memory` bytes. They are aligned as the decoder needs them.
fn read(
    source: &TableSource,
    file: &InputFile,
    at: u64,
    length: u64,
    memory: u64,
    what: &'static str,
) -> Result<Buffer> {
    if at.checked_add(length).is_none_or(|end| end > source.length()) {
        return Err(source.unreadable("it names bytes beyond its end"));
    }
    if length > memory {
        return Err(source.too_large(what, length, memory));
    }
    let mut buffer = MutableBuffer::from_len_zeroed(length as usize);
    source.read_at(file, buffer.as_slice_mut(), at)?;
    Ok(buffer.into())
}

/// Returns the message at the start of `bytes`, after its mark and length.
fn message<'a>(source: &TableSource, bytes: &'a [u8]) -> Result<Message<'a>> {
    let marked = bytes.starts_with(&[0xff; 4]);
    let bytes = bytes.get(if marked { PREFIX } else { PREFIX / 2 }..).unwrap_or_default();
    root_as_message(bytes).map_err(|error| source.unreadable(error))
}
