//! Cascades into files and back, and the face they show.
//!
//! The data are a directory, three lines for each level, and then the levels. An entry of the
//! directory has what the header of a file of that level alone would have.

use std::borrow::Cow;
use std::io::{Read, Write};

use super::build::level_seed;
use super::{Facts, FilterCascade, build};
use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::format::data::Data;
use crate::format::form::{self, Form};
use crate::format::header::{self, Header, PARAMETERS};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::membership::Membership;
use crate::membership::sealed::Sealed;
use crate::ribbon::StaticFilter;
use crate::store::{Lent, Line, Mapped, Store};

/// Lines of an entry of the directory.
const ENTRY: usize = 3;
/// Bytes of an entry.
pub(super) const ENTRY_BYTES: u64 = (ENTRY * Line::BYTES) as u64;
/// Words of an entry: see docs/format.md.
const WORDS: usize = ENTRY * 8;
const AT_PARAMETERS: usize = 6;
const _: () = assert!(AT_PARAMETERS + PARAMETERS == WORDS);

/// The entry of a level.
fn entry(header: &Header, lines: u64) -> [Line; ENTRY] {
    let mut words = [0; WORDS];
    words[0] = lines;
    words[1] = u64::from(header.probes) << 16 | u64::from(header.lanes);
    words[2] = header.extent;
    words[3] = header.facts.planned;
    words[4] = header.facts.target.to_bits();
    words[5] = header.facts.inserted;
    words[AT_PARAMETERS..].copy_from_slice(&header.parameters);
    std::array::from_fn(|line| Line(std::array::from_fn(|at| words[line * 8 + at].to_le())))
}

/// The header that a level would have alone, of a file with so many bytes of data.
fn level_header(entry: &[Line], hash: HashSpec, left: &mut u64) -> Result<Header> {
    let words: Vec<u64> = entry.iter().flat_map(|line| line.0.map(u64::from_le)).collect();
    let length = words[0].checked_mul(Line::BYTES as u64).filter(|length| length <= left);
    let Some(length) = length else {
        return Err(Error::invalid("lines of a level", "no more than the file has", words[0]));
    };
    *left -= length;
    let target = f64::from_bits(words[4]);
    if words[1] >> 32 != 0 || !(0.0..1.0).contains(&target) {
        return Err(Error::invalid("level", "numbers that a filter can have", "others"));
    }
    let facts = header::Facts { planned: words[3], target, inserted: words[5].min(u64::MAX >> 1) };
    let mut header = Header::new(FilterType::Static, words[2], hash, facts);
    (header.probes, header.lanes) = ((words[1] >> 16) as u16, words[1] as u16);
    header.parameters.copy_from_slice(&words[AT_PARAMETERS..]);
    header.data_length = length;
    Ok(header)
}

impl<S: Store> Form<S> for FilterCascade<S> {
    fn load(header: &Header, data: &mut impl Data<Store = S>) -> Result<Self> {
        if header.kind != FilterType::Cascade {
            let expected = FilterType::Cascade.name();
            return Err(Error::invalid("type of filter", expected, header.kind));
        }
        header.check_parameters(2)?;
        if header.probes != 0 || header.lanes != 0 {
            return Err(Error::invalid("probes and lanes", "0 in a cascade", "others"));
        }
        if !(1..=build::MOST_LEVELS as u64).contains(&header.extent) {
            return Err(Error::invalid("levels", "1 to 96", header.extent));
        }
        let [others, salt, ..] = header.parameters;
        if salt >= build::TRIES {
            return Err(header.bad_parameter(1, "0 to 7"));
        }
        let directory = data.take(header.extent * ENTRY as u64)?;
        let mut left = header.data_length.saturating_sub(header.extent * ENTRY_BYTES);
        let mut levels = Vec::with_capacity(header.extent as usize);
        for (at, entry) in directory.lines().chunks_exact(ENTRY).enumerate() {
            let alone = level_header(entry, header.hash, &mut left)?;
            levels.push(StaticFilter::load_level(&alone, data, level_seed(salt, at))?);
        }
        let header::Facts { planned, target, inserted } = header.facts;
        if planned != inserted {
            return Err(Error::invalid("keys planned for", "the members", planned));
        }
        let facts = Facts { members: inserted, others, target, salt };
        Ok(Self { hash: header.hash, levels, facts })
    }

    fn check(&self, data_at: u64) -> Result<()> {
        self.levels.iter().try_for_each(|level| level.check(data_at))
    }

    fn save(&self) -> (Header, Vec<Cow<'_, [Line]>>) {
        let Facts { members, others, target, salt } = self.facts;
        let facts = header::Facts { planned: members, target, inserted: members };
        let extent = self.levels.len() as u64;
        let mut header = Header::new(FilterType::Cascade, extent, self.hash, facts);
        header.parameters[..2].copy_from_slice(&[others, salt]);
        let (mut directory, mut data) = (Vec::new(), vec![Cow::default()]);
        for level in &self.levels {
            let (alone, parts) = level.save();
            let lines = parts.iter().map(|part| part.len() as u64).sum();
            directory.extend(entry(&alone, lines));
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

impl FilterCascade<Mapped> {
    /// A cascade in a mapped file, queried where it lies. Only the header and the directories are
    /// read.
    ///
    /// # Errors
    /// If the file is no cascade's, is cut short, or its header is damaged.
    pub fn open_mapped(file: Mapped) -> Result<Self> {
        form::open_mapped(&file)
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

    fn contains_hashes(&self, hashes: &[u64], found: &mut Answers) {
        self.contains_hashes(hashes, found);
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
