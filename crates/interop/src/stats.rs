//! The header of a foreign filter, and statistics of its bits.

use crate::encoding::bits::Bits;
use crate::format::Format;
use crate::key_type::KeyType;

/// The values of a foreign filter's header and statistics of its bits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FilterStats {
    /// The format.
    pub format: Format,
    /// Parameters of the format, name and value: version, hash, seed.
    pub choices: Vec<(&'static str, String)>,
    /// The number of bits, of all layers.
    pub bits: u64,
    /// The number of bits that are set.
    pub set: u64,
    /// Probes per key; the maximum of all layers.
    pub probes: u32,
    /// The number of bit arrays: 1, or more for scalable filters and cascades.
    pub layers: u64,
    /// The capacity, if the format records it.
    pub capacity: Option<u64>,
    /// The target false-positive rate, if the format records it.
    pub target_fpr: Option<f64>,
    /// The number of keys that the program counted, if the format records it. Programs count
    /// differently.
    pub counted: Option<u64>,
    /// An estimate of the distinct keys from the bits; infinite if all bits are set, `None` if the
    /// bits give no estimate.
    pub estimated_keys: Option<f64>,
    /// The false-positive rate, computed from the bits.
    pub estimated_fpr: f64,
    /// The part of the rate due to the format's double hashing, where positions of a key coincide.
    /// It falls in proportion to the number of bits and does not depend on the number of probes.
    pub fpr_floor: f64,
    /// The key types that programs write into such files.
    pub key_types: &'static [KeyType],
    /// Facts that the format does not record and the user must know.
    pub not_recorded: Vec<&'static str>,
    /// Defects of this filter.
    pub warnings: Vec<&'static str>,
}

impl FilterStats {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            choices: Vec::new(),
            bits: 0,
            set: 0,
            probes: 0,
            layers: 0,
            capacity: None,
            target_fpr: None,
            counted: None,
            estimated_keys: None,
            estimated_fpr: 0.0,
            fpr_floor: 0.0,
            key_types: &[KeyType::Text],
            not_recorded: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds a bit array with `probes` positions per key; a key is present if any array has all its
    /// bits.
    pub(crate) fn add_row(&mut self, bits: u64, set: u64, probes: u32) {
        let (all, probes_of_key) = (bits.max(1) as f64, f64::from(probes));
        let fill = set as f64 / all;
        // 1 - (1 - 1/m)^k: files may have more probes than bits.
        let touch = -((-all.recip()).ln_1p() * probes_of_key).exp_m1();
        let full = set >= bits;
        let keys = if full { f64::INFINITY } else { petal::math::cardinality(1.0 - fill, touch) };
        self.estimated_keys = Some(self.estimated_keys.unwrap_or(0.0) + keys);
        self.estimated_fpr =
            petal::math::probability_of_either(self.estimated_fpr, fill.powf(probes_of_key));
        self.bits += bits;
        self.set += set;
        self.probes = self.probes.max(probes);
        self.layers += 1;
    }

    /// Adds the rate that double hashing causes in one bit array.
    pub(crate) fn add_floor(&mut self, floor: f64) {
        self.fpr_floor = petal::math::probability_of_either(self.fpr_floor, floor);
        self.estimated_fpr = petal::math::probability_of_either(self.estimated_fpr, floor);
    }

    /// Adds a bit array of which keys use only the first `reach` bits.
    pub(crate) fn add_row_within(&mut self, reach: u64, row: Bits, file: &[u8], probes: u32) {
        let reached = Bits { count: row.count.min(reach), ..row };
        self.add_row(reached.count, reached.count_ones(file), probes);
        self.bits += row.count - reached.count;
    }

    /// Adds a parameter of the format.
    pub(crate) fn choice(&mut self, name: &'static str, value: impl ToString) {
        self.choices.push((name, value.to_string()));
    }

    /// Returns the parameters as text, each after a comma.
    #[must_use]
    pub fn variant(&self) -> String {
        self.choices.iter().map(|(name, value)| format!(", {name} {value}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_bits_do_not_lower_the_rate() {
        let mut stats = FilterStats::new(Format::Guava32);
        let file = [[0xff; 16], [0; 16]].concat();
        stats.add_row_within(128, Bits::low_first(0, 256), &file, 7);
        assert_eq!((stats.bits, stats.set, stats.estimated_fpr), (256, 128, 1.0));
    }

    #[test]
    fn hostile_headers_give_finite_statistics() {
        for (bits, set, probes) in
            [(1, 0, 1), (1, 1, 9), (64, 45, 77), (64, 63, 65_535), (64, 64, 1), (1 << 40, 1, 3)]
        {
            let mut stats = FilterStats::new(Format::Guava);
            stats.add_row(bits, set, probes);
            let keys = stats.estimated_keys.unwrap();
            assert!(keys >= 0.0 && (0.0..=1.0).contains(&stats.estimated_fpr), "{stats:?}");
            assert_eq!(keys.is_infinite(), set == bits, "{stats:?}");
        }
    }
}
