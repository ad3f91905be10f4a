//! Checks for tests and fuzz targets: every filter that loads can be used.

#![allow(clippy::unwrap_used, reason = "what fails here is a bug, and is to be seen")]

pub(super) use super::sketch::Field;
use super::{Bloom, Cuckoo, CuckooParams, Sketch, SketchType};
use crate::error::FilterError;
use crate::server::{FieldReader, FieldWriter};

/// Equal bits: a number that is not one equals itself.
impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unsigned(one), Self::Unsigned(other)) => one == other,
            (Self::Double(one), Self::Double(other)) => one.to_bits() == other.to_bits(),
            (Self::Bytes(one), Self::Bytes(other)) => one == other,
            _ => false,
        }
    }
}

/// A sequence of fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fields(pub(super) std::collections::VecDeque<Field>);

impl FieldReader for Fields {
    fn unsigned(&mut self) -> Result<u64, FilterError> {
        match self.0.pop_front() {
            Some(Field::Unsigned(number)) => Ok(number),
            _ => Err(FilterError::truncated()),
        }
    }

    fn double(&mut self) -> Result<f64, FilterError> {
        match self.0.pop_front() {
            Some(Field::Double(number)) => Ok(number),
            _ => Err(FilterError::truncated()),
        }
    }

    fn bytes(&mut self) -> Result<Box<[u8]>, FilterError> {
        match self.0.pop_front() {
            Some(Field::Bytes(bytes)) => Ok(bytes),
            _ => Err(FilterError::truncated()),
        }
    }
}

impl FieldWriter for Fields {
    fn unsigned(&mut self, number: u64) {
        self.0.push_back(Field::Unsigned(number));
    }

    fn double(&mut self, number: f64) {
        self.0.push_back(Field::Double(number));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.push_back(Field::Bytes(bytes.into()));
    }
}

pub(super) fn bloom_chunks(filter: &Bloom) -> Vec<(u64, Vec<u8>)> {
    let mut chunks = vec![(1, filter.header())];
    while let Some((position, chunk)) = filter.chunk(chunks.last().unwrap().0) {
        chunks.push((position, chunk.to_vec()));
    }
    chunks
}

pub(super) fn cuckoo_chunks(filter: &Cuckoo) -> Vec<(u64, Vec<u8>)> {
    let mut chunks = vec![(1, filter.header().to_vec())];
    while let Some((position, chunk)) = filter.chunk(chunks.last().unwrap().0) {
        chunks.push((position, chunk.to_vec()));
    }
    chunks
}

/// Loads and uses a Bloom filter. Returns `false` if the fields are rejected.
pub(super) fn use_bloom(fields: &Fields, version: i32) -> bool {
    let Ok(mut filter) = Bloom::load(version, &mut fields.clone()) else { return false };
    let limit = filter.memory_usage().saturating_add(1 << 20);
    let mut added: Vec<_> = (0..50u32).map(|key| filter.hash(&key.to_le_bytes())).collect();
    added.retain(|hash| filter.add(*hash, limit).is_ok());
    assert!(added.iter().all(|hash| filter.contains(*hash)));
    let mut saved = Fields::default();
    filter.save(&mut saved);
    let again = Bloom::load(4, &mut saved).unwrap();
    assert_eq!(bloom_chunks(&again), bloom_chunks(&filter));
    true
}

pub(super) fn use_cuckoo(fields: &Fields, version: i32) -> bool {
    let Ok(mut filter) = Cuckoo::load(version, &mut fields.clone()) else { return false };
    let limit = filter.memory_usage().saturating_add(1 << 20);
    let added: Vec<_> = (0..50u32)
        .map(|key| Cuckoo::hash(&key.to_le_bytes()))
        .take_while(|hash| filter.insert(*hash, || limit).is_ok())
        .collect();
    assert!(added.iter().all(|hash| filter.contains(*hash) && filter.count(*hash) > 0));
    let mut saved = Fields::default();
    filter.save(&mut saved);
    let again = Cuckoo::load(4, &mut saved);
    assert_eq!(again.map(|again| cuckoo_chunks(&again)), Ok(cuckoo_chunks(&filter)));
    added.iter().for_each(|hash| assert!(filter.delete(*hash)));
    filter.compact(true);
    true
}

/// Loads and copies a sketch, which saves the fields that it has read. Returns `false` if the fields are
/// rejected.
pub(super) fn use_sketch(
    sketch_type: SketchType,
    fields: &Fields,
    version: i32,
    limit: u64,
) -> bool {
    let mut left = fields.clone();
    let Ok(sketch) = Sketch::load(sketch_type, version, limit, &mut left) else { return false };
    assert!(sketch.memory_usage() <= limit.saturating_add(size_of::<Sketch>() as u64));
    let mut read = fields.clone();
    read.0.truncate(fields.0.len() - left.0.len());
    for sketch in [sketch.copy().unwrap(), sketch] {
        let mut saved = Fields::default();
        sketch.save(&mut saved);
        assert_eq!(saved, read);
    }
    true
}

/// Decodes fuzz input to choices.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// Returns a number of any magnitude.
    fn number(&mut self) -> u64 {
        let (size, low) = (self.byte(), u64::from(self.byte()));
        let high = u64::from(self.byte()) << 8 | low;
        match size % 4 {
            0 => low,
            1 => high,
            2 => high.rotate_right(u32::from(size)),
            _ => u64::MAX - high,
        }
    }

    fn bytes(&mut self) -> Box<[u8]> {
        let length = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes.into()
    }

    fn field(&mut self) -> Field {
        match self.byte() % 3 {
            0 => Field::Unsigned(self.number()),
            1 => Field::Double(f64::from_bits(self.number())),
            _ => Field::Bytes(self.bytes()),
        }
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns small filters with some keys.
fn filters(source: &mut Source<'_>) -> (Bloom, Cuckoo) {
    let (keys, growth) = (u64::from(source.byte()) + 1, source.byte());
    let growth = Some(u32::from(growth % 8)).filter(|growth| *growth > 0);
    let mut bloom = Bloom::reserve(keys, 1.0 / (keys + 1) as f64, growth, u64::MAX).unwrap();
    let expansion = u16::from(source.byte() % 5);
    let params = CuckooParams::new(keys, u16::from(source.byte() % 7) + 1, 20, expansion).unwrap();
    let mut cuckoo = Cuckoo::new(params, u64::MAX).unwrap();
    for key in 0..source.byte() {
        _ = bloom.add(bloom.hash(&[key]), 1 << 20);
        _ = cuckoo.insert(Cuckoo::hash(&[key]), || 1 << 20);
    }
    (bloom, cuckoo)
}

/// The fields of a valid sketch: `U` is one of these numbers, `D` a double, `B` bytes.
pub(super) fn sketch_fields(types: &str, numbers: &[u64]) -> Fields {
    let mut numbers = numbers.iter();
    let field = |field| match field {
        'U' => Field::Unsigned(numbers.next().copied().unwrap_or(0)),
        'D' => Field::Double(0.5),
        _ => Field::Bytes(Box::from(&b"bytes"[..])),
    };
    Fields(types.chars().map(field).collect())
}

/// Returns the fields of a small sketch.
fn sketch(source: &mut Source<'_>) -> (SketchType, Fields) {
    let kind = source.byte();
    let [one, other] = [source.byte(), source.byte()].map(|count| count % 8);
    let numbers = [one, other].map(u64::from);
    match kind % 3 {
        0 => (SketchType::CountMin, sketch_fields("UUUB", &numbers)),
        1 => {
            let types = format!("UUUDBB{}", "B".repeat(one.into()));
            (SketchType::TopK, sketch_fields(&types, &numbers))
        }
        _ => {
            let types = format!("DDDUUUUDD{}", "DD".repeat((one + other).into()));
            (SketchType::TDigest, sketch_fields(&types, &[610, numbers[0], numbers[1]]))
        }
    }
}

/// Loads arbitrary fields, or fields of filters and sketches with some replaced.
pub(crate) fn fields(data: &[u8]) {
    let mut source = Source(data);
    let (bloom, cuckoo) = filters(&mut source);
    let (sketch_type, mut sketches) = sketch(&mut source);
    let (mut blooms, mut cuckoos) = (Fields::default(), Fields::default());
    if source.byte() % 8 > 0 {
        bloom.save(&mut blooms);
        cuckoo.save(&mut cuckoos);
    } else {
        sketches = Fields::default();
    }
    let version = i32::from(source.byte() % 6);
    // Some sketches are too large.
    let limit = 1 << (source.byte() % 16);
    while !source.is_over() {
        for fields in [&mut blooms, &mut cuckoos, &mut sketches] {
            let at = source.byte();
            match fields.0.get_mut(usize::from(at)) {
                Some(field) => *field = source.field(),
                None => fields.0.push_back(source.field()),
            }
        }
    }
    use_bloom(&blooms, version);
    use_cuckoo(&cuckoos, version);
    use_sketch(sketch_type, &sketches, version, limit);
    use_bloom(&blooms, 4);
    use_cuckoo(&cuckoos, 4);
    use_sketch(sketch_type, &sketches, 0, u64::MAX);
}

/// Loads chunks of filters at arbitrary positions, after a header with changed bytes.
pub(crate) fn chunks(data: &[u8]) {
    const LIMIT: u64 = 1 << 20;
    let mut source = Source(data);
    let (bloom, cuckoo) = filters(&mut source);
    let (mut blooms, mut cuckoos) = (bloom.header(), cuckoo.header().to_vec());
    for header in [&mut blooms, &mut cuckoos] {
        for _ in 0..source.byte() % 8 {
            let at = usize::from(source.byte()) % header.len();
            header[at] = source.byte();
        }
    }
    let mut bloom = Bloom::from_header(&blooms, LIMIT);
    let mut cuckoo = Cuckoo::from_header(&cuckoos, LIMIT);
    while !source.is_over() {
        let (position, bytes) = (source.number(), source.bytes());
        let key = [source.byte()];
        if let Ok(filter) = &mut bloom {
            assert!(filter.memory_usage() <= LIMIT);
            _ = filter.put_chunk(position, &bytes);
            let added = filter.add(filter.hash(&key), LIMIT);
            assert!(added.is_err() || filter.contains(filter.hash(&key)));
            assert!(filter.chunk(position).is_none_or(|(next, _)| next > position));
        }
        if let Some(Ok(filter)) = &mut cuckoo {
            assert!(filter.memory_usage() <= LIMIT);
            _ = filter.put_chunk(position, &bytes);
            let added = filter.insert(Cuckoo::hash(&key), || LIMIT);
            assert!(added.is_err() || filter.contains(Cuckoo::hash(&key)));
            filter.delete(Cuckoo::hash(&bytes));
            if position % 16 == 0 {
                filter.compact(position % 32 == 0);
            }
            assert!(filter.chunk(position).is_none_or(|(next, _)| next > position));
        }
    }
}
