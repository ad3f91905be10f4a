//! RedisBloom's `BF.SCANDUMP`: its chunks, concatenated. The first is a header of 20 bytes (keys,
//! links, options, growth) and 53 for each link (bytes, bits, keys, rate, bits per key, probes,
//! capacity, logarithm of the bits); the others are the bits of the links. Numbers are
//! little-endian, without padding.
//!
//! A key is hashed twice with MurmurHash64A, the second time with the first hash as the seed. Probe
//! i is at the first plus i times the second, modulo the number of bits. Old filters, without the
//! option `FORCE64`, use 32-bit MurmurHash2.
//!
//! A key is present if any link contains it, and is inserted into the last one. When that reaches
//! its capacity, a link of `growth` times the capacity and half the rate is added, unless the
//! filter is `NONSCALING`. The first link of a filter that grows already has half the rate.
//!
//! Source: captures of RedisBloom 2.8.20, which has opened petal's files and written the same. They
//! contain no old filters: of those, petal reads only what every interpretation of the option
//! allows, and adds no link.

pub(crate) mod links;

use std::sync::Arc;

use petal::BatchResults;

use crate::encoding::bits::Bits;
use crate::encoding::bytes::put;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{
    FormatImpl, FprEstimate, HashFn, NewFilter, Plan, expected_fill,
};
use crate::formats::fpr_floor::{SampleBudget, Stepping, distinct, fpr_floor};
use crate::stats::FilterStats;
use links::{
    FORCE64, Header, LinkPlan, MAX_LINKS, NO_ROUND, NO_SCALING, TIGHTENING, link_at, size_at,
};

/// Maximum size of a chunk for `BF.LOADCHUNK`.
const LONGEST_CHUNK: usize = 16 << 20;
/// The default of `BF.RESERVE`.
const GROWTH: u32 = 2;

#[derive(Clone, Debug)]
pub(crate) struct RedisBloom {
    size: u64,
    options: u32,
    growth: u32,
    links: Vec<Link>,
}

/// The bit array of a link.
#[derive(Clone, Debug)]
struct Link {
    plan: LinkPlan,
    bits: Bits,
    size: u64,
}

impl Link {
    /// Makes a link with its bits at this offset.
    fn at(place: usize, plan: LinkPlan, size: u64) -> Self {
        Self { bits: Bits::low_first(place, plan.bits()), plan, size }
    }

    #[inline]
    fn holds(&self, file: &[u8], words: &[u64]) -> bool {
        self.plan.positions([words[0], words[1]]).all(|bit| self.bits.get(file, bit))
    }
}

impl Link {
    /// Returns the rate that double hashing causes; 0 for filters with 32-bit hashes, for which it
    /// is not computed.
    fn floor(&self, budget: &mut SampleBudget, fill: f64, keys: f64, options: u32) -> f64 {
        if options & FORCE64 == 0 {
            return 0.0;
        }
        let put: &'static [fn(&mut [u64; 4], u64)] = &[|words, step| words[1] = step];
        let modulus = self.plan.modulus();
        let stepping = Stepping { modulus, width: 64, shift: 0, signed: false, put };
        fpr_floor(budget, stepping, self.plan.probes(), fill, keys, |words| {
            distinct(self.plan.positions([words[0], words[1]]), fill)
        })
    }
}

impl RedisBloom {
    /// Returns the statistics; the links share a budget of samples.
    fn stats_within(&self, file: &[u8], budget: &mut SampleBudget) -> FilterStats {
        let mut stats = self.header_stats(file);
        for link in &self.links {
            let set = link.bits.count_ones(file);
            stats.add_row(link.bits.count, set, link.plan.probes());
            let fill = set as f64 / link.bits.count as f64;
            stats.add_floor(link.floor(budget, fill, link.size as f64, self.options));
        }
        stats
    }

    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let (header, mut place) = Header::parse(file)?;
        let Header { size, options, growth, links: plans } = header;
        let mut links = Vec::with_capacity(plans.len());
        for (plan, size) in plans {
            let end = (place as u64).saturating_add(plan.bytes());
            let Some(end) = usize::try_from(end).ok().filter(|end| *end <= file.len()) else {
                return Err(Error::cut(Format::RedisBloom, end, file));
            };
            links.push(Link::at(place, plan, size));
            place = end;
        }
        if place != file.len() {
            return Err(Error::cut(Format::RedisBloom, place as u64, file));
        }
        Ok(Self { size, options, growth, links })
    }

    /// Makes a filter as `BF.RESERVE` without options does.
    pub(crate) fn plan(plan: &Plan) -> Result<NewFilter<Self>> {
        let rate = plan.rate * TIGHTENING;
        if rate == 0.0 {
            return Err(Error::limit(
                Format::RedisBloom,
                format!("a rate of {:e} cannot be halved", plan.rate),
                "use a higher rate",
            ));
        }
        let link = Link::at(link_at(1), LinkPlan::new(plan.keys, rate), 0);
        let length = link.bits.bytes().saturating_add(link_at(1) as u64);
        let options = NO_ROUND | FORCE64;
        let layout = Self { size: 0, options, growth: GROWTH, links: vec![link] };
        let file = plan.file(&layout.header(), length)?;
        Ok((layout, file))
    }

    fn header(&self) -> Vec<u8> {
        let links = self.links.iter().map(|link| (link.plan, link.size)).collect();
        let (size, options, growth) = (self.size, self.options, self.growth);
        Header { size, options, growth, links }.to_bytes()
    }

    /// Inserts a key that no link contains.
    fn add(&mut self, file: &mut Vec<u8>, words: &[u64], limit: u64) -> Result<()> {
        if self.links.last().is_none_or(|link| link.size >= link.plan.capacity()) {
            self.grow(file, limit)?;
        }
        let place = size_at(self.links.len() - 1);
        if let Some(link) = self.links.last_mut() {
            for bit in link.plan.positions([words[0], words[1]]) {
                link.bits.set(file, bit);
            }
            link.size += 1;
            self.size = self.size.saturating_add(1);
            put(file, place, &link.size.to_le_bytes());
            put(file, 0, &self.size.to_le_bytes());
        }
        Ok(())
    }

    /// Adds a link after the last one, which is full.
    fn grow(&mut self, file: &mut Vec<u8>, limit: u64) -> Result<()> {
        let full = |what, do_this| Err(Error::full(Format::RedisBloom, what, do_this));
        if self.options & NO_SCALING != 0 {
            return full("it is NONSCALING and holds its capacity", "make one for more keys");
        }
        if self.options & (NO_ROUND | FORCE64) != NO_ROUND | FORCE64 {
            return full(
                "it is at its capacity, and petal cannot grow filters of this kind",
                "build it again",
            );
        }
        let last = self.links.last().filter(|_| self.links.len() < MAX_LINKS);
        let next = last.and_then(|last| last.plan.next(self.growth, self.options));
        let Some(plan) = next else {
            return full("it cannot grow further", "make one for more keys");
        };
        let place = link_at(self.links.len());
        let wider = link_at(1) - link_at(0);
        let link = Link::at(file.len() + wider, plan, 0);
        let length = link.bits.bytes().saturating_add((file.len() + wider) as u64);
        if length > limit {
            return Err(Error::too_large(length, limit));
        }
        let refused = || Error::alloc(length);
        let length = usize::try_from(length).map_err(|_| refused())?;
        file.try_reserve_exact(length - file.len()).map_err(|_| refused())?;
        self.links.iter_mut().for_each(|link| link.bits.at += wider);
        self.links.push(link);
        let header = self.header();
        file.splice(..place, header);
        file.resize(length, 0);
        Ok(())
    }
}

impl FormatImpl for RedisBloom {
    fn words(&self) -> usize {
        2
    }

    fn hash_fn(&self) -> HashFn {
        let options = self.options;
        Arc::new(move |key, words| words.extend(links::hash(key, options)))
    }

    fn contains(&self, file: &[u8], words: &[u64], found: &mut BatchResults) {
        // The last link is the largest.
        found.fill_with(words.len() / 2, |at| {
            self.links.iter().rev().any(|link| link.holds(file, &words[at * 2..]))
        });
    }

    fn insert(
        &mut self,
        file: &mut Vec<u8>,
        words: &[u64],
        limit: u64,
        new: &mut BatchResults,
    ) -> Result<()> {
        let mut result = Ok(());
        new.fill_with(words.len() / 2, |at| {
            let key = &words[at * 2..at * 2 + 2];
            if result.is_err() || self.links.iter().rev().any(|link| link.holds(file, key)) {
                return false;
            }
            result = self.add(file, key, limit);
            result.is_ok()
        });
        result
    }

    fn stats(&self, file: &[u8]) -> FilterStats {
        self.stats_within(file, &mut SampleBudget::new(self.links.len()))
    }

    fn expected_fpr(&self, keys: u64) -> Option<FprEstimate> {
        let link = self.links.first().filter(|link| keys <= link.plan.capacity())?;
        let (keys, probes) = (keys as f64, link.plan.probes());
        let fill = expected_fill(link.bits.count, probes, keys);
        let floor = link.floor(&mut SampleBudget::new(1), fill, keys, self.options);
        Some(FprEstimate {
            all: petal::math::probability_of_either(fill.powf(probes.into()), floor),
            floor,
        })
    }

    fn header_stats(&self, _file: &[u8]) -> FilterStats {
        let mut stats = FilterStats::new(Format::RedisBloom);
        let capacity =
            self.links.iter().fold(0u64, |sum, link| sum.saturating_add(link.plan.capacity()));
        let grows = self.options & NO_SCALING == 0;
        let tightened = if grows { TIGHTENING } else { 1.0 };
        stats.capacity = Some(capacity);
        stats.target_fpr = self.links.first().map(|link| link.plan.fpr() / tightened);
        stats.counted = Some(self.size);
        stats.choice("hash", if self.options & FORCE64 != 0 { "64 bits" } else { "32 bits" });
        stats.choice("growth", if grows { self.growth.to_string() } else { "none".to_owned() });
        stats
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        self.links.iter().try_for_each(|link| {
            let set = link.bits.count_ones(file);
            let max = link.size.saturating_mul(link.plan.probes().into());
            if set <= max {
                Ok(())
            } else {
                let expected = format!("at most {max}");
                let name = Format::RedisBloom.name();
                Err(Error::malformed(name, "set bits of a link", expected, set))
            }
        })
    }
}

/// Returns the chunks of a filter as `BF.SCANDUMP` returns and `BF.LOADCHUNK` accepts them: a
/// number that encodes how far they reach, and bytes.
pub(crate) fn chunks(file: &[u8]) -> Result<impl Iterator<Item = (u64, &[u8])>> {
    let links = RedisBloom::parse(file)?.links;
    let (header, _) = file.split_at(link_at(links.len()));
    let mut reached = 1;
    let data = links.into_iter().flat_map(|link| link.bits.of(file).chunks(LONGEST_CHUNK));
    Ok(std::iter::once((1, header)).chain(data.map(move |chunk| {
        reached += chunk.len() as u64;
        (reached, chunk)
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests small links with nearly all bits set, whose steps return after up to 63 probes.
    #[test]
    fn links_of_one_file_share_a_budget_of_samples() {
        let plan = LinkPlan::new(40, 1e-30);
        let size = plan.capacity();
        let links = vec![(plan, size); MAX_LINKS];
        let header = Header {
            size: size * MAX_LINKS as u64,
            options: NO_ROUND | FORCE64,
            growth: GROWTH,
            links,
        };
        let mut file = header.to_bytes();
        for _ in 0..MAX_LINKS {
            file.extend((0..plan.bytes()).map(|byte| if byte % 2 == 0 { 0xff } else { 0xfe }));
        }
        let filter = RedisBloom::parse(&file).unwrap();
        let mut budget = SampleBudget::new(MAX_LINKS);
        let all = budget.left();
        let stats = filter.stats_within(&file, &mut budget);
        assert!(stats.fpr_floor > 0.0 && budget.left() < all / 2, "{}", budget.left());
        let mut one = SampleBudget::new(1);
        let link = &filter.links[0];
        assert!(link.floor(&mut one, 15.0 / 16.0, size as f64, filter.options) > 0.0);
        let each = all - one.left();
        assert!(each * MAX_LINKS as u64 > 10 * all, "{each}");
    }
}
