//! Tests of blocked and classic layouts.

use super::blocked::{
    BlockedLayout, LEAST_OF_LINES, LEAST_OF_PAIRS, LEAST_PAIRS_BELOW, MASK_COST, PAIRS_BELOW,
    PAIRS_SMALLER_BELOW, PROBES_OF_LINES, PROBES_OF_PAIRS,
};
use super::classic::{ClassicLayout, MAX_PROBES};
use super::search::{MAX_BITS, MAX_LINES, ROUND_UNITS, round_up, smallest_fitting};
use crate::byte_size::ByteSize;
use crate::math;

/// Removes one rounding unit, at most a thousandth of the size.
#[test]
fn layout_for_fpr_is_the_smallest() {
    for keys in [1, 2, 10, 100, 1000, 1_000_000, 100_000_000_000] {
        for rate in [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7] {
            let layout = BlockedLayout::for_fpr(keys, rate).unwrap();
            assert!(layout.fpr(keys) <= rate);
            if layout.blocks > 1 {
                let unit = unit(layout.blocks);
                assert!(layout.blocks.is_multiple_of(unit), "{layout:?}");
                let less = BlockedLayout { blocks: layout.blocks - unit, ..layout };
                assert!(less.fpr(keys) > rate, "{keys} {rate} {layout:?}");
            }
            let holds = layout.capacity_at_fpr(rate);
            assert!(holds >= keys && layout.fpr(holds) <= rate && layout.fpr(holds + 1) > rate);

            let classic = ClassicLayout::for_fpr(keys, rate).unwrap();
            assert!(classic.fpr(keys) <= rate && classic.capacity_at_fpr(rate) >= keys);
            assert!(classic.bits.is_multiple_of(unit(classic.bits)), "{classic:?}");
        }
    }
}

/// Blocks that keep a rate, by a search without a guess.
fn smallest_blocks(keys: u64, rate: f64, lanes: u32, probes: u32) -> Option<u64> {
    smallest_fitting(MAX_LINES, |blocks| BlockedLayout { blocks, lanes, probes }.fpr(keys) <= rate)
}

/// The reason for `PROBES_OF_LINES` and `PROBES_OF_PAIRS`.
#[test]
fn probes_of_a_rate_need_the_least_space() {
    let best = |lanes: u32, rate: f64| {
        let cost = |probes| {
            let blocks = smallest_blocks(1 << 30, rate, lanes, probes).unwrap() as f64;
            if probes == lanes { blocks } else { blocks * MASK_COST }
        };
        (1..=lanes).min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap()
    };
    for (lanes, table) in [(8, &PROBES_OF_LINES[..]), (16, &PROBES_OF_PAIRS[..])] {
        for (at, (lowest, probes)) in table.iter().enumerate() {
            let below = table.get(at + 1).map_or(lanes, |entry| entry.1);
            let found = (best(lanes, lowest * 1.0005), best(lanes, lowest * 0.9995));
            assert_eq!(found, (*probes, below), "{lanes} {lowest}");
        }
    }
}

/// The reason for `LEAST_OF_LINES` and `LEAST_OF_PAIRS`.
#[test]
fn probes_for_the_least_space_need_the_least_space() {
    let best = |lanes: u32, rate: f64| {
        let blocks = |probes: &u32| smallest_blocks(1 << 30, rate, lanes, *probes).unwrap();
        (1..=lanes).min_by_key(blocks).unwrap()
    };
    for (lanes, table) in [(8, &LEAST_OF_LINES[..]), (16, &LEAST_OF_PAIRS[..])] {
        for (at, (lowest, probes)) in table.iter().enumerate() {
            let below = table.get(at + 1).map_or(lanes, |entry| entry.1);
            let found = (best(lanes, lowest * 1.001), best(lanes, lowest * 0.999));
            assert_eq!(found, (*probes, below), "{lanes} {lowest}");
        }
    }
    let size = |lanes: u32, rate: f64| {
        let blocks = smallest_blocks(1 << 30, rate, lanes, best(lanes, rate)).unwrap();
        (blocks * u64::from(lanes)) as f64
    };
    for (rate, saved) in [(0.03, 0.0006), (LEAST_PAIRS_BELOW, 0.0039), (0.01, 0.0079)] {
        let part = 1.0 - size(16, rate) / size(8, rate);
        assert!((part - saved).abs() < 1e-4, "{rate}: {part}");
    }
}

#[test]
fn least_space_keeps_the_rate_and_is_never_larger() {
    for keys in [1, 10, 20, 60, 100, 1000, 30_000, 1_000_000] {
        for rate in [0.6, 0.3, 0.1, 0.05, 0.021, 0.019, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-6, 1e-9] {
            let smallest = BlockedLayout::for_least_space(keys, rate).unwrap();
            assert!(smallest.fpr(keys) <= rate, "{keys} {rate}");
            let default = BlockedLayout::for_fpr(keys, rate).unwrap();
            assert!(smallest.size_bytes() <= default.size_bytes() * 1001 / 1000, "{keys} {rate}");
            let classic = ClassicLayout::for_least_space(keys, rate).unwrap();
            let default = ClassicLayout::for_fpr(keys, rate).unwrap();
            assert!(classic.fpr(keys) <= rate && classic.bits <= default.bits, "{keys} {rate}");
            assert!(keys < 1000 || classic == default, "{keys} {rate}: {classic:?} {default:?}");
        }
    }
    let bits_per_key =
        |rate| BlockedLayout::for_least_space(1_000_000, rate).unwrap().bits() as f64 / 1e6;
    let found = [0.1, 0.01, 1e-3, 1e-4].map(bits_per_key);
    let max_bits = [4.87, 9.87, 15.07, 20.7];
    assert!(found.iter().zip(max_bits).all(|(found, max)| *found < max), "{found:?}");
    // Filters of one rate can be compared and folded.
    let layouts =
        [30_000, 80_000, 10_000_000].map(|keys| BlockedLayout::for_least_space(keys, 0.01));
    let same = |layout: &BlockedLayout| (layout.lanes, layout.probes) == (16, 7);
    assert!(layouts.iter().all(|layout| same(layout.as_ref().unwrap())), "{layouts:?}");
    assert!(BlockedLayout::for_least_space(10, 0.0).unwrap_err().is_invalid());
    assert!(BlockedLayout::for_least_space(500_000_000, 1e-12).unwrap_err().is_unattainable());
}

#[test]
fn probes_follow_from_the_rate_alone() {
    for rate in [0.9, 0.3, 0.1, 0.03, 0.01, 1e-3, 3e-4, 1e-4, 1e-6, 1e-9] {
        let layout = |keys| BlockedLayout::for_fpr(keys, rate).unwrap();
        let all = [1, 10, 60, 1000, 1_000_000, 100_000_000].map(layout);
        let same = |of: fn(&BlockedLayout) -> u32| all.iter().all(|l| of(l) == of(&all[0]));
        assert!(same(BlockedLayout::probes) && same(BlockedLayout::lanes), "{all:?}");
        let classic = |keys| ClassicLayout::for_fpr(keys, rate).unwrap().probes;
        let all = [1, 2, 5, 10, 60, 1000, 1_000_000, 100_000_000].map(classic);
        assert!(all.iter().all(|probes| *probes == all[0]), "{rate}: {all:?}");
    }
}

#[test]
fn a_lower_rate_needs_no_less_space() {
    for keys in [60, 1000, 30_000, 1_000_000] {
        let rates = (0..4000).map(|step| 0.5 * 0.995_f64.powi(step));
        let sizes: Vec<_> = rates.map(|rate| BlockedLayout::for_fpr(keys, rate)).collect();
        let sizes = sizes.iter().map(|layout| layout.as_ref().unwrap().size_bytes());
        let sizes: Vec<_> = sizes.collect();
        // Lines and pairs, probes and the rounding differ by up to 2 %, or a pair.
        let limit = |size: u64| size as f64 * 1.02 + 128.0;
        assert!(sizes.windows(2).all(|pair| pair[0] as f64 <= limit(pair[1])), "{keys}");
    }
}

/// The sums that decide in the search are least accurate for the smallest filters.
#[test]
fn short_search_equals_exhaustive_search_for_tiny_classic_filters() {
    for keys in 1..=16 {
        for step in 0..220 {
            let rate = 0.9 * 0.92f64.powi(step);
            let found = ClassicLayout::for_fpr(keys, rate).unwrap();
            let fits = |bits| ClassicLayout { bits, ..found }.fpr(keys) <= rate;
            assert_eq!(Some(found.bits), smallest_fitting(MAX_BITS, fits), "{keys} {rate}");
        }
    }
}

/// Compares with a search over all sizes, and of classic filters over all probes.
#[test]
fn short_search_equals_exhaustive_search() {
    for keys in [1, 2, 3, 5, 7, 10, 25, 60, 100, 250, 1000, 5000, 30_000] {
        for rate in [0.9, 0.5, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 2e-4, 1e-4, 1e-5, 3e-7, 1e-9] {
            let found = BlockedLayout::for_fpr(keys, rate).unwrap();
            let full = smallest_blocks(keys, rate, found.lanes, found.probes).unwrap();
            assert_eq!(found.blocks, round_up(full, MAX_LINES), "{keys} {rate}");

            let ideal = (-rate.log2()).round().max(1.0) as u32;
            let sized = |probes: u32| {
                let fits = |bits| ClassicLayout { bits, probes }.fpr(keys) <= rate;
                smallest_fitting(MAX_BITS, fits).map(|bits| ClassicLayout { bits, probes })
            };
            let near = ideal.saturating_sub(2).max(1)..=(ideal + 2).min(MAX_PROBES);
            let full = near.filter_map(sized).min_by_key(|layout| layout.bits);
            let full =
                full.map(|best| ClassicLayout { bits: round_up(best.bits, MAX_BITS), ..best });
            assert_eq!(ClassicLayout::for_least_space(keys, rate).ok(), full, "{keys} {rate}");
            let found = ClassicLayout::for_fpr(keys, rate).unwrap();
            let smallest = sized(found.probes).unwrap().bits;
            assert_eq!(found.bits, round_up(smallest, MAX_BITS), "{keys} {rate}");
        }
    }
}

/// Counts rate calculations: one takes about 0.5 µs for a blocked and 2 µs for a small classic
/// layout.
#[test]
fn for_fpr_needs_few_evaluations() {
    let count = |work: &dyn Fn()| {
        let before = math::EVALUATIONS.with(core::cell::Cell::get);
        work();
        math::EVALUATIONS.with(core::cell::Cell::get) - before
    };
    for keys in 1..=10 {
        for rate in [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5] {
            let classic = count(&|| drop(ClassicLayout::for_fpr(keys, rate)));
            assert!(classic <= 1, "{keys} {rate}: {classic}");
            let counted = count(&|| drop(BlockedLayout::for_counted_keys(keys, rate.min(1e-3))));
            assert_eq!(counted, 0, "{keys} {rate}");
        }
    }
    for keys in [1, 2, 10, 60, 100, 1000, 30_000, 1_000_000, 10_000_000_000] {
        for rate in [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-7, 1e-9] {
            let blocked = count(&|| drop(BlockedLayout::for_fpr(keys, rate)));
            assert!(blocked <= 12, "{keys} {rate}: {blocked}");
            let classic = count(&|| drop(ClassicLayout::for_fpr(keys, rate)));
            assert!(classic <= 12, "{keys} {rate}: {classic}");
        }
    }
}

#[test]
fn given_probes_are_kept() {
    for keys in [1, 100, 50_000] {
        for (rate, probes) in [(0.5, 1), (0.01, 4), (0.01, 8), (0.01, 12), (1e-5, 8), (1e-5, 9)] {
            let layout = BlockedLayout::for_fpr_with_probes(keys, rate, probes).unwrap();
            assert!(layout.probes == probes && layout.fpr(keys) <= rate, "{layout:?}");
            assert!(layout.blocks >= BlockedLayout::for_fpr(keys, rate).unwrap().blocks / 2);
            let classic = ClassicLayout::for_fpr_with_probes(keys, rate, probes).unwrap();
            assert!(classic.probes == probes && classic.fpr(keys) <= rate, "{classic:?}");
            let same = BlockedLayout::for_memory_with_probes(
                ByteSize::bytes(layout.size_bytes() + 63),
                probes,
            )
            .unwrap();
            assert_eq!(same, layout);
        }
    }
    for probes in [0, 17, 99] {
        assert!(BlockedLayout::for_fpr_with_probes(100, 0.01, probes).unwrap_err().is_invalid());
        assert!(
            BlockedLayout::for_memory_with_probes(ByteSize::bytes(6400), probes)
                .unwrap_err()
                .is_invalid()
        );
    }
    assert!(ClassicLayout::for_fpr_with_probes(100, 0.01, 65).unwrap_err().is_invalid());
    assert!(BlockedLayout::for_fpr_with_probes(100, 1e-11, 9).unwrap_err().is_invalid());
    assert!(
        BlockedLayout::for_memory_with_probes(ByteSize::bytes(127), 9).unwrap_err().is_invalid()
    );
}

#[test]
fn max_capacity_is_within_2_percent() {
    let check = |bytes: u64, rate: f64, keys: u64, size: &dyn Fn(u64) -> u64| {
        assert!(keys == 0 || size(keys) <= bytes, "{bytes} {rate} {keys}");
        let beyond = (keys + keys / 50).max(keys + 1) + 1;
        let step = (keys / 1000).max(1);
        let more = (beyond..=beyond + keys / 10).step_by(step as usize);
        let fitting: Vec<_> = more.filter(|&keys| size(keys) <= bytes).collect();
        assert!(fitting.is_empty(), "{bytes} {rate} {keys}: {fitting:?}");
    };
    for bytes in [64, 192, 640, 5000, 64_000, 768_000, 800_000, 64 << 20, 1 << 30] {
        for rate in [0.3, 0.1, 0.05, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5] {
            let size = |keys| BlockedLayout::for_fpr(keys, rate).unwrap().size_bytes();
            check(
                bytes,
                rate,
                BlockedLayout::max_capacity(ByteSize::bytes(bytes), rate).unwrap(),
                &size,
            );
            let size = |keys| ClassicLayout::for_fpr(keys, rate).unwrap().size_bytes();
            check(
                bytes,
                rate,
                ClassicLayout::max_capacity(ByteSize::bytes(bytes), rate).unwrap(),
                &size,
            );
        }
    }
}

#[test]
fn max_capacity_fits_and_one_more_key_does_not() {
    for (bytes, rate) in [(64, 0.1), (6400, 0.01), (64 << 20, 0.01), (1 << 30, 1e-5), (64, 1e-9)] {
        let keys = BlockedLayout::max_capacity(ByteSize::bytes(bytes), rate).unwrap();
        assert!(keys == 0 || BlockedLayout::for_fpr(keys, rate).unwrap().size_bytes() <= bytes);
        assert!(BlockedLayout::for_fpr(keys + 1, rate).unwrap().size_bytes() > bytes);
        let keys = ClassicLayout::max_capacity(ByteSize::bytes(bytes), rate).unwrap();
        assert!(ClassicLayout::for_fpr(keys, rate).unwrap().size_bytes() <= bytes);
        assert!(ClassicLayout::for_fpr(keys + 1, rate).unwrap().size_bytes() > bytes);
    }
    assert!(BlockedLayout::max_capacity(ByteSize::bytes(64), 0.0).unwrap_err().is_invalid());
    assert_eq!(BlockedLayout::max_capacity(ByteSize::bytes(63), 0.5).unwrap(), 0);
}

/// Returns the rounding unit of a size; before rounding it may have been the next smaller unit.
fn unit(extent: u64) -> u64 {
    let max_step = extent / 1000;
    let small = (extent - max_step).max(1) / 1000;
    let largest =
        |max_step| ROUND_UNITS.into_iter().rev().find(|unit| *unit <= max_step).unwrap_or(1);
    if extent.is_multiple_of(largest(max_step)) { largest(max_step) } else { largest(small) }
}

#[test]
fn multiple_for_fpr_is_the_smallest_multiple() {
    let small = BlockedLayout::new(77, 8, 8).unwrap();
    let large = small.multiple_for_fpr(1_000_000, 0.01).unwrap();
    assert!(large.blocks.is_multiple_of(77) && large.fpr(1_000_000) <= 0.01);
    let less = BlockedLayout { blocks: large.blocks - 77, ..large };
    assert!(less.fpr(1_000_000) > 0.01);
    assert_eq!(small.multiple_for_fpr(1, 0.01).unwrap(), small);
    let masked = BlockedLayout::new(77, 16, 9).unwrap();
    assert!(masked.multiple_for_fpr(100, 1e-12).unwrap_err().is_invalid());
    assert!(small.multiple_for_fpr(500_000_000, 1e-12).unwrap_err().is_unattainable());
    let classic = ClassicLayout::for_bits(1001, 7).unwrap();
    let large = classic.multiple_for_fpr(1_000_000, 0.01).unwrap();
    assert!(large.bits.is_multiple_of(1001) && large.fpr(1_000_000) <= 0.01);
}

#[test]
fn bits_per_key_of_both_layouts() {
    let bits_per_key = |rate| BlockedLayout::for_fpr(1_000_000, rate).unwrap().bits() as f64 / 1e6;
    // Target: 10.1; rounding may cost a thousandth.
    assert!(bits_per_key(0.01) <= 10.1 * 1.001, "{}", bits_per_key(0.01));
    assert!(bits_per_key(1e-3) <= 15.75, "{}", bits_per_key(1e-3));
    assert!(bits_per_key(1e-4) <= 20.8, "{}", bits_per_key(1e-4));
    let classic = |rate| ClassicLayout::for_fpr(1_000_000, rate).unwrap().bits() as f64 / 1e6;
    assert!((9.58..9.61).contains(&classic(0.01)), "{}", classic(0.01));
    assert!((14.37..14.39).contains(&classic(1e-3)), "{}", classic(1e-3));
}

/// The reason for the value of `PAIRS_BELOW`.
#[test]
fn pairs_save_a_tenth_at_the_threshold() {
    let smallest = |lanes, rate| {
        let fits = |blocks, probes| BlockedLayout { blocks, lanes, probes }.fpr(1_000_000) <= rate;
        let sized = |probes| smallest_fitting(MAX_LINES, |blocks| fits(blocks, probes)).unwrap();
        (1..=lanes).map(sized).min().unwrap() * u64::from(lanes)
    };
    for (rate, saved) in [(1e-3, 0.043), (PAIRS_BELOW, 0.096), (1e-4, 0.124)] {
        let part = 1.0 - smallest(16, rate) as f64 / smallest(8, rate) as f64;
        assert!((part - saved).abs() < 0.001, "{rate}: {part}");
    }
    // Single lines for the rate are as large as pairs for a lower one.
    let single = smallest(8, PAIRS_SMALLER_BELOW) as f64;
    assert!((single / smallest(16, PAIRS_BELOW) as f64 - 1.0).abs() < 0.005);
    let lanes = |rate| BlockedLayout::for_fpr(1000, rate).unwrap().lanes();
    assert_eq!((lanes(PAIRS_SMALLER_BELOW), lanes(PAIRS_SMALLER_BELOW * 0.99)), (8, 16));
    // With slightly more memory the rate falls below the threshold.
    let bytes = smallest(8, PAIRS_BELOW) * 8;
    assert_eq!(
        BlockedLayout::for_memory(1_000_000, ByteSize::bytes(bytes - 64)).unwrap().lanes(),
        8
    );
    assert_eq!(
        BlockedLayout::for_memory(1_000_000, ByteSize::bytes(bytes + 640)).unwrap().lanes(),
        16
    );
}

#[test]
fn for_memory_uses_all_memory() {
    for bytes in [64, 100, 1000, 1 << 20, 4 << 30] {
        for keys in [1, 1000, 5_000_000_000] {
            let layout = BlockedLayout::for_memory(keys, ByteSize::bytes(bytes)).unwrap();
            assert!(layout.size_bytes() <= bytes && layout.size_bytes() + 128 > bytes);
            let classic = ClassicLayout::for_memory(keys, ByteSize::bytes(bytes)).unwrap();
            assert!(classic.size_bytes() <= bytes && classic.size_bytes() + 64 > bytes);
        }
    }
    // The headline: about 4 % at 6.9 bits per key.
    let layout = BlockedLayout::for_memory(5_000_000_000, ByteSize::gib(4)).unwrap();
    assert!((0.036..0.045).contains(&layout.fpr(5_000_000_000)), "{layout:?}");
    let error = BlockedLayout::for_memory(1, ByteSize::bytes(63)).unwrap_err().to_string();
    assert!(error.contains("fits 63 bytes"), "{error}");
    let error = BlockedLayout::for_fpr(1, 0.0).unwrap_err().to_string();
    assert!(error.ends_with("expected more than 0 and less than 1, found 0.0"), "{error}");
}

/// Tiny filters, in which the fill varies most: 37 bits for one key at 10⁻⁷ once had a rate a
/// third above the target.
#[test]
fn tiny_classic_filters_keep_their_fpr() {
    for keys in 1..=20 {
        for rate in [0.5, 0.1, 1e-2, 1e-3, 1e-5, 1e-7] {
            let layout = ClassicLayout::for_fpr(keys, rate).unwrap();
            // The mean over the distribution of the number of set bits.
            let bits = layout.bits() as usize;
            let mut probability = vec![1.0];
            probability.resize(bits + 1, 0.0);
            for _ in 0..keys * u64::from(layout.probes()) {
                for set in (1..=bits).rev() {
                    let grown = probability[set - 1] * (bits - set + 1) as f64;
                    probability[set] = (probability[set] * set as f64 + grown) / bits as f64;
                }
                probability[0] = 0.0;
            }
            let share = |set: usize| set as f64 / bits as f64;
            let exact: f64 = (0..=bits)
                .map(|set| probability[set] * share(set).powi(layout.probes() as i32))
                .sum();
            assert!(exact <= rate * (1.0 + 1e-9), "{keys} {rate} {layout:?}: {exact}");
        }
    }
}

#[test]
fn invalid_and_unattainable_targets_are_errors() {
    for rate in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(BlockedLayout::for_fpr(10, rate).unwrap_err().is_invalid());
        assert!(ClassicLayout::for_fpr(10, rate).unwrap_err().is_invalid());
    }
    assert!(BlockedLayout::for_fpr(500_000_000, 1e-12).unwrap_err().is_unattainable());
    assert!(ClassicLayout::for_fpr(500_000_000, 1e-12).unwrap_err().is_unattainable());
    assert!(BlockedLayout::new(0, 8, 8).is_err() && BlockedLayout::new(1, 9, 8).is_err());
    assert!(BlockedLayout::new(1, 8, 9).is_err() && BlockedLayout::new(1, 16, 0).is_err());
    assert!(BlockedLayout::new(u64::MAX, 8, 1).is_err());
    assert!(ClassicLayout::for_bits(0, 1).is_err() && ClassicLayout::for_bits(1, 65).is_err());
}

#[test]
fn layouts_for_counted_keys_equal_those_by_exact_rates() {
    let few =
        (0..=50).flat_map(|capacity| (0..70).map(move |at| (capacity, 0.9 * 0.72f64.powi(at))));
    let capacities = [0, 1, 2, 9, 60, 100, 333, 1000, 1400, 1500, 5000, 20_000, 30_000, 500_000];
    let rates = [0.9_f64, 0.1, 0.01, 0.0025, 1e-3, 1e-4, 1e-5, 1e-9];
    let many = capacities.into_iter().flat_map(|capacity| rates.map(|fpr| (capacity, fpr)));
    for (capacity, fpr) in many.chain(few) {
        let first = BlockedLayout::for_fpr(capacity, fpr.min(0.5)).unwrap();
        let inserted = math::expected_insertions(capacity, |keys| first.fpr(keys));
        let exact = BlockedLayout::for_fpr(inserted.ceil() as u64, fpr.min(0.5)).unwrap();
        let found = BlockedLayout::for_counted_keys(capacity, fpr).unwrap();
        assert_eq!(found, exact, "{capacity} keys at {fpr}");
    }
}
