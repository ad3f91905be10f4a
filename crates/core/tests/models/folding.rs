//! Filters with a common fold: folds, unions and overlaps compared with small filters of the same
//! hashes.

use petal::embed::{BlockedLayout, ClassicLayout, Layout};
use petal::{Borrowed, Filter, Membership as _, Overlap};

use crate::naive::{HeaderFields, Naive};

/// Numbers decoded from bytes; zeros after the end.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u64 {
        let (first, rest) =
            self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first.into()
    }

    /// Returns a hash; there are few, so that they repeat.
    fn hash(&mut self) -> u64 {
        let number = self.byte() << 8 | self.byte();
        match number >> 14 {
            // At the edges of blocks, and of all hashes.
            0 => u64::MAX << (number % 64),
            1 => (1 << (number % 64)) - 1,
            _ => number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number << 48,
        }
    }
}

/// Decodes two filters and their hashes, and checks all properties of folding.
pub(crate) fn drive(bytes: &[u8]) {
    let mut source = Source(bytes);
    let layout = source.byte() % 3;
    let (common, probes) = (1 + source.byte() % 40, source.byte());
    let times = [1 + source.byte() % 13, 1 + source.byte() % 13];
    let naive = |times: u64| match layout {
        0 => Naive::blocked(common * times, 8, 1 + probes % 8),
        1 => Naive::blocked(common * times, 16, 1 + probes % 16),
        // Sizes that are no multiples of words.
        _ => Naive::classic(common * times * 7, 1 + probes % 64),
    };
    let mut hashes = [Vec::new(), Vec::new()];
    while !source.0.is_empty() {
        let which = source.byte() % 3;
        let hash = source.hash();
        (0..2).filter(|side| which == 2 || which == *side).for_each(|side| {
            hashes[side as usize].push(hash);
        });
    }
    let filters = times.map(naive);
    if layout == 2 {
        check::<ClassicLayout>(&filters, &hashes);
    } else {
        check::<BlockedLayout>(&filters, &hashes);
    }
}

/// Returns the filter of these hashes by the naive model.
fn built<L: Layout>(shape: &Naive, hashes: &[u64]) -> Filter<L> {
    let mut naive = shape.clone();
    hashes.iter().for_each(|&hash| _ = naive.insert(hash));
    Filter::read_from(&naive.to_file(&HeaderFields::none())[..]).expect("a valid file").0
}

fn smaller(shape: &Naive, divisor: u64) -> Naive {
    let extent = shape.extent / divisor;
    if shape.kind == 1 {
        Naive::blocked(extent, shape.lanes, shape.probes)
    } else {
        Naive::classic(extent, shape.probes)
    }
}

fn check<L: Layout>(shapes: &[Naive; 2], hashes: &[Vec<u64>; 2]) {
    let [left, right] = [0, 1].map(|side| built::<L>(&shapes[side], &hashes[side]));

    // Every fold equals the small filter; a factor that does not divide the size is an error.
    let extent = shapes[0].extent;
    let file = shapes[0].to_file(&HeaderFields::none());
    let mut buffer = vec![0; file.len() + 64];
    let start = buffer.as_ptr().align_offset(64);
    buffer[start..start + file.len()].copy_from_slice(&file);
    let empty = Filter::<L, Borrowed<'_>>::from_bytes(&buffer[start..start + file.len()])
        .expect("a valid file");
    for divisor in 0..=extent.min(100) + 1 {
        if divisor == 0 || !extent.is_multiple_of(divisor) {
            assert!(left.fold(divisor).is_err_and(|error| error.is_invalid()), "{divisor}");
            continue;
        }
        let folded = left.fold(divisor).expect("a divisor");
        assert!(folded == built(&smaller(&shapes[0], divisor), &hashes[0]), "by {divisor}");
        assert_eq!((folded.inserted(), folded.hash_spec()), (left.inserted(), left.hash_spec()));
        assert!(
            hashes[0].iter().all(|&hash| folded.contains_mixed_hash(hash)),
            "lost a key by {divisor}"
        );
        assert_eq!(empty.fold(divisor).expect("a divisor").stats().fill_ratio, 0.0);
    }

    // The union of both is the filter of the common size built from both.
    let common = (1..=extent.min(shapes[1].extent))
        .rev()
        .find(|size| extent.is_multiple_of(*size) && shapes[1].extent.is_multiple_of(*size));
    let common = common.expect("one divides all");
    let (ours, theirs) = (extent / common, shapes[1].extent / common);
    let both = [&hashes[0][..], &hashes[1]].concat();
    let small = built::<L>(&smaller(&shapes[0], ours), &both);
    match left.union_folded(&right) {
        Ok(union) => {
            assert!(union == small, "{ours} and {theirs}");
            let (estimate, inserted) = (small.stats().estimated_len, union.inserted());
            let least = f64::from(u8::from(estimate > 0.0));
            let rounded = estimate.round().max(least);
            assert!(inserted as f64 == rounded || estimate.is_infinite(), "{inserted}");
            assert!(inserted < 1 << 40, "{inserted}");
        }
        Err(error) => {
            assert!(error.is_incompatible() && ours.max(theirs) > 1, "{error}");
            assert!(small.stats().estimated_fpr > 0.5, "{error}");
        }
    }

    // So is the overlap, in both directions.
    let overlap = left.compare(&right).expect("compatible filters");
    let (a, b) = (left.fold(ours).expect("divides"), right.fold(theirs).expect("divides"));
    let folds = a.compare(&b).expect("equal shapes");
    // As text, because what is unknown is NaN.
    let common = |overlap: &Overlap| format!("{:?} {:?}", overlap.jaccard, overlap.intersection);
    assert_eq!(overlap.union, folds.union);
    assert_eq!(common(&overlap), common(&folds));
    // But the keys of each filter are estimated from all of its bits.
    assert_eq!(overlap.left.value, left.stats().estimated_len);
    assert_eq!(overlap.right.value, right.stats().estimated_len);
    assert_eq!(overlap.union.value, small.stats().estimated_len);
    let other = right.compare(&left).expect("compatible filters");
    assert_eq!((other.left, other.union), (overlap.right, overlap.union));
    for estimate in [overlap.left, overlap.union, overlap.intersection, overlap.jaccard] {
        let known = !estimate.value.is_nan();
        assert!(!known || estimate.value >= 0.0 && estimate.error >= 0.0, "{overlap:?}");
        assert!(estimate.value.is_finite() || estimate.error.is_infinite(), "{overlap:?}");
    }
    let known = overlap.jaccard.error.is_finite();
    assert!(!known || overlap.jaccard.value <= 1.0, "{overlap:?}");
    assert!(!known || overlap.intersection.value <= overlap.union.value, "{overlap:?}");

    // A shrunk filter keeps the rate, and no smaller fold does by calculation.
    for rate in [0.5, 0.01] {
        match left.shrink_to_fpr(rate) {
            Ok(shrunk) => {
                assert!(shrunk.stats().estimated_fpr <= rate && shrunk.target_fpr() == rate);
                assert!(hashes[0].iter().all(|&hash| shrunk.contains_mixed_hash(hash)));
            }
            Err(error) => {
                assert!(error.is_invalid() && left.stats().estimated_fpr > rate, "{rate} {error}");
            }
        }
    }
}
