//! Serde support: filters as the bytes of a `.petal` file without metadata; types of filters by name,
//! hashes as their id and seed.
//!
//! Formats for people, such as JSON, write the bytes as a list of numbers; use binary formats for
//! large filters. Deserialization checks every byte.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{self, Serialize, Serializer};

use crate::any::{AnyFilter, StreamDecoder};
use crate::byte_size::ByteSize;
use crate::cascade::FilterCascade;
use crate::counting::CountingFilter;
use crate::error::Result;
use crate::filter::Filter;
use crate::filter::layout::Layout;
use crate::format::kind::FilterType;
use crate::format::persist::{Load, Save};
use crate::hash::HashSpec;
use crate::quotient::QuotientFilter;
use crate::scalable::ScalableBloomFilter;
use crate::static_filter::StaticFilter;
use crate::store::{Owned, Store};
use crate::vector_quotient::VectorQuotientFilter;
use crate::windowed::WindowedBloomFilter;

fn serialize<Ser: Serializer>(filter: &impl Save, serializer: Ser) -> Result<Ser::Ok, Ser::Error> {
    let view = filter.serialized();
    let header = view.header();
    let len = header.len() as u64 + view.data_len();
    let len = usize::try_from(len).map_err(|_| ser::Error::custom("filter too large"))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(ser::Error::custom)?;
    bytes.extend_from_slice(&header);
    let mut offset = 0;
    while offset < view.data_len() {
        let piece = view.read(offset, usize::MAX);
        bytes.extend_from_slice(piece);
        offset += piece.len() as u64;
    }
    serializer.serialize_bytes(&bytes)
}

fn deserialize<'de, F: Load<Store = Owned>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<F, D::Error> {
    deserializer.deserialize_byte_buf(FilterVisitor(PhantomData))
}

struct FilterVisitor<F>(PhantomData<F>);

impl<F: Load<Store = Owned>> FilterVisitor<F> {
    fn push<E: de::Error>(decoder: &mut StreamDecoder, bytes: &[u8]) -> Result<(), E> {
        decoder.push(bytes).map_err(E::custom)
    }

    fn finish<E: de::Error>(decoder: StreamDecoder) -> Result<F, E> {
        decoder.finish_as::<F>().map(|(filter, _)| filter).map_err(E::custom)
    }
}

impl<'de, F: Load<Store = Owned>> Visitor<'de> for FilterVisitor<F> {
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a petal filter")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<F, E> {
        let mut decoder = StreamDecoder::serialized(u64::MAX);
        Self::push(&mut decoder, bytes)?;
        Self::finish(decoder)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<F, A::Error> {
        let mut decoder = StreamDecoder::serialized(u64::MAX);
        let mut chunk = Vec::new();
        while let Some(byte) = bytes.next_element::<u8>()? {
            chunk.push(byte);
            if chunk.len() == 4096 {
                Self::push(&mut decoder, &chunk)?;
                chunk.clear();
            }
        }
        Self::push(&mut decoder, &chunk)?;
        Self::finish(decoder)
    }
}

/// Implements both traits for types of filters.
macro_rules! filters {
    ($([$($generic:ident: $bound:ident)?] $filter:ident;)*) => {$(
        impl<$($generic: $bound,)? S: Store> Serialize for $filter<$($generic,)? S> {
            fn serialize<Ser: Serializer>(&self, serializer: Ser) -> Result<Ser::Ok, Ser::Error> {
                serialize(self, serializer)
            }
        }

        impl<'de, $($generic: $bound)?> Deserialize<'de> for $filter<$($generic)?> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize(deserializer)
            }
        }
    )*};
}

filters! {
    [] AnyFilter;
    [L: Layout] Filter;
    [L: Layout] CountingFilter;
    [] QuotientFilter;
    [] ScalableBloomFilter;
    [] WindowedBloomFilter;
    [] StaticFilter;
    [] FilterCascade;
    [] VectorQuotientFilter;
}

impl Serialize for FilterType {
    fn serialize<Ser: Serializer>(&self, serializer: Ser) -> Result<Ser::Ok, Ser::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for FilterType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for HashSpec {
    /// The seed of a keyed hash is its secret. A hash whose secret is apart cannot be deserialized.
    fn serialize<Ser: Serializer>(&self, serializer: Ser) -> Result<Ser::Ok, Ser::Error> {
        (self.id(), self.seed()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HashSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (id, seed) = Deserialize::deserialize(deserializer)?;
        Self::from_file(id, seed).and_then(|hash| hash.unlocked(None)).map_err(de::Error::custom)
    }
}

impl Serialize for ByteSize {
    fn serialize<Ser: Serializer>(&self, serializer: Ser) -> Result<Ser::Ok, Ser::Error> {
        serializer.serialize_u64(self.as_u64())
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::bytes)
    }
}
