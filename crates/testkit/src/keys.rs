//! Distinct members and non-members.

/// Two infinite, disjoint lists of distinct 16-byte keys; different seeds give different keys.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    seed: u64,
}

impl Keys {
    /// Creates the lists of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns member number `at`.
    pub fn member(&self, at: u64) -> [u8; 16] {
        self.key(at << 1)
    }

    /// Returns non-member number `at`, which tests never insert.
    pub fn non_member(&self, at: u64) -> [u8; 16] {
        self.key(at << 1 | 1)
    }

    /// Returns the first `count` members.
    pub fn members(&self, count: u64) -> impl Iterator<Item = [u8; 16]> + use<> {
        let keys = *self;
        (0..count).map(move |at| keys.member(at))
    }

    /// Returns the first `count` non-members.
    pub fn non_members(&self, count: u64) -> impl Iterator<Item = [u8; 16]> + use<> {
        let keys = *self;
        (0..count).map(move |at| keys.non_member(at))
    }

    /// Returns seed and number without mixing: filters must support keys that differ in a few low bits.
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
    fn keys_are_distinct_and_disjoint() {
        let (keys, other) = (Keys::new(1), Keys::new(2));
        let all: HashSet<_> = keys
            .members(500)
            .chain(keys.non_members(500))
            .chain(other.members(500))
            .chain(other.non_members(500))
            .collect();
        assert_eq!(all.len(), 2_000);
    }
}
