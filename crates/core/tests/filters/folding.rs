//! Folding: smaller filters, unions and overlaps of different sizes, and the accuracy of estimates.

use petal::embed::{BlockedLayout, ClassicLayout, Layout};
use petal::{
    BloomFilter, ClassicBloomFilter, Estimate, Filter, HashSpec, Membership as _, Overlap,
};
use petal_testkit::bounds::normal_quantile;
use petal_testkit::rng::Rng;

use crate::models::folding as model;
use crate::naive::{HeaderFields, Naive};

/// Returns an empty filter of any layout, including layouts that no constructor returns.
fn empty<L: Layout>(naive: &Naive) -> Filter<L> {
    Filter::read_from(&naive.to_file(&HeaderFields::none())[..]).unwrap().0
}

fn fill<L: Layout>(filter: &mut Filter<L>, hashes: impl IntoIterator<Item = u64>) {
    hashes.into_iter().for_each(|hash| _ = filter.insert_mixed_hash(hash));
}

fn random(seed: u64, count: u64) -> impl Iterator<Item = u64> {
    let mut rng = Rng::new(Rng::new(seed).next_u64());
    (0..count).map(move |_| rng.next_u64())
}

// ---- Folds --------------------------------------------------------------------------------------

#[test]
fn random_folds_equal_the_model() {
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let length = rng.below(400);
        model::drive(&rng.bytes(length));
    }
    model::drive(&[]);
}

/// Returns the smallest fold by exhaustive search.
fn smallest<L: Layout>(filter: &Filter<L>, extent: u64, rate: f64) -> Option<Filter<L>> {
    let divisors = (1..=extent).rev().filter(|divisor| extent.is_multiple_of(*divisor));
    divisors.map(|by| filter.fold(by).unwrap()).find(|folded| folded.stats().estimated_fpr <= rate)
}

#[test]
fn shrink_returns_the_smallest_fold_that_keeps_the_fpr() {
    fn check<L: Layout>(mut filter: Filter<L>, extent: u64) {
        for (keys, seed) in [(0, 1), (1, 2), (20, 3), (300, 4), (3000, 5), (30_000, 6)] {
            fill(&mut filter, random(seed, keys));
            for rate in [0.3, 0.01, 1e-3] {
                let shrunk = filter.shrink_to_fpr(rate);
                match smallest(&filter, extent, rate) {
                    Some(best) => {
                        let shrunk = shrunk.unwrap();
                        // A filter of a few dozen bits may have a lower rate than calculated.
                        let same = shrunk == best || keys < 300;
                        assert!(same, "{keys} {rate} {:?} {:?}", shrunk.layout(), best.layout());
                        assert!(shrunk.size_bytes() <= 2 * best.size_bytes());
                        assert_eq!(shrunk.target_fpr(), rate);
                        assert!(!shrunk.stats().is_overfull);
                    }
                    None => assert!(shrunk.unwrap_err().is_invalid(), "{keys} {rate}"),
                }
            }
        }
    }
    check(empty::<BlockedLayout>(&Naive::blocked(720, 8, 8)), 720);
    check(empty::<BlockedLayout>(&Naive::blocked(360, 16, 11)), 360);
    check(empty::<BlockedLayout>(&Naive::blocked(997, 8, 6)), 997); // a prime: all or one
    check(empty::<ClassicLayout>(&Naive::classic(55_440, 7)), 55_440);
}

/// Default sizes shrink in steps of a few percent.
#[test]
fn default_sizes_shrink_in_small_steps() {
    let mut filter = BloomFilter::with_fpr(1_000_000, 0.01).unwrap();
    fill(&mut filter, random(1, 70_000));
    let shrunk = filter.shrink_to_fpr(0.01).unwrap();
    let needed = BlockedLayout::for_fpr(70_000, 0.01).unwrap();
    let part = shrunk.size_bytes() as f64 / needed.size_bytes() as f64;
    assert!(part < 1.25, "{part}: {:?} for {needed:?}", shrunk.layout());
    assert!(random(1, 70_000).all(|hash| shrunk.contains_mixed_hash(hash)));
    // With a new capacity the filter can be overfull.
    assert!(shrunk.capacity() >= 69_000 && shrunk.stats().capacity_left.is_some());
    assert!(shrunk.capacity() < 90_000);
    for rate in [0.0, 1.0, f64::NAN, -1.0] {
        assert!(filter.shrink_to_fpr(rate).unwrap_err().is_invalid());
    }
}

#[test]
fn fold_has_a_smaller_capacity_at_the_same_fpr() {
    let filter = BloomFilter::with_fpr(1_000_000, 0.01).unwrap();
    let folded = filter.fold(4).unwrap();
    assert_eq!(folded.target_fpr(), 0.01);
    assert!((240_000..260_000).contains(&folded.capacity()), "{}", folded.capacity());
    assert_eq!(filter.fold(1).unwrap().capacity(), 1_000_000);
    // Without a capacity the fold has none.
    let folded = BloomFilter::with_bits(4096, 8).unwrap().fold(2).unwrap();
    assert_eq!((folded.capacity(), folded.target_fpr()), (0, 0.0));
}

// ---- Unions across sizes ------------------------------------------------------------------------

#[test]
fn filters_of_different_sizes_form_a_union() {
    fn check<L: Layout>(mut small: Filter<L>) {
        let base = small.layout();
        assert!(small.foldable(10, 0.01).unwrap().layout() == base);
        let mut large = small.foldable(20_000, 0.01).unwrap();
        assert!(large.expected_fpr(20_000) <= 0.01 && large.hash_spec() == small.hash_spec());
        fill(&mut small, random(1, 300));
        fill(&mut large, random(2, 300));
        let both = small.union_folded(&large).unwrap();
        assert!(both.layout() == base && both == large.union_folded(&small).unwrap());
        fill(&mut small, random(2, 300));
        assert!(both == small);
    }
    let keyed = HashSpec::keyed([7; 16]);
    for spec in [HashSpec::rapid(5), keyed] {
        check(BloomFilter::builder().capacity(1000).fpr(0.01).hash(spec).build().unwrap());
        check(BloomFilter::builder().capacity(1000).fpr(1e-5).hash(spec).build().unwrap());
        check(ClassicBloomFilter::builder().capacity(1000).fpr(0.01).hash(spec).build().unwrap());
    }
}

#[test]
fn union_without_common_fold_is_an_error() {
    let filter = |bits, probes| BloomFilter::builder().bits(bits).probes(probes);
    let mut prime = filter(512 * 997, 8).build().unwrap();
    let other = filter(512 * 1009, 8).build().unwrap();
    // Empty filters can be folded to one block.
    assert!(prime.union_folded(&other).is_ok());
    fill(&mut prime, random(1, 10_000));
    let error = prime.union_folded(&other).unwrap_err();
    assert!(error.is_incompatible() && error.to_string().contains("size"), "{error}");
    // An overfull filter may stay overfull.
    let full = filter(512, 8);
    let mut full = [full.build().unwrap(), full.build().unwrap()];
    fill(&mut full[0], random(2, 10_000));
    assert!(full[1].union_folded(&full[0]).is_ok());
    for other in [filter(512 * 997, 7), filter(512 * 997, 9), filter(512 * 997, 8).seed(1)] {
        let other = other.build().unwrap();
        assert!(prime.union_folded(&other).unwrap_err().is_incompatible());
        assert!(prime.compare(&other).unwrap_err().is_incompatible());
        assert!(prime.compare(&other).unwrap_err().is_incompatible());
    }
}

// ---- Overlap ------------------------------------------------------------------------------------

/// Numbers of keys of two sets: only in the first, only in the second, in both.
#[derive(Clone, Copy, Debug)]
struct Sets {
    left: u64,
    right: u64,
    both: u64,
}

/// Compares errors with standard errors over many pairs of filters.
///
/// If the standard error is correct, the mean square over T pairs is 1, with a standard deviation of
/// about √(2/T). All comparisons together have a confidence of 99.9 %.
#[test]
fn standard_errors_equal_simulations() {
    const PAIRS: u64 = 400;
    let shapes = [
        Naive::blocked(60, 8, 8),
        Naive::blocked(60, 8, 5),
        Naive::blocked(40, 16, 16),
        Naive::blocked(40, 16, 11),
        Naive::classic(30_720, 7),
        Naive::classic(20_000, 1),
    ];
    let sets = [
        Sets { left: 1000, right: 1000, both: 1000 },
        Sets { left: 2500, right: 100, both: 400 },
        Sets { left: 1500, right: 1500, both: 0 },
        Sets { left: 0, right: 1000, both: 2500 },
    ];
    let cells = shapes.len() * sets.len();
    let confidence = 1.0 - 0.001 / (cells * 5) as f64;
    // A χ² of 400 is a little wider above than a normal one.
    let reach = 1.15 * normal_quantile(0.5 + confidence / 2.0) * (2.0 / PAIRS as f64).sqrt();
    let mut wrong = Vec::new();
    for (at, (shape, sets)) in
        shapes.iter().flat_map(|shape| sets.iter().map(move |sets| (shape, sets))).enumerate()
    {
        let mut squares = [0.0; 5];
        for pair in 0..PAIRS {
            let seed = (at as u64) << 32 | pair;
            let overlap = if shape.kind == 1 {
                simulate::<BlockedLayout>(shape, sets, seed)
            } else {
                simulate::<ClassicLayout>(shape, sets, seed)
            };
            for (square, (estimate, truth)) in squares.iter_mut().zip(truths(&overlap, sets)) {
                *square += ((estimate.value - truth) / estimate.error).powi(2) / PAIRS as f64;
            }
        }
        for (what, square) in ["left", "right", "union", "both", "jaccard"].iter().zip(squares) {
            // Without common keys half of all estimates are clamped to 0.
            let cut = sets.both == 0 && matches!(*what, "both" | "jaccard");
            let low = if cut { 0.0 } else { 1.0 - reach };
            if !(low..1.0 + reach).contains(&square) {
                let (kind, probes) = (shape.kind, shape.probes);
                wrong.push(format!("{kind} {} {probes} {sets:?} {what}: {square}", shape.lanes));
            }
        }
    }
    assert!(wrong.is_empty(), "bound {reach}:\n{}", wrong.join("\n"));
}

fn simulate<L: Layout>(shape: &Naive, sets: &Sets, seed: u64) -> Overlap {
    let (mut left, mut right) = (empty::<L>(shape), empty::<L>(shape));
    fill(&mut left, random(seed << 2, sets.left));
    fill(&mut right, random(seed << 2 | 1, sets.right));
    fill(&mut left, random(seed << 2 | 2, sets.both));
    fill(&mut right, random(seed << 2 | 2, sets.both));
    left.compare(&right).unwrap()
}

fn truths(overlap: &Overlap, sets: &Sets) -> [(Estimate, f64); 5] {
    let [left, right, both] = [sets.left, sets.right, sets.both].map(|keys| keys as f64);
    let union = left + right + both;
    [
        (overlap.left, left + both),
        (overlap.right, right + both),
        (overlap.union, union),
        (overlap.intersection, both),
        (overlap.jaccard, both / union),
    ]
}

#[test]
fn overlap_of_different_sizes_and_of_the_same_filter() {
    let mut large = BloomFilter::with_fpr(1_000_000, 0.01).unwrap();
    let mut small = BloomFilter::with_fpr(20_000, 0.01).unwrap();
    let mut large_too = small.foldable(300_000, 0.01).unwrap();
    fill(&mut small, random(1, 15_000));
    fill(&mut large_too, random(1, 10_000));
    fill(&mut large_too, random(2, 5_000));
    let overlap = small.compare(&large_too).unwrap();
    for (estimate, truth) in
        [(overlap.left, 15_000.0), (overlap.union, 20_000.0), (overlap.intersection, 10_000.0)]
    {
        assert!((estimate.value - truth).abs() < 5.0 * estimate.error, "{overlap:?}");
        assert!(estimate.error < 200.0, "{overlap:?}");
    }
    fill(&mut large, random(3, 500_000));
    let itself = large.compare(&large).unwrap();
    assert_eq!((itself.jaccard.value, itself.jaccard.error < 1e-6), (1.0, true), "{itself:?}");
    assert_eq!(itself.intersection.value, large.stats().estimated_len);
    // Without a clear bit the error is infinite.
    let mut full = BloomFilter::with_bits(512, 8).unwrap();
    let mut part = BloomFilter::with_bits(512, 8).unwrap();
    fill(&mut full, random(4, 20_000));
    let overlap = full.compare(&part).unwrap();
    let none = Estimate { value: 0.0, error: 0.0 };
    assert_eq!((overlap.right, overlap.intersection, overlap.jaccard), (none, none, none));
    fill(&mut part, random(5, 10));
    let overlap = full.compare(&part).unwrap();
    assert!(overlap.left.error.is_infinite() && overlap.jaccard.error.is_infinite());
}

// ---- Estimates ---------------------------------------------------------------

/// With half of the blocks full and half empty the rate is one half; from the mean fill it would be
/// 0.5^8.
#[test]
fn estimated_fpr_is_the_mean_over_blocks() {
    for (lanes, probes) in [(8, 8), (8, 5), (16, 16), (16, 9)] {
        let mut naive = Naive::blocked(10, lanes, probes);
        let half = naive.data.len() / 2;
        naive.data[..half].fill(0xff);
        let filter = empty::<BlockedLayout>(&naive);
        assert!(
            (filter.stats().estimated_fpr - 0.5).abs() < 1e-9,
            "{}",
            filter.stats().estimated_fpr
        );
        assert_eq!(filter.stats().fill_ratio, 0.5);
        // The mean is also over the lanes of a key: every second lane is full.
        let mut naive = Naive::blocked(10, lanes, probes);
        naive.data.chunks_mut(16).for_each(|lanes| lanes[..8].fill(0xff));
        // Only the hash floor remains.
        assert!(empty::<BlockedLayout>(&naive).stats().estimated_fpr < 1e-15);
    }
    let mut filter = BloomFilter::with_fpr(100_000, 0.01).unwrap();
    fill(&mut filter, random(9, 100_000));
    let of_the_mean = filter.stats().fill_ratio.powi(8);
    let measured = random(10, 1_000_000).filter(|hash| filter.contains_mixed_hash(*hash)).count();
    assert!(filter.stats().estimated_fpr > 1.2 * of_the_mean, "{of_the_mean}");
    let (low, high) =
        petal_testkit::bounds::binomial_range(1_000_000, filter.stats().estimated_fpr, 0.999);
    assert!((low..=high).contains(&(measured as u64)), "{measured} not in {low}..{high}");
}

#[test]
fn remaining_capacity_and_overfull_filters() {
    fn check<L: Layout>(mut filter: Filter<L>) {
        assert!(filter.stats().capacity_left.unwrap() >= 50_000 && !filter.stats().is_overfull);
        let mut rng = Rng::new(77);
        for fifth in 1..=5u64 {
            fill(&mut filter, (0..10_000).map(|_| rng.next_u64()));
            let left = filter.stats().capacity_left.unwrap() as f64;
            let expect = filter.shape_holds() - fifth as f64 * 10_000.0;
            assert!((left - expect.max(0.0)).abs() < 600.0, "{fifth}: {left} {expect}");
            assert!(!filter.stats().is_overfull, "{fifth}");
        }
        fill(&mut filter, (0..5_000).map(|_| rng.next_u64()));
        assert!(filter.stats().is_overfull && filter.stats().capacity_left == Some(0));
        filter.clear();
        assert!(!filter.stats().is_overfull);
        // Without clear bits the estimate is infinite, and no key fits.
        let full = filter.fold(1).unwrap();
        assert!(full.stats().capacity_left.unwrap() >= 50_000);
    }
    trait Holds {
        fn shape_holds(&self) -> f64;
    }
    impl<L: Layout> Holds for Filter<L> {
        /// Keys at the rate it was planned for, by bisection.
        fn shape_holds(&self) -> f64 {
            let (mut low, mut high) = (0, 1 << 30);
            while high - low > 1 {
                let middle = (low + high) / 2;
                let fits = self.expected_fpr(middle) <= self.target_fpr();
                if fits { low = middle } else { high = middle }
            }
            low as f64
        }
    }
    check(BloomFilter::with_fpr(50_000, 0.01).unwrap());
    check(BloomFilter::with_fpr(50_000, 1e-5).unwrap());
    check(ClassicBloomFilter::with_fpr(50_000, 0.01).unwrap());
    // Without a plan there is nothing to keep.
    let mut plain = BloomFilter::with_bits(512, 8).unwrap();
    fill(&mut plain, random(1, 10_000));
    assert!(plain.stats().capacity_left.is_none() && !plain.stats().is_overfull);
    assert!(plain.stats().estimated_len.is_infinite() && plain.stats().estimated_fpr == 1.0);
}

#[test]
fn fills_of_blocks_are_counted() {
    let mut naive = Naive::blocked(10, 16, 9);
    // A block full, one half full, one with a single bit; seven empty.
    naive.data[..128].fill(0xff);
    naive.data[128..192].fill(0xff);
    naive.data[256] = 1;
    let filter = empty::<BlockedLayout>(&naive);
    assert_eq!(filter.block_fills(4), [8, 0, 1, 1]);
    assert_eq!(filter.block_fills(1), [10]);
    assert_eq!(filter.block_fills(0), [10]);
    assert_eq!(filter.block_fills(1024)[..2], [7, 1]);
    assert_eq!(filter.block_fills(1024).iter().sum::<u64>(), 10);
    assert!(empty::<ClassicLayout>(&Naive::classic(100, 3)).block_fills(4).is_empty());
}
