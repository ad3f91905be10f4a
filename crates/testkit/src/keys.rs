//! Keys that are members by construction, and keys that are not.

/// Two endless lists of distinct 16-byte keys with nothing in common; another seed gives other keys.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    seed: u64,
}

impl Keys {
    /// The lists of this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The key number `at` of those to put in.
    pub fn member(&self, at: u64) -> [u8; 16] {
        self.key(at << 1)
    }

    /// The key number `at` of those never to put in.
    pub fn stranger(&self, at: u64) -> [u8; 16] {
        self.key(at << 1 | 1)
    }

    /// The first `count` members.
    pub fn members(&self, count: u64) -> impl Iterator<Item = [u8; 16]> + use<> {
        let keys = *self;
        (0..count).map(move |at| keys.member(at))
    }

    /// The first `count` strangers.
    pub fn strangers(&self, count: u64) -> impl Iterator<Item = [u8; 16]> + use<> {
        let keys = *self;
        (0..count).map(move |at| keys.stranger(at))
    }

    /// Seed and number, plainly: a filter has to cope with keys that differ in a few low bits.
    fn key(&self, number: u64) -> [u8; 16] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..].copy_from_slice(&number.to_le_bytes());
        key
    }
}

#[cfg(test)]
mod tests {
    use super::Keys;
    use std::collections::HashSet;

    #[test]
    fn distinct_and_disjoint() {
        let (keys, other) = (Keys::new(1), Keys::new(2));
        let all: HashSet<_> = keys
            .members(500)
            .chain(keys.strangers(500))
            .chain(other.members(500))
            .chain(other.strangers(500))
            .collect();
        assert_eq!(all.len(), 2_000);
    }
}
