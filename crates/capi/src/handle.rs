//! The filter behind a pointer of C.

use std::ffi::CString;
use std::path::Path;

use petal::{
    AnyFilter, BatchResults, Borrowed, FilterCascade, FilterSpec, FilterType, Mapped, Membership,
    MembershipMut, Secret, StaticFilter, verify_bytes,
};
use petal_interop::ForeignFilter;

use crate::error::{Failure, PetalCode};

/// A filter: petal's own, or that of another program.
pub struct PetalFilter {
    filter: Kind,
    /// The name of the type, or of the format of another program.
    type_name: CString,
    /// The metadata of its file.
    metadata: CString,
}

enum Kind {
    Owned(AnyFilter),
    Mapped(AnyFilter<Mapped>),
    /// The caller keeps the bytes until the filter is freed.
    Borrowed(AnyFilter<Borrowed<'static>>, &'static [u8]),
    Foreign(ForeignFilter<Vec<u8>>),
}

/// Keys that are hashed at once.
const CHUNK: usize = 1024;

impl PetalFilter {
    fn new(filter: Kind, metadata: &str) -> Self {
        let name = match &filter {
            Kind::Owned(filter) => filter.filter_type().name(),
            Kind::Mapped(filter) => filter.filter_type().name(),
            Kind::Borrowed(filter, _) => filter.filter_type().name(),
            Kind::Foreign(filter) => filter.format().name(),
        };
        // Text of C ends at a zero byte.
        let text = |text: &str| CString::new(text.split('\0').next().unwrap_or_default());
        let (type_name, metadata) = (text(name), text(metadata));
        Self {
            filter,
            type_name: type_name.unwrap_or_default(),
            metadata: metadata.unwrap_or_default(),
        }
    }

    pub(crate) fn build(spec: &FilterSpec) -> Result<Self, Failure> {
        if spec.filter_type.is_fixed() {
            let text = format!(
                "{} is built from all its keys: use petal_build_from_keys",
                spec.filter_type
            );
            return Err(Failure::new(PetalCode::PetalUnsupported, text));
        }
        Ok(Self::new(Kind::Owned(AnyFilter::build(spec)?), ""))
    }

    /// Builds a filter of all its keys; `others` are the non-members of a cascade.
    pub(crate) fn build_from<'a>(
        spec: &FilterSpec,
        keys: impl Iterator<Item = &'a [u8]>,
        others: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, Failure> {
        let (mut hashes, mut other_hashes) = (Vec::new(), Vec::new());
        spec.hash.hash_all(keys, &mut hashes);
        spec.hash.hash_all(others, &mut other_hashes);
        let filter_type = spec.filter_type;
        if filter_type != FilterType::Cascade && !other_hashes.is_empty() {
            let text = format!("a {filter_type} filter takes no non-members: use a cascade");
            return Err(Failure::new(PetalCode::PetalUnsupported, text));
        }
        if !filter_type.is_fixed() {
            let mut filter = AnyFilter::build(spec)?;
            filter.as_dyn_mut()?.insert_mixed_hashes(&hashes, &mut BatchResults::new())?;
            return Ok(Self::new(Kind::Owned(filter), ""));
        }
        let FilterSpec { fpr, hash, .. } = *spec;
        let own = FilterSpec { fpr, hash, ..FilterSpec::new(filter_type) };
        let Some(fpr) = fpr.filter(|_| *spec == own) else {
            let text = format!(
                "{filter_type} has the field fpr, such as fpr=0.01, and no others but seed"
            );
            return Err(Failure::new(PetalCode::PetalInvalid, text));
        };
        let filter: AnyFilter = if filter_type == FilterType::Cascade {
            let builder = FilterCascade::builder().fpr(fpr).hash(hash);
            builder.from_mixed_hashes(&hashes, &other_hashes)?.into()
        } else {
            let builder = StaticFilter::builder().fpr(fpr).hash(hash);
            builder.fuse(filter_type == FilterType::StaticFuse).from_mixed_hashes(hashes)?.into()
        };
        Ok(Self::new(Kind::Owned(filter), ""))
    }

    /// Opens a mapped file of petal, or reads one of another program.
    pub(crate) fn open(path: &Path, map: Mapped, secret: Option<&Secret>) -> Result<Self, Failure> {
        match AnyFilter::open_mapped_with(map, secret) {
            Ok(filter) => {
                let metadata = filter.metadata().to_owned();
                Ok(Self::new(Kind::Mapped(filter), &metadata))
            }
            Err(error) if error.is_foreign() => {
                let foreign = ForeignFilter::from_bytes(std::fs::read(path)?, None)?;
                foreign.verify()?;
                Ok(Self::new(Kind::Foreign(foreign), ""))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the bytes of a file: those of petal without a copy if they are aligned to 64 bytes.
    pub(crate) fn from_bytes(
        bytes: &'static [u8],
        secret: Option<&Secret>,
    ) -> Result<Self, Failure> {
        if bytes.as_ptr().addr().is_multiple_of(64) {
            match verify_bytes(bytes) {
                Ok(()) => {
                    let filter = AnyFilter::<Borrowed<'_>>::from_bytes_with(bytes, secret)?;
                    let metadata = petal::embed::metadata_of_file(bytes)?;
                    return Ok(Self::new(Kind::Borrowed(filter, bytes), metadata));
                }
                Err(error) if error.is_foreign() => {}
                Err(error) => return Err(error.into()),
            }
        }
        match AnyFilter::read_from_with(bytes, secret) {
            Ok((filter, metadata)) => Ok(Self::new(Kind::Owned(filter), &metadata)),
            Err(error) if error.is_foreign() => {
                let foreign = ForeignFilter::from_bytes(bytes.to_vec(), None)?;
                foreign.verify()?;
                Ok(Self::new(Kind::Foreign(foreign), ""))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn own(&self) -> Result<&dyn Membership, Failure> {
        match &self.filter {
            Kind::Owned(filter) => Ok(filter.as_dyn()),
            Kind::Mapped(filter) => Ok(filter.as_dyn()),
            Kind::Borrowed(filter, _) => Ok(filter.as_dyn()),
            Kind::Foreign(_) => Err(Failure::new(
                PetalCode::PetalUnsupported,
                "a filter of another program can be queried, filled and saved only",
            )),
        }
    }

    fn owned(&mut self) -> Result<&mut AnyFilter, Failure> {
        match &mut self.filter {
            Kind::Owned(filter) => Ok(filter),
            Kind::Foreign(_) => Err(Failure::new(
                PetalCode::PetalUnsupported,
                "a filter of another program has no deletion and no union here",
            )),
            _ => Err(Failure::new(
                PetalCode::PetalUnsupported,
                "the filter is in a file or in your memory: change a copy made by petal_copy",
            )),
        }
    }

    /// Copies the filter to memory of its own.
    pub(crate) fn copy(&self) -> Result<Self, Failure> {
        let filter = match &self.filter {
            Kind::Owned(filter) => Kind::Owned(filter.try_clone()?),
            Kind::Mapped(filter) => Kind::Owned(filter.try_clone()?),
            Kind::Borrowed(filter, _) => Kind::Owned(filter.try_clone()?),
            Kind::Foreign(filter) => {
                let copy =
                    ForeignFilter::from_bytes(filter.as_bytes().to_vec(), Some(filter.format()))?;
                Kind::Foreign(copy)
            }
        };
        Ok(Self { filter, type_name: self.type_name.clone(), metadata: self.metadata.clone() })
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool, Failure> {
        Ok(match &self.filter {
            Kind::Owned(filter) => filter.contains(key),
            Kind::Mapped(filter) => filter.contains(key),
            Kind::Borrowed(filter, _) => filter.contains(key),
            Kind::Foreign(filter) => filter.contains(key)?,
        })
    }

    /// Looks up keys; `found` gets an answer for each.
    pub(crate) fn contains_batch<'a>(
        &self,
        keys: impl Iterator<Item = &'a [u8]>,
        found: &mut [bool],
    ) -> Result<(), Failure> {
        let Ok(filter) = self.own() else {
            for (key, found) in keys.zip(found) {
                *found = self.contains(key)?;
            }
            return Ok(());
        };
        let (mut hashes, mut results) = (Vec::new(), BatchResults::new());
        let mut keys = keys.into_iter();
        for found in found.chunks_mut(CHUNK) {
            hashes.clear();
            filter.hash_spec().hash_all(keys.by_ref().take(found.len()), &mut hashes);
            filter.contains_mixed_hashes(&hashes, &mut results);
            for (at, found) in found.iter_mut().enumerate() {
                *found = results.get(at);
            }
        }
        Ok(())
    }

    pub(crate) fn insert(&mut self, key: &[u8]) -> Result<bool, Failure> {
        match &mut self.filter {
            Kind::Foreign(filter) => Ok(filter.insert(key)?),
            _ => Ok(self.owned()?.insert(key)?),
        }
    }

    /// Inserts keys; `new`, if it is given, gets a result for each.
    pub(crate) fn insert_batch<'a>(
        &mut self,
        keys: impl Iterator<Item = &'a [u8]>,
        count: usize,
        mut new: Option<&mut [bool]>,
    ) -> Result<(), Failure> {
        if let Kind::Foreign(filter) = &mut self.filter {
            for (at, key) in keys.enumerate() {
                let is_new = filter.insert(key)?;
                new.iter_mut().for_each(|new| new[at] = is_new);
            }
            return Ok(());
        }
        self.change_batch(keys, count, |filter, at, hashes, results| {
            filter.insert_mixed_hashes(hashes, results)?;
            if let Some(new) = &mut new {
                (0..hashes.len()).for_each(|key| new[at + key] = results.get(key));
            }
            Ok(())
        })
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<bool, Failure> {
        let mut removed = false;
        self.change_batch([key].into_iter(), 1, |filter, _, hashes, results| {
            filter.remove_mixed_hashes(hashes, results)?;
            removed = results.get(0);
            Ok(())
        })?;
        Ok(removed)
    }

    fn change_batch<'a>(
        &mut self,
        mut keys: impl Iterator<Item = &'a [u8]>,
        count: usize,
        mut change: impl FnMut(
            &mut dyn MembershipMut,
            usize,
            &[u64],
            &mut BatchResults,
        ) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let filter = self.owned()?.as_dyn_mut()?;
        let (mut hashes, mut results) = (Vec::new(), BatchResults::new());
        for at in (0..count).step_by(CHUNK) {
            hashes.clear();
            filter.hash_spec().hash_all(keys.by_ref().take(CHUNK.min(count - at)), &mut hashes);
            change(filter, at, &hashes, &mut results)?;
        }
        Ok(())
    }

    /// Moves the window of a filter that forgets with time.
    pub(crate) fn advance(&mut self, now: u64) -> Result<(), Failure> {
        match self.owned()? {
            AnyFilter::Windowed(filter) => {
                filter.advance_to(now);
                Ok(())
            }
            filter => {
                let text = format!("a {} filter has no window: use windowed", filter.filter_type());
                Err(Failure::new(PetalCode::PetalUnsupported, text))
            }
        }
    }

    pub(crate) fn union(&mut self, other: &Self) -> Result<(), Failure> {
        let ours = self.owned()?;
        match &other.filter {
            Kind::Owned(other) => ours.union(other)?,
            Kind::Mapped(other) => ours.union(other)?,
            Kind::Borrowed(other, _) => ours.union(other)?,
            Kind::Foreign(_) => _ = other.own()?,
        }
        Ok(())
    }

    pub(crate) fn verify(&self) -> Result<(), Failure> {
        match &self.filter {
            Kind::Owned(_) => {}
            Kind::Mapped(filter) => filter.verify()?,
            Kind::Borrowed(_, bytes) => verify_bytes(bytes)?,
            Kind::Foreign(filter) => filter.verify()?,
        }
        Ok(())
    }

    /// Writes the file, which appears when it is complete. Without `metadata` that of the filter is kept.
    pub(crate) fn save(&self, path: &Path, metadata: Option<&str>) -> Result<(), Failure> {
        let kept = self.metadata.to_str().unwrap_or_default();
        match &self.filter {
            Kind::Foreign(_) if metadata.is_some() => {
                return Err(Failure::new(
                    PetalCode::PetalUnsupported,
                    "a file of another program has no place for metadata: save it without",
                ));
            }
            Kind::Foreign(filter) => petal::embed::replace_file(path, |out| {
                filter.write_to(out, false).map_err(|error| std::io::Error::other(error).into())
            })?,
            _ => {
                let filter = self.own()?;
                petal::embed::replace_file(path, |mut out| {
                    filter.write_to(&mut out, metadata.unwrap_or(kept))
                })?;
            }
        }
        Ok(())
    }

    pub(crate) fn metadata(&self) -> &CString {
        &self.metadata
    }

    /// Returns the name of the type, or of the format of another program.
    pub(crate) fn type_name(&self) -> &CString {
        &self.type_name
    }

    pub(crate) fn stats(&self) -> Result<petal::Stats, Failure> {
        Ok(self.own()?.stats())
    }
}
