//! Requests for the size of a filter, to compare everything that plans filters.

use crate::rng::Rng;

/// What a filter is planned from; `None` is to be found.
#[derive(Clone, Copy, Debug)]
pub struct SizeRequest {
    /// The name of the type of filter.
    pub name: &'static str,
    /// The number of keys.
    pub capacity: Option<u64>,
    /// The false-positive rate.
    pub fpr: Option<f64>,
    /// Bytes.
    pub memory: Option<u64>,
    /// Bits of a key.
    pub probes: Option<u32>,
}

/// The types that probes size, too, and the types that only a rate sizes.
const BLOOM: [&str; 4] = ["bloom", "classic", "counting", "counting-classic"];
const BY_RATE: [&str; 6] =
    ["quotient", "vector-quotient", "scalable", "windowed", "static", "static-fuse"];

/// Returns `count` random requests, the same in every run. Some have no solution.
pub fn size_requests(count: usize) -> impl Iterator<Item = SizeRequest> {
    let mut rng = Rng::new(36);
    (0..count).map(move |number| {
        // Uniform on a logarithmic scale.
        let mut between = |from: f64, to: f64| {
            let share = rng.next_u64() as f64 / u64::MAX as f64;
            from * (to / from).powf(share)
        };
        let (capacity, memory) = (between(1.0, 1e9) as u64, between(64.0, 1e9) as u64);
        let fpr: f64 = format!("{:.3e}", between(1e-6, 0.3)).parse().unwrap_or(0.01);
        let (bloom, kind) = (number % 2 == 0, rng.below(8));
        let name = if bloom { rng.pick(&BLOOM) } else { rng.pick(&BY_RATE) };
        // Each bit stands for one of capacity, rate, memory and probes.
        let given = if bloom {
            [0b0011, 0b0011, 0b1011, 0b0101, 0b1101, 0b0110, 0b1110, 0b1100][kind]
        } else {
            [0b0011, 0b0011, 0b0011, 0b0011, 0b0110, 0b0110, 0b0101, 0b0101][kind]
        };
        let has = |bit: u32| given >> bit & 1 == 1;
        SizeRequest {
            name,
            capacity: has(0).then_some(capacity),
            fpr: has(1).then_some(fpr),
            memory: has(2).then_some(memory),
            probes: has(3).then(|| 1 + rng.below(12) as u32),
        }
    })
}
