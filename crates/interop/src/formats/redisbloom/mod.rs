//! RedisBloom's `BF.SCANDUMP`: its chunks, one after the other. The first is a header of 20 bytes
//! (keys, links, options, growth) and 53 for each link (bytes, bits, keys, rate, bits per key,
//! probes, capacity, logarithm of the bits); the others are the bits of the links. Numbers have
//! the low byte first and no padding.
//!
//! A key is hashed twice with MurmurHash64A, the second time seeded with the first hash; probe i
//! is at the first plus i times the second, modulo the bits. Without the option `FORCE64`, in old
//! filters, it is MurmurHash2 of 32 bits.
//!
//! A key is in the filter if it is in any link, and is put in the last. When that holds its
//! capacity, a link of `growth` times the capacity and half the rate is added, unless the filter
//! is `NONSCALING`. The first link of a filter that grows is already made for half the rate.
//!
//! Source: captures of RedisBloom 2.8.20, which has since opened ours and written the same. They
//! have no old filters: of those, only what every reading of the option allows is read, and no link
//! is added.

pub(crate) mod links;

use std::sync::Arc;

use petal::Answers;

use crate::bits::Bits;
use crate::bytes::put;
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::floor::{Budget, Stepping, distinct, rate_floor};
use crate::format::Format;
use crate::scheme::{Digest, Empty, Plan, Rate, Scheme, expected_fill};
use links::{
    FORCE64, Header, LinkPlan, MOST_LINKS, NO_ROUND, NO_SCALING, TIGHTENING, link_at, size_at,
};

/// `BF.LOADCHUNK` is given no more at once.
const LONGEST_CHUNK: usize = 16 << 20;
/// What `BF.RESERVE` takes if nothing is said.
const GROWTH: u32 = 2;

#[derive(Clone, Debug)]
pub(crate) struct RedisBloom {
    size: u64,
    options: u32,
    growth: u32,
    links: Vec<Link>,
}

/// A row of bits.
#[derive(Clone, Debug)]
struct Link {
    plan: LinkPlan,
    bits: Bits,
    size: u64,
}

impl Link {
    /// Its bits begin at a place.
    fn at(place: usize, plan: LinkPlan, size: u64) -> Self {
        Self { bits: Bits::low_first(place, plan.bits()), plan, size }
    }

    #[inline]
    fn holds(&self, file: &[u8], words: &[u64]) -> bool {
        self.plan.positions([words[0], words[1]]).all(|bit| self.bits.get(file, bit))
    }
}

impl Link {
    /// What double hashing adds to its rate. Filters of hashes of 32 bits are not computed.
    fn floor(&self, budget: &mut Budget, fill: f64, keys: f64, options: u32) -> f64 {
        if options & FORCE64 == 0 {
            return 0.0;
        }
        let put: &'static [fn(&mut [u64; 4], u64)] = &[|words, step| words[1] = step];
        let modulus = self.plan.modulus();
        let stepping = Stepping { modulus, width: 64, shift: 0, signed: false, put };
        rate_floor(budget, stepping, self.plan.probes(), fill, keys, |words| {
            distinct(self.plan.positions([words[0], words[1]]), fill)
        })
    }
}

impl RedisBloom {
    /// What is known of it; its links share a budget of samples.
    fn facts_within(&self, file: &[u8], budget: &mut Budget) -> Facts {
        let mut facts = self.told(file);
        for link in &self.links {
            let set = link.bits.count_ones(file);
            facts.add_row(link.bits.count, set, link.plan.probes());
            let fill = set as f64 / link.bits.count as f64;
            facts.add_floor(link.floor(budget, fill, link.size as f64, self.options));
        }
        facts
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

    /// As `BF.RESERVE` without further words makes it.
    pub(crate) fn plan(plan: &Plan) -> Result<Empty<Self>> {
        let rate = plan.rate * TIGHTENING;
        if rate == 0.0 {
            return Err(Error::limit(
                Format::RedisBloom,
                format!("a rate of {:e} cannot be halved", plan.rate),
                "ask for a higher rate",
            ));
        }
        let link = Link::at(link_at(1), LinkPlan::new(plan.keys, rate), 0);
        let length = link.bits.bytes().saturating_add(link_at(1) as u64);
        let options = NO_ROUND | FORCE64;
        let scheme = Self { size: 0, options, growth: GROWTH, links: vec![link] };
        let file = plan.file(&scheme.header(), length)?;
        Ok((scheme, file))
    }

    fn header(&self) -> Vec<u8> {
        let links = self.links.iter().map(|link| (link.plan, link.size)).collect();
        let (size, options, growth) = (self.size, self.options, self.growth);
        Header { size, options, growth, links }.to_bytes()
    }

    /// Puts in a key that no link holds.
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

    /// Adds a link behind the last, which is full.
    fn grow(&mut self, file: &mut Vec<u8>, limit: u64) -> Result<()> {
        let full = |what, do_this| Err(Error::full(Format::RedisBloom, what, do_this));
        if self.options & NO_SCALING != 0 {
            return full("it is NONSCALING and holds its capacity", "make one for more keys");
        }
        if self.options & (NO_ROUND | FORCE64) != NO_ROUND | FORCE64 {
            return full(
                "it holds its capacity, and is of a kind that is not grown here",
                "make it anew",
            );
        }
        let last = self.links.last().filter(|_| self.links.len() < MOST_LINKS);
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

impl Scheme for RedisBloom {
    fn words(&self) -> usize {
        2
    }

    fn digest(&self) -> Digest {
        let options = self.options;
        Arc::new(move |key, words| words.extend(links::hash(key, options)))
    }

    fn contains(&self, file: &[u8], words: &[u64], found: &mut Answers) {
        // The last link is the largest.
        found.answer(words.len() / 2, |at| {
            self.links.iter().rev().any(|link| link.holds(file, &words[at * 2..]))
        });
    }

    fn insert(
        &mut self,
        file: &mut Vec<u8>,
        words: &[u64],
        limit: u64,
        new: &mut Answers,
    ) -> Result<()> {
        let mut room = Ok(());
        new.answer(words.len() / 2, |at| {
            let key = &words[at * 2..at * 2 + 2];
            if room.is_err() || self.links.iter().rev().any(|link| link.holds(file, key)) {
                return false;
            }
            room = self.add(file, key, limit);
            room.is_ok()
        });
        room
    }

    fn facts(&self, file: &[u8]) -> Facts {
        self.facts_within(file, &mut Budget::new(self.links.len()))
    }

    fn expected_rate(&self, keys: u64) -> Option<Rate> {
        let link = self.links.first().filter(|link| keys <= link.plan.capacity())?;
        let (keys, probes) = (keys as f64, link.plan.probes());
        let fill = expected_fill(link.bits.count, probes, keys);
        let floor = link.floor(&mut Budget::new(1), fill, keys, self.options);
        Some(Rate { all: petal::rate::either(fill.powf(probes.into()), floor), floor })
    }

    fn told(&self, _file: &[u8]) -> Facts {
        let mut facts = Facts::new(Format::RedisBloom);
        let capacity =
            self.links.iter().fold(0u64, |sum, link| sum.saturating_add(link.plan.capacity()));
        let grows = self.options & NO_SCALING == 0;
        let tightened = if grows { TIGHTENING } else { 1.0 };
        facts.planned_keys = Some(capacity);
        facts.target_rate = self.links.first().map(|link| link.plan.rate() / tightened);
        facts.counted = Some(self.size);
        facts.choice("hash", if self.options & FORCE64 != 0 { "64 bits" } else { "32 bits" });
        facts.choice("growth", if grows { self.growth.to_string() } else { "none".to_owned() });
        facts
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        self.links.iter().try_for_each(|link| {
            let set = link.bits.count_ones(file);
            let most = link.size.saturating_mul(link.plan.probes().into());
            if set <= most {
                Ok(())
            } else {
                let expected = format!("at most {most}");
                let name = Format::RedisBloom.name();
                Err(Error::malformed(name, "set bits of a link", expected, set))
            }
        })
    }
}

/// The chunks of a filter, as `BF.SCANDUMP` gives and `BF.LOADCHUNK` takes them: a number that
/// tells how far they reach, and bytes.
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

    /// Small links nearly full of bits, whose steps return after up to 63 probes.
    #[test]
    fn rate_floors_of_1100_links_take_one_budget_of_samples() {
        let plan = LinkPlan::new(40, 1e-30);
        let size = plan.capacity();
        let links = vec![(plan, size); MOST_LINKS];
        let header = Header {
            size: size * MOST_LINKS as u64,
            options: NO_ROUND | FORCE64,
            growth: GROWTH,
            links,
        };
        let mut file = header.to_bytes();
        for _ in 0..MOST_LINKS {
            file.extend((0..plan.bytes()).map(|byte| if byte % 2 == 0 { 0xff } else { 0xfe }));
        }
        let filter = RedisBloom::parse(&file).unwrap();
        let mut budget = Budget::new(MOST_LINKS);
        let all = budget.left();
        let facts = filter.facts_within(&file, &mut budget);
        assert!(facts.rate_floor > 0.0 && budget.left() < all / 2, "{}", budget.left());
        let mut one = Budget::new(1);
        let link = &filter.links[0];
        assert!(link.floor(&mut one, 15.0 / 16.0, size as f64, filter.options) > 0.0);
        let each = all - one.left();
        assert!(each * MOST_LINKS as u64 > 10 * all, "{each}");
    }
}
