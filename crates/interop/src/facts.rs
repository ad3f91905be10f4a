//! What is known of a foreign filter, and what its format does not tell.

use crate::bits::Bits;
use crate::format::Format;
use crate::keys::KeyForm;

/// What a foreign filter's header says and its bits tell.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Facts {
    /// Its format.
    pub format: Format,
    /// What else the format has to choose, name and value: version, hash, seed.
    pub choices: Vec<(&'static str, String)>,
    /// Bits in all, of all layers.
    pub bits: u64,
    /// Bits that are set.
    pub set: u64,
    /// Bits of a key; the most of any layer.
    pub probes: u32,
    /// Rows of bits: 1, or of filters that grow or correct each other more.
    pub layers: u64,
    /// Keys it was planned for, if the format tells.
    pub planned_keys: Option<u64>,
    /// The false-positive rate it was planned for, if the format tells.
    pub target_rate: Option<f64>,
    /// How many keys its own program counted, if the format tells. Programs count differently.
    pub counted: Option<u64>,
    /// Distinct keys, estimated from the bits; infinite if it is full, and `None` if the format's
    /// bits do not tell.
    pub estimated_keys: Option<f64>,
    /// The false-positive rate now, by calculation from the bits.
    pub rate_now: f64,
    /// What of it comes from the format's double hashing: keys whose positions coincide. It falls
    /// only in proportion to the bits, whatever the number of probes.
    pub rate_floor: f64,
    /// Forms of keys that programs put into such files.
    pub forms: &'static [KeyForm],
    /// What the format does not tell and the user must know.
    pub untold: Vec<&'static str>,
    /// What is wrong with this filter, or will be with those who use it.
    pub warnings: Vec<&'static str>,
}

impl Facts {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            choices: Vec::new(),
            bits: 0,
            set: 0,
            probes: 0,
            layers: 0,
            planned_keys: None,
            target_rate: None,
            counted: None,
            estimated_keys: None,
            rate_now: 0.0,
            rate_floor: 0.0,
            forms: &[KeyForm::Text],
            untold: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds a row of bits in which each key has so many positions, anywhere; it answers yes if
    /// any row does.
    pub(crate) fn add_row(&mut self, bits: u64, set: u64, probes: u32) {
        let (all, probes_of_key) = (bits.max(1) as f64, f64::from(probes));
        let fill = set as f64 / all;
        // 1 - (1 - 1/m)^k: files may have more probes than bits.
        let touch = -((-all.recip()).ln_1p() * probes_of_key).exp_m1();
        let full = set >= bits;
        let keys = if full { f64::INFINITY } else { petal::rate::cardinality(1.0 - fill, touch) };
        self.estimated_keys = Some(self.estimated_keys.unwrap_or(0.0) + keys);
        self.rate_now = petal::rate::either(self.rate_now, fill.powf(probes_of_key));
        self.bits += bits;
        self.set += set;
        self.probes = self.probes.max(probes);
        self.layers += 1;
    }

    /// What double hashing adds to the rate of a row.
    pub(crate) fn add_floor(&mut self, floor: f64) {
        self.rate_floor = petal::rate::either(self.rate_floor, floor);
        self.rate_now = petal::rate::either(self.rate_now, floor);
    }

    /// The same of a row of which keys reach only the first bits.
    pub(crate) fn add_row_within(&mut self, reach: u64, row: Bits, file: &[u8], probes: u32) {
        let reached = Bits { count: row.count.min(reach), ..row };
        self.add_row(reached.count, reached.count_ones(file), probes);
        self.bits += row.count - reached.count;
    }

    /// Something that the format has to choose.
    pub(crate) fn choice(&mut self, name: &'static str, value: impl ToString) {
        self.choices.push((name, value.to_string()));
    }

    /// The choices in words, each after a comma.
    #[must_use]
    pub fn variant(&self) -> String {
        self.choices.iter().map(|(name, value)| format!(", {name} {value}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keys_do_not_reach_does_not_dilute() {
        let mut facts = Facts::new(Format::Guava32);
        let file = [[0xff; 16], [0; 16]].concat();
        facts.add_row_within(128, Bits::low_first(0, 256), &file, 7);
        assert_eq!((facts.bits, facts.set, facts.rate_now), (256, 128, 1.0));
    }

    #[test]
    fn numbers_are_numbers_whatever_the_row() {
        for (bits, set, probes) in
            [(1, 0, 1), (1, 1, 9), (64, 45, 77), (64, 63, 65_535), (64, 64, 1), (1 << 40, 1, 3)]
        {
            let mut facts = Facts::new(Format::Guava);
            facts.add_row(bits, set, probes);
            let keys = facts.estimated_keys.unwrap();
            assert!(keys >= 0.0 && (0.0..=1.0).contains(&facts.rate_now), "{facts:?}");
            assert_eq!(keys.is_infinite(), set == bits, "{facts:?}");
        }
    }
}
