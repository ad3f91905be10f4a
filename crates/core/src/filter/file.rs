//! Filters into files and back: the glue between [`Filter`] and the format.

use std::io::{Read, Write};

use super::geometry::Geometry;
use super::geometry::sealed::Fields;
use super::{Facts, Filter};
use crate::error::{Error, Result};
use crate::format::header::Header;
use crate::format::{read, write};
use crate::store::{Lent, Mapped, Owned, Store, bytes_of};

/// Shape and facts of a header, for a layout.
fn parts<G: Geometry>(header: &Header) -> Result<(G, Facts)> {
    if header.kind != G::KIND {
        return Err(Error::invalid("type of filter", name(G::KIND), name(header.kind)));
    }
    let Header { kind, probes, lanes, extent, .. } = *header;
    let shape = G::from_fields(Fields { kind, probes, lanes, extent })?;
    header.check_lines(shape.lines())?;
    let Header { planned, target, inserted, .. } = *header;
    // Nobody inserts so many keys, and counting on from what is claimed shall not overflow.
    let inserted = inserted.min(u64::MAX >> 1);
    Ok((shape, Facts { planned, target, inserted }))
}

fn name(kind: u16) -> &'static str {
    match kind {
        1 => "blocked",
        2 => "classic",
        _ => "unknown",
    }
}

impl<G: Geometry, S: Store> Filter<G, S> {
    /// Writes the filter as a `.petal` file, with free-form metadata (JSON, or nothing).
    ///
    /// The same filter gives the same bytes on every machine. docs/format.md describes them.
    ///
    /// # Errors
    /// If the metadata is longer than 1 MiB, or writing fails.
    pub fn write_to(&self, out: impl Write, metadata: &str) -> Result<()> {
        let Fields { kind, probes, lanes, extent } = self.shape.fields();
        let Facts { planned, target, inserted } = self.facts();
        let hash = self.hash_spec();
        let (metadata_length, data_length, data_sum) = (0, 0, 0);
        let header = Header {
            kind,
            probes,
            lanes,
            extent,
            hash,
            planned,
            target,
            inserted,
            metadata_length,
            data_length,
            data_sum,
        };
        write::write(out, header, metadata, bytes_of(self.store().lines()))
    }
}

impl<G: Geometry> Filter<G> {
    /// Reads a filter and its metadata from a stream, every byte examined. Memory grows with what
    /// arrives, not with what a header claims.
    ///
    /// # Errors
    /// If reading fails, the bytes are no petal file of this layout, or are damaged in any way.
    pub fn read_from(stream: impl Read) -> Result<(Self, String)> {
        let lines = |header: &Header| Ok(parts::<G>(header)?.0.lines());
        let (header, metadata, store) = read::read(stream, lines)?;
        let (shape, facts) = parts(&header)?;
        Ok((Self::over(shape, header.hash, facts, store), metadata))
    }
}

impl<G: Geometry> Filter<G, Mapped> {
    /// A filter in a mapped file, queried where it lies. Only the header is read; call
    /// [`verify`](Self::verify) to have every byte examined.
    ///
    /// # Errors
    /// If the file is no petal file of this layout, is cut short, or its header is damaged.
    pub fn open_mapped(file: Mapped) -> Result<Self> {
        let (header, _) = read::open(file.file())?;
        let (shape, facts) = parts(&header)?;
        let (start, end) = (header.data_at() as usize, header.file_length() as usize);
        Ok(Self::over(shape, header.hash, facts, file.between(start, end)?))
    }

    /// Examines every byte of the file.
    ///
    /// # Errors
    /// If anything in it is damaged.
    pub fn verify(&self) -> Result<()> {
        read::verify(self.store().file())
    }

    /// The file's metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        read::open(self.store().file()).map_or("", |(_, metadata)| metadata)
    }
}

impl<'a, G: Geometry> Filter<G, Lent<'a>> {
    /// A filter over the bytes of a whole file, in place; they must begin at a multiple of 64 in
    /// memory. Only the header is examined.
    ///
    /// # Errors
    /// If they are no petal file of this layout, are cut short or too long, begin elsewhere, or
    /// the header is damaged.
    pub fn from_bytes(file: &'a [u8]) -> Result<Self> {
        let (header, _) = read::open(file)?;
        let (shape, facts) = parts(&header)?;
        let store = Lent::new(&file[header.data_at() as usize..])?;
        Ok(Self::over(shape, header.hash, facts, store))
    }
}

/// Examines every byte of a whole file, whatever its layout.
///
/// # Errors
/// If it is no petal file, or anything in it is damaged.
pub fn verify_bytes(file: &[u8]) -> Result<()> {
    let (header, _) = read::open(file)?;
    check_any(&header)?;
    read::verify(file)
}

/// The layout of a header, its numbers checked.
pub(crate) fn check_any(header: &Header) -> Result<u64> {
    match header.kind {
        1 => Ok(parts::<crate::Shape>(header)?.0.lines()),
        2 => Ok(parts::<crate::ClassicShape>(header)?.0.lines()),
        kind => Err(Error::version(kind)),
    }
}

/// Reads a filter of any layout.
pub(crate) fn read_any(stream: impl Read) -> Result<(Header, String, Owned)> {
    read::read(stream, check_any)
}

/// A filter of this layout from a header and its lines.
pub(crate) fn assemble<G: Geometry, S: Store>(header: &Header, store: S) -> Result<Filter<G, S>> {
    let (shape, facts) = parts(header)?;
    Ok(Filter::over(shape, header.hash, facts, store))
}
