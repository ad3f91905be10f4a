//! Exact sets in memory: the URLs themselves, their digests, and a hash table of fingerprints.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use md5::Md5;
use petal::HashSpec;
use sha1::{Digest, Sha1};

use super::SeenSet;

/// The URLs in a `HashSet` with the standard hash, which grows as it is filled.
#[derive(Default)]
pub struct Strings(HashSet<String>);

impl SeenSet for Strings {
    fn insert(&mut self, urls: &[&str]) -> Result<(), String> {
        for &url in urls {
            if !self.0.contains(url) {
                self.0.insert(url.to_owned());
            }
        }
        Ok(())
    }

    fn contains(&mut self, urls: &[&str], found: &mut Vec<bool>) -> Result<(), String> {
        found.extend(urls.iter().map(|&url| self.0.contains(url)));
        Ok(())
    }

    fn remove(&mut self, urls: &[&str]) -> Result<bool, String> {
        for &url in urls {
            self.0.remove(url);
        }
        Ok(true)
    }
}

/// A hasher for digests: their first 64 bits, which are random already.
#[derive(Default)]
pub struct FirstWord(u64);

impl Hasher for FirstWord {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A digest of `N` bytes. Hashed without the prefix of its length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DigestBytes<const N: usize>([u8; N]);

impl<const N: usize> Hash for DigestBytes<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

/// Digests of the URLs, of `N` bytes.
pub struct Digests<const N: usize> {
    set: HashSet<DigestBytes<N>, BuildHasherDefault<FirstWord>>,
    digest: fn(&str) -> [u8; N],
}

impl Digests<16> {
    /// MD5, 16 bytes.
    pub fn md5() -> Self {
        Self { set: HashSet::default(), digest: |url| Md5::digest(url).into() }
    }
}

impl Digests<20> {
    /// SHA-1, 20 bytes.
    pub fn sha1() -> Self {
        Self { set: HashSet::default(), digest: |url| Sha1::digest(url).into() }
    }
}

impl<const N: usize> SeenSet for Digests<N> {
    fn insert(&mut self, urls: &[&str]) -> Result<(), String> {
        for url in urls {
            self.set.insert(DigestBytes((self.digest)(url)));
        }
        Ok(())
    }

    fn contains(&mut self, urls: &[&str], found: &mut Vec<bool>) -> Result<(), String> {
        found.extend(urls.iter().map(|url| self.set.contains(&DigestBytes((self.digest)(url)))));
        Ok(())
    }

    fn remove(&mut self, urls: &[&str]) -> Result<bool, String> {
        for url in urls {
            self.set.remove(&DigestBytes((self.digest)(url)));
        }
        Ok(true)
    }
}

/// A hash table of 8-byte fingerprints with linear probing and two slots for each key: half full when it has its
/// capacity. It takes two URLs with the same fingerprint for one. With 10^8 URLs in the table, one of 2·10^11 absent
/// URLs is reported as seen.
pub struct Fingerprints {
    /// An empty slot is 0.
    slots: Vec<u64>,
    hash: HashSpec,
}

impl Fingerprints {
    /// A table for a number of keys.
    pub fn new(keys: u64) -> Self {
        Self { slots: vec![0; 2 * keys.max(1) as usize], hash: HashSpec::default() }
    }

    fn fingerprint(&self, url: &str) -> u64 {
        self.hash.hash(url.as_bytes()).max(1)
    }

    /// The slot in which the search for a fingerprint begins.
    fn home(&self, fingerprint: u64) -> usize {
        ((u128::from(fingerprint) * self.slots.len() as u128) >> 64) as usize
    }

    fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    /// Returns the slot of a fingerprint, or the empty slot in which it belongs. Ends because half of the slots are
    /// empty.
    fn find(&self, fingerprint: u64) -> usize {
        let mut slot = self.home(fingerprint);
        while self.slots[slot] != 0 && self.slots[slot] != fingerprint {
            slot = self.next(slot);
        }
        slot
    }

    /// Removes a fingerprint, and moves those behind it that could no longer be found.
    fn remove_at(&mut self, mut hole: usize) {
        let len = self.slots.len();
        let mut slot = self.next(hole);
        while self.slots[slot] != 0 {
            let from_home = (slot + len - self.home(self.slots[slot])) % len;
            let from_hole = (slot + len - hole) % len;
            if from_home >= from_hole {
                self.slots[hole] = self.slots[slot];
                hole = slot;
            }
            slot = self.next(slot);
        }
        self.slots[hole] = 0;
    }
}

impl SeenSet for Fingerprints {
    fn insert(&mut self, urls: &[&str]) -> Result<(), String> {
        for url in urls {
            let fingerprint = self.fingerprint(url);
            let slot = self.find(fingerprint);
            self.slots[slot] = fingerprint;
        }
        Ok(())
    }

    fn contains(&mut self, urls: &[&str], found: &mut Vec<bool>) -> Result<(), String> {
        found.extend(urls.iter().map(|url| self.slots[self.find(self.fingerprint(url))] != 0));
        Ok(())
    }

    fn remove(&mut self, urls: &[&str]) -> Result<bool, String> {
        for url in urls {
            let slot = self.find(self.fingerprint(url));
            if self.slots[slot] != 0 {
                self.remove_at(slot);
            }
        }
        Ok(true)
    }
}
