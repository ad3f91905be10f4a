//! Bits per key of the layouts, by the library's rates; no timing.

use petal::{ClassicShape, Shape, rate};

/// Enough keys that a block more or less does not show.
const KEYS: u64 = 10_000_000;

/// One layout at one rate.
pub(crate) struct Size {
    pub(crate) layout: &'static str,
    pub(crate) probes: u32,
    pub(crate) bits_per_key: f64,
}

/// All layouts at a rate, the textbook's first.
pub(crate) fn sizes(rate: f64) -> Vec<Size> {
    let mut sizes = Vec::new();
    if let Ok(shape) = ClassicShape::for_rate(KEYS, rate) {
        let bits_per_key = shape.bits() as f64 / KEYS as f64;
        sizes.push(Size { layout: "classic", probes: shape.probes(), bits_per_key });
    }
    for (layout, lanes, all) in [
        ("line, all lanes", 8, true),
        ("line, rotated", 8, false),
        ("pair, all lanes", 16, true),
        ("pair, rotated", 16, false),
    ] {
        let shape = smallest(KEYS, rate, lanes, if all { lanes } else { 1 });
        let bits_per_key = shape.bits() as f64 / KEYS as f64;
        sizes.push(Size { layout, probes: shape.probes(), bits_per_key });
    }
    let word = |probes| move |load: f64| hit(probes, load * f64::from(probes), 64.0);
    let line = |probes| move |load: f64| hit(probes, load * f64::from(probes), 512.0);
    sizes.push(foreign("split block 8 x 32", rate, 256.0, 8..=8, |_| |load| hit(8, load, 32.0)));
    sizes.push(foreign("any k of a line", rate, 512.0, 1..=24, line));
    sizes.push(foreign("register 64", rate, 64.0, 1..=16, word));
    sizes
}

/// The smallest shape of `lanes` lanes that keeps the rate, with `least` to `lanes` probes.
pub(crate) fn smallest(keys: u64, rate: f64, lanes: u32, least: u32) -> Shape {
    let sized = |probes| {
        let shape = |blocks| Shape::new(blocks, lanes, probes).unwrap_or_else(|e| panic!("{e}"));
        shape(bisect(|blocks| shape(blocks).rate(keys) <= rate))
    };
    let best = (least..=lanes).map(sized).min_by_key(Shape::blocks);
    best.unwrap_or_else(|| panic!("no probes from {least} to {lanes}"))
}

/// A layout that the library does not have, in blocks of `bits`: the Poisson sum over the load of a block (Putze,
/// Sanders & Singler 2007) of what `hit` says.
fn foreign<F: Fn(f64) -> f64>(
    layout: &'static str,
    rate: f64,
    bits: f64,
    probes: std::ops::RangeInclusive<u32>,
    hit: impl Fn(u32) -> F,
) -> Size {
    let sized = |probes| {
        let blocks = bisect(|blocks| {
            let mean = KEYS as f64 / blocks as f64;
            rate::either(poisson(mean, hit(probes)), rate::hash_floor(KEYS)) <= rate
        });
        Size { layout, probes, bits_per_key: blocks as f64 * bits / KEYS as f64 }
    };
    let by_size = |a: &Size, b: &Size| a.bits_per_key.total_cmp(&b.bits_per_key);
    let best = probes.map(sized).min_by(by_size);
    best.unwrap_or_else(|| panic!("{layout} without probes"))
}

/// The chance that `probes` bits are set where `balls` bits fell into `bits`.
fn hit(probes: u32, balls: f64, bits: f64) -> f64 {
    (-(balls * (-1.0 / bits).ln_1p()).exp_m1()).powi(probes as i32)
}

fn poisson(mean: f64, value: impl Fn(f64) -> f64) -> f64 {
    if mean > 600.0 {
        return value(mean);
    }
    let (mut chance, mut sum, mut load) = ((-mean).exp(), 0.0, 0.0);
    while load <= mean + 12.0 * mean.sqrt() + 60.0 {
        sum += chance * value(load);
        load += 1.0;
        chance *= mean / load;
    }
    sum
}

/// The least number that fits, if larger ones fit too.
fn bisect(fits: impl Fn(u64) -> bool) -> u64 {
    let mut high = 1;
    while !fits(high) {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}
