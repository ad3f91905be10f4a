//! Filters are planned by the functions that make them, and what a builder was given is honoured
//! or refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use petal::{
    BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter, CountingBloomFilter, Membership,
    QuotientFilter, ScalableBloomFilter, Sizing, WideBloomFilter, WindowedBloomFilter, rate,
};

fn same(sizing: Sizing, filter: &dyn Membership) {
    assert_eq!(sizing.filter_type(), filter.filter_type());
    assert_eq!(sizing.size_bytes(), filter.size_bytes(), "{sizing:?}");
    assert_eq!(sizing.describe(), filter.describe());
    assert_eq!(sizing.planned_keys(), filter.planned_keys());
    assert_eq!(sizing.target_rate(), filter.target_rate());
    for keys in [1, 100, 5_000, 1_000_000] {
        assert_eq!(sizing.expected_rate(keys), filter.expected_rate(keys), "{sizing:?} {keys}");
    }
}

#[test]
fn a_sizing_is_the_filter_that_is_made() {
    macro_rules! same {
        ($($builder:expr),*) => {
            $(same($builder.sizing().unwrap(), &$builder.build().unwrap());)*
        };
    }
    for keys in [1, 60, 1000, 20_000] {
        for rate in [0.1, 0.01, 1e-5] {
            same!(
                BloomFilter::builder().keys(keys).rate(rate),
                BloomFilter::builder().keys(keys).rate(rate).probes(5),
                BloomFilter::builder().keys(keys).memory(100_000),
                ClassicBloomFilter::builder().keys(keys).rate(rate),
                ClassicBloomFilter::builder().bits(12_345).probes(3).keys(keys),
                CountingBloomFilter::builder().keys(keys).rate(rate).width(3),
                ClassicCountingBloomFilter::builder().keys(keys).rate(rate),
                WideBloomFilter::builder().keys(keys).rate(rate),
                WideBloomFilter::builder().keys(keys).memory(100_000),
                QuotientFilter::builder().keys(keys).rate(rate),
                QuotientFilter::builder().keys(keys).rate(rate).max_keys(100_000),
                ScalableBloomFilter::builder().keys(keys).rate(rate),
                WindowedBloomFilter::builder().keys(keys).rate(rate),
                WindowedBloomFilter::builder().keys(keys).rate(rate).time(600).generations(6)
            );
        }
    }
}

/// More than any machine has: nothing is allocated to plan it.
#[test]
fn filters_beyond_all_memory_are_planned() {
    let (keys, rate) = (1_000_000_000_000_000, 0.01);
    let sizings = [
        BloomFilter::builder().keys(keys).rate(rate).sizing(),
        ClassicCountingBloomFilter::builder().keys(keys).rate(rate).sizing(),
        WideBloomFilter::builder().keys(keys).rate(rate).sizing(),
        QuotientFilter::builder().keys(keys / 2).rate(rate).sizing(),
        ScalableBloomFilter::builder().keys(keys).rate(rate).sizing(),
        WindowedBloomFilter::builder().keys(keys).rate(rate).sizing(),
    ];
    for sizing in sizings {
        let sizing = sizing.unwrap();
        assert!(sizing.size_bytes() > 1 << 49, "{sizing:?}");
        assert!(sizing.expected_rate(keys / 2) <= rate, "{sizing:?}");
    }
}

#[test]
fn probes_beside_keys_are_honoured_or_refused() {
    let bloom = BloomFilter::builder().keys(1000);
    let classic = ClassicBloomFilter::builder().keys(1000);
    for probes in [4, 6, 8, 11] {
        let filter = bloom.rate(0.01).probes(probes).build().unwrap();
        assert_eq!(filter.shape().probes(), probes);
        assert!(filter.expected_rate(1000) <= 0.01 && filter.target_rate() == 0.01);
        let filter = bloom.memory(4096).probes(probes).build().unwrap();
        assert_eq!((filter.shape().probes(), filter.size_bytes()), (probes, 4096));
        let filter = classic.rate(0.01).probes(probes).build().unwrap();
        assert_eq!(filter.shape().probes(), probes);
        let filter = classic.memory(4096).probes(probes).build().unwrap();
        assert_eq!((filter.shape().probes(), filter.size_bytes()), (probes, 4096));
        let counts = CountingBloomFilter::builder().keys(1000).rate(0.01).probes(probes);
        assert_eq!(counts.build().unwrap().shape().probes(), probes);
    }
    for error in [
        bloom.rate(0.01).probes(99).build().unwrap_err(),
        bloom.rate(0.01).probes(0).build().unwrap_err(),
        bloom.memory(4096).probes(17).build().unwrap_err(),
        classic.rate(0.01).probes(65).build().unwrap_err(),
    ] {
        assert!(error.to_string().starts_with("probes: expected 1 to "), "{error}");
    }
    let day = bloom.rate(0.01).build().unwrap().shape();
    let error = bloom.rate(0.01).foldable_to(day).probes(3).build().unwrap_err();
    assert!(error.is_incompatible(), "{error}");
}

/// Numbers that contradict each other, or that nothing is made of.
#[test]
fn no_number_is_ignored() {
    let bloom = BloomFilter::builder();
    let bits = bloom.bits(8192).probes(6);
    assert_eq!(bits.keys(100).rate(0.01).build().unwrap().target_rate(), 0.01);
    let filter = bits.rate(0.01).build().unwrap();
    assert!(filter.planned_keys() > 500 && filter.target_rate() == 0.01);
    for error in [
        bits.keys(100_000).rate(0.01).build().unwrap_err(),
        bits.rate(1e-30).build().unwrap_err(),
        bits.rate(0.0).build().unwrap_err(),
        bits.rate(f64::NAN).build().unwrap_err(),
        bits.memory(64).build().unwrap_err(),
        bloom.bits(8192).keys(100).rate(0.01).build().unwrap_err(),
        bloom.bits(8192).build().unwrap_err(),
        QuotientFilter::builder().keys(10).rate(0.01).slots(64).build().unwrap_err(),
        QuotientFilter::builder().slots(64).remainder_bits(8).rate(0.1).build().unwrap_err(),
    ] {
        assert!(error.is_invalid(), "{error}");
    }
}

#[test]
fn refused_memory_is_named_as_it_was_given() {
    for (error, text) in [
        (BloomFilter::with_memory(63, 1).unwrap_err(), "fits 63 bytes; give at least 64 "),
        (ClassicBloomFilter::with_memory(0, 1).unwrap_err(), "fits 0 bytes; give at least 64 "),
        (WideBloomFilter::with_memory(127, 1).unwrap_err(), "fits 127 bytes; give at least 128 "),
        (
            CountingBloomFilter::builder().keys(1).memory(255).build().unwrap_err(),
            "fits 255 bytes; give at least 256 ",
        ),
    ] {
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// What is no number goes in, and no panic or endless loop comes out.
#[test]
fn mathematics_of_what_is_no_number() {
    let nan = f64::NAN;
    assert_eq!(rate::optimal_probes(nan), 1);
    assert!(rate::classic_bits(1, nan).is_nan() && rate::classic_keys(1, nan).is_nan());
    assert!(rate::cardinality(nan, nan).is_nan() && rate::either(nan, 0.5).is_nan());
    assert!(!rate::overfull(nan, 0.5, 64) && !rate::overfull(0.5, nan, 64));
    assert!(rate::generation(nan, 3).is_nan() && rate::any_of([nan]).is_nan());
    assert!(rate::distinct(10, |_| f64::NAN).is_infinite());
    assert!(rate::stuck(nan, 8) == 0.0 && rate::layer_share(u32::MAX) < 1e-300);
    assert!(rate::wide_half(nan).is_nan());
    for error in [rate::classic_error(nan, 100, 3), rate::blocked_error(nan, 9, 8, 8)] {
        assert!(error.is_nan() || error >= 0.0);
    }
    assert!(rate::overlap([nan; 3], |_| 1.0).intersection.error.is_infinite());
    for probes in [65, 255, u32::MAX] {
        assert!((0.0..=1.0).contains(&rate::classic(3, 64, probes)));
    }
}
