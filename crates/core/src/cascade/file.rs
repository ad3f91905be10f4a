//! Cascades into files and back, and the face they show.
//!
//! The data are a directory, a line for each level, and then the levels. An entry of the
//! directory has what the header of a file of that level alone would have.

use std::borrow::Cow;
use std::io::{Read, Write};

use super::build::MOST_LEVELS;
use super::{Facts, FilterCascade};
use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::format::data::Data;
use crate::format::form::{self, Checked, Form};
use crate::format::header::{self, Header, MOST_INSERTED};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::membership::Membership;
use crate::membership::sealed::Sealed;
use crate::ribbon::StaticFilter;
use crate::store::{Lent, Line, Mapped, Mover, Store};

/// Bytes of an entry of the directory: a line.
pub(super) const ENTRY_BYTES: u64 = Line::BYTES as u64;

/// The entry of a level that takes so many lines.
fn entry(header: &Header, lines: u64) -> Line {
    let [columns, layers, ..] = header.parameters;
    let header::Facts { target, inserted, .. } = header.facts;
    Line([lines, header.extent, target.to_bits(), inserted, columns, layers, 0, 0].map(u64::to_le))
}

/// The header that a level would have alone, if the file still has so many bytes.
fn level_header(entry: &Line, hash: HashSpec, left: &mut u64) -> Result<Header> {
    let [lines, extent, target, inserted, columns, layers, rest @ ..] = entry.0.map(u64::from_le);
    let length = lines.checked_mul(Line::BYTES as u64).filter(|length| length <= left);
    let Some(length) = length else {
        return Err(Error::invalid("lines of a level", "no more than the file has", lines));
    };
    *left -= length;
    let target = f64::from_bits(target);
    if rest != [0; 2] || !(target > 0.0 && target < 1.0) || inserted > MOST_INSERTED {
        return Err(Error::invalid("level", "numbers that a filter can have", "others"));
    }
    let facts = header::Facts { planned: inserted, target, inserted };
    let mut header = Header::new(FilterType::Static, extent, hash, facts);
    header.parameters[..2].copy_from_slice(&[columns, layers]);
    header.data_length = length;
    Ok(header)
}

impl<S: Store> Form<S> for FilterCascade<S> {
    fn load(header: &Header, data: &mut impl Data<Store = S>) -> Result<Self> {
        if header.kind != FilterType::Cascade {
            let expected = FilterType::Cascade.name();
            return Err(Error::invalid("type of filter", expected, header.kind));
        }
        if header.probes != 0 || header.lanes != 0 {
            return Err(Error::invalid("probes and lanes", "0 in a cascade", "others"));
        }
        header.check_parameters(1)?;
        if !(1..=MOST_LEVELS).contains(&header.extent) {
            return Err(Error::invalid("levels", "1 to 96", header.extent));
        }
        let header::Facts { planned, target, inserted: members } = header.facts;
        if planned != members {
            return Err(Error::invalid("keys planned for", "the number of members", planned));
        }
        let directory = data.take(header.extent)?;
        let mut left = header.data_length.saturating_sub(header.extent * ENTRY_BYTES);
        let mut levels = Vec::with_capacity(header.extent as usize);
        for entry in directory.lines() {
            let alone = level_header(entry, header.hash, &mut left)?;
            levels.push(StaticFilter::load(&alone, data)?);
        }
        let facts = Facts { members, others: header.parameters[0], target };
        Ok(Self { hash: header.hash, levels, facts })
    }

    fn check(&self, data_at: u64, checked: Checked) -> Result<()> {
        let mut level_at = data_at + self.levels.len() as u64 * ENTRY_BYTES;
        for level in &self.levels {
            level.check(level_at, checked)?;
            level_at += level.size_bytes();
        }
        Ok(())
    }

    fn save(&self) -> (Header, Vec<Cow<'_, [Line]>>) {
        let Facts { members, others, target } = self.facts;
        let facts = header::Facts { planned: members, target, inserted: members };
        let extent = self.levels.len() as u64;
        let mut header = Header::new(FilterType::Cascade, extent, self.hash, facts);
        header.parameters[0] = others;
        let (mut directory, mut data) = (Vec::new(), vec![Cow::default()]);
        for level in &self.levels {
            let (alone, parts) = level.save();
            let lines = parts.iter().map(|part| part.len() as u64).sum();
            directory.push(entry(&alone, lines));
            data.extend(parts);
        }
        data[0] = Cow::Owned(directory);
        (header, data)
    }
}

impl FilterCascade {
    /// Reads a cascade and its metadata from a stream, every byte examined. Memory grows with what
    /// arrives.
    ///
    /// # Errors
    /// If reading fails, the bytes are no cascade's file, or are damaged in any way.
    pub fn read_from(stream: impl Read) -> Result<(Self, String)> {
        form::read_from(stream)
    }
}

impl<S: Store> FilterCascade<S> {
    /// Writes the cascade as a `.petal` file, with free-form metadata (JSON, or nothing).
    ///
    /// # Errors
    /// If the metadata is longer than 1 MiB, or writing fails.
    pub fn write_to(&self, out: impl Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }
}

impl FilterCascade {
    /// Offers its memory to be moved.
    pub(crate) fn relocate(&mut self, mover: &mut Mover<'_>) {
        self.levels.iter_mut().for_each(|level| level.relocate(mover));
    }
}

impl FilterCascade<Mapped> {
    /// A cascade in a mapped file, queried where it lies. Only the header and the directories are
    /// read.
    ///
    /// # Errors
    /// If the file is no cascade's, is cut short, or its header is damaged.
    pub fn open_mapped(file: Mapped) -> Result<Self> {
        form::open_mapped(&file)
    }

    /// Examines every byte of the file.
    ///
    /// # Errors
    /// If anything in it is damaged.
    pub fn verify(&self) -> Result<()> {
        form::verify(self, self.levels.first().map_or(&[], |level| level.file()))
    }

    /// The file's metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        self.levels.first().map_or("", |level| level.metadata())
    }
}

impl<'a> FilterCascade<Lent<'a>> {
    /// A cascade over the bytes of a whole file, in place; they must begin at a multiple of 64 in
    /// memory.
    ///
    /// # Errors
    /// As [`open_mapped`](FilterCascade::open_mapped); also if the bytes begin elsewhere.
    pub fn from_bytes(file: &'a [u8]) -> Result<Self> {
        form::from_bytes(file)
    }
}

impl<S: Store> Sealed for FilterCascade<S> {}

impl<S: Store> Membership for FilterCascade<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::Cascade
    }

    fn hash_spec(&self) -> HashSpec {
        self.hash_spec()
    }

    fn describe(&self) -> String {
        let Facts { members, others, .. } = self.facts;
        format!("{} levels, {members} members among {others} known others", self.levels())
    }

    fn geometry(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("levels", self.levels() as u64),
            ("members", self.members()),
            ("others", self.others()),
        ]
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers) {
        self.contains_mixed_hashes(hashes, found);
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }

    fn planned_keys(&self) -> u64 {
        self.members()
    }

    fn target_rate(&self) -> f64 {
        self.target_rate()
    }

    fn inserted(&self) -> u64 {
        self.members()
    }

    fn estimated_len(&self) -> f64 {
        self.members() as f64
    }

    fn expected_rate(&self, _: u64) -> f64 {
        self.estimated_rate()
    }

    fn estimated_rate(&self) -> f64 {
        self.estimated_rate()
    }

    fn fill_ratio(&self) -> f64 {
        1.0
    }

    fn capacity_left(&self) -> Option<u64> {
        None
    }

    fn write_to(&self, out: &mut dyn Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }
}
