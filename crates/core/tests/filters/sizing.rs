//! Sizing equals the filters that are built, and builders use every parameter or return an error.

use petal::{
    AnyFilter, BloomFilter, ByteSize, ClassicBloomFilter, ClassicCountingBloomFilter,
    CountingBloomFilter, FilterSpec, FilterType, Growth, Membership, Plan, QuotientFilter,
    ScalableBloomFilter, StaticFilter, VectorQuotientFilter, WindowedBloomFilter,
};
use petal_testkit::size_requests::size_requests;

fn same(sizing: Plan, filter: &dyn Membership) {
    assert_eq!(sizing.filter_type(), filter.filter_type());
    assert_eq!(sizing.size_bytes(), filter.size_bytes(), "{sizing:?}");
    assert_eq!(sizing.describe(), filter.stats().layout);
    assert_eq!(sizing.capacity(), filter.capacity());
    assert_eq!(sizing.target_fpr(), filter.target_fpr());
    for keys in [1, 100, 5_000, 1_000_000] {
        assert_eq!(sizing.expected_fpr(keys), filter.expected_fpr(keys), "{sizing:?} {keys}");
    }
}

#[test]
fn sizing_equals_the_built_filter() {
    macro_rules! same {
        ($($builder:expr),*) => {
            $(same($builder.plan().unwrap(), &$builder.build().unwrap());)*
        };
    }
    for keys in [1, 60, 1000, 20_000] {
        for rate in [0.1, 0.01, 1e-5] {
            same!(
                BloomFilter::builder().capacity(keys).fpr(rate),
                BloomFilter::builder().capacity(keys).fpr(rate).probes(5),
                BloomFilter::builder().capacity(keys).fpr(rate).least_space(true),
                BloomFilter::builder().capacity(keys).memory(ByteSize::bytes(100_000)),
                ClassicBloomFilter::builder().capacity(keys).fpr(rate),
                ClassicBloomFilter::builder().bits(12_345).probes(3).capacity(keys),
                CountingBloomFilter::builder().capacity(keys).fpr(rate).counter_width(3),
                ClassicCountingBloomFilter::builder().capacity(keys).fpr(rate),
                QuotientFilter::builder().capacity(keys).fpr(rate),
                QuotientFilter::builder().capacity(keys).fpr(rate).max_capacity(100_000),
                VectorQuotientFilter::builder().capacity(keys).fpr(rate),
                ScalableBloomFilter::builder().capacity(keys).fpr(rate),
                WindowedBloomFilter::builder().capacity(keys).fpr(rate),
                WindowedBloomFilter::builder().capacity(keys).fpr(rate).window(600).generations(6)
            );
        }
    }
}

/// The specification of a plan makes the same filter without a search.
#[test]
fn plans_equal_those_of_their_specification_and_the_built_filters() {
    let (mut planned, mut built) = (0, 0);
    for request in size_requests(300) {
        let spec = FilterSpec {
            capacity: request.capacity,
            fpr: request.fpr,
            memory: request.memory.map(ByteSize::bytes),
            probes: request.probes,
            ..FilterSpec::new(request.name.parse().unwrap())
        };
        let Ok(plan) = spec.plan() else { continue };
        planned += 1;
        assert_eq!(plan.spec().plan().unwrap(), plan, "{request:?}");
        assert!(request.memory.is_none_or(|most| plan.size_bytes() <= most), "{request:?}");
        assert!(plan.expected_fpr(plan.capacity()) <= plan.target_fpr() * 1.000_001, "{request:?}");
        if plan.size_bytes() < 1 << 22 && !plan.filter_type().is_fixed() {
            same(plan, AnyFilter::build(&spec).unwrap().as_dyn());
            built += 1;
        }
    }
    assert!(planned > 200 && built > 80, "{planned} {built}");
}

#[test]
fn fields_of_other_types_are_errors() {
    let spec = |filter_type| FilterSpec {
        capacity: Some(1000),
        fpr: Some(0.01),
        ..FilterSpec::new(filter_type)
    };
    for wrong in [
        FilterSpec { probes: Some(3), ..spec(FilterType::Quotient) },
        FilterSpec { bits: Some(3), ..spec(FilterType::Scalable) },
        FilterSpec { table_size: Some(3), ..spec(FilterType::Bloom) },
        FilterSpec { window: Some(3), ..spec(FilterType::Classic) },
        FilterSpec { max_capacity: Some(3), ..spec(FilterType::VectorQuotient) },
        FilterSpec { least_space: true, ..spec(FilterType::Static) },
        FilterSpec { counter_width: 3, ..spec(FilterType::Bloom) },
        FilterSpec { generations: 3, ..spec(FilterType::Scalable) },
        FilterSpec {
            growth: Growth { factor: 3, ..Growth::default() },
            ..spec(FilterType::Windowed)
        },
        spec(FilterType::Cascade),
    ] {
        assert!(wrong.plan().unwrap_err().is_unsupported(), "{wrong:?}");
    }
    assert!(AnyFilter::build(&spec(FilterType::Static)).unwrap_err().is_unsupported());
}

/// More memory than any machine has: sizing allocates nothing.
#[test]
fn sizing_allocates_nothing() {
    let (keys, rate) = (1_000_000_000_000_000, 0.01);
    let sizings = [
        BloomFilter::builder().capacity(keys).fpr(rate).plan(),
        ClassicCountingBloomFilter::builder().capacity(keys).fpr(rate).plan(),
        QuotientFilter::builder().capacity(keys / 2).fpr(rate).plan(),
        ScalableBloomFilter::builder().capacity(keys).fpr(rate).plan(),
        WindowedBloomFilter::builder().capacity(keys).fpr(rate).plan(),
    ];
    for sizing in sizings {
        let sizing = sizing.unwrap();
        assert!(sizing.size_bytes() > 1 << 49, "{sizing:?}");
        assert!(sizing.expected_fpr(keys / 2) <= rate, "{sizing:?}");
    }
}

#[test]
fn given_probes_are_used_or_an_error() {
    let bloom = BloomFilter::builder().capacity(1000);
    let classic = ClassicBloomFilter::builder().capacity(1000);
    for probes in [4, 6, 8, 11] {
        let filter = bloom.fpr(0.01).probes(probes).build().unwrap();
        assert_eq!(filter.layout().probes(), probes);
        assert!(filter.expected_fpr(1000) <= 0.01 && filter.target_fpr() == 0.01);
        let filter = bloom.memory(ByteSize::bytes(4096)).probes(probes).build().unwrap();
        assert_eq!((filter.layout().probes(), filter.size_bytes()), (probes, 4096));
        let filter = classic.fpr(0.01).probes(probes).build().unwrap();
        assert_eq!(filter.layout().probes(), probes);
        let filter = classic.memory(ByteSize::bytes(4096)).probes(probes).build().unwrap();
        assert_eq!((filter.layout().probes(), filter.size_bytes()), (probes, 4096));
        let counts = CountingBloomFilter::builder().capacity(1000).fpr(0.01).probes(probes);
        assert_eq!(counts.build().unwrap().layout().probes(), probes);
    }
    for error in [
        bloom.fpr(0.01).probes(99).build().unwrap_err(),
        bloom.fpr(0.01).probes(0).build().unwrap_err(),
        bloom.memory(ByteSize::bytes(4096)).probes(17).build().unwrap_err(),
        classic.fpr(0.01).probes(65).build().unwrap_err(),
    ] {
        assert!(error.to_string().starts_with("probes: expected 1 to "), "{error}");
    }
}

/// Contradictory or unused numbers are errors.
#[test]
fn unused_parameters_are_errors() {
    let bloom = BloomFilter::builder();
    let bits = bloom.bits(8192).probes(6);
    assert_eq!(bits.capacity(100).fpr(0.01).build().unwrap().target_fpr(), 0.01);
    let filter = bits.fpr(0.01).build().unwrap();
    assert!(filter.capacity() > 500 && filter.target_fpr() == 0.01);
    for error in [
        bits.capacity(100_000).fpr(0.01).build().unwrap_err(),
        bits.fpr(1e-30).build().unwrap_err(),
        bits.fpr(0.0).build().unwrap_err(),
        bits.fpr(f64::NAN).build().unwrap_err(),
        bits.memory(ByteSize::bytes(64)).build().unwrap_err(),
        bloom.bits(8192).capacity(100_000).fpr(0.01).build().unwrap_err(),
        bloom.bits(8192).fpr(f64::NAN).build().unwrap_err(),
        bloom.bits(0).capacity(9).build().unwrap_err(),
        bloom.bits(8192).build().unwrap_err(),
        QuotientFilter::builder().capacity(10).fpr(0.01).table_size(64).build().unwrap_err(),
        QuotientFilter::builder().table_size(64).slot_bits(8).fpr(0.1).build().unwrap_err(),
    ] {
        assert!(error.is_invalid(), "{error}");
    }
}

/// The best number of probes for the capacity, or for the rate, is chosen among all.
#[test]
fn least_space_needs_a_capacity_and_a_rate_alone() {
    let bloom = BloomFilter::builder().least_space(true);
    let planned = bloom.capacity(1_000_000).fpr(0.01);
    let (least, default) = (planned.build().unwrap(), planned.least_space(false).build().unwrap());
    assert!(least.size_bytes() * 1000 < default.size_bytes() * 978, "{least:?} {default:?}");
    let limit = |bytes| planned.memory(ByteSize::bytes(bytes)).build();
    assert_eq!(limit(least.size_bytes()).unwrap(), least);
    let counting = CountingBloomFilter::builder().capacity(1_000_000).fpr(0.01).least_space(true);
    assert_eq!(counting.build().unwrap().size_bytes(), 4 * least.size_bytes());
    let errors = [
        bloom.build(),
        bloom.capacity(10).build(),
        bloom.fpr(0.1).build(),
        bloom.capacity(10).memory(ByteSize::kib(1)).build(),
        planned.probes(4).build(),
        planned.bits(1000).build(),
        limit(least.size_bytes() - 1),
    ];
    for error in errors {
        assert!(error.as_ref().is_err_and(petal::Error::is_invalid), "{error:?}");
    }
}

#[test]
fn bits_without_probes_get_the_best_number_of_them() {
    macro_rules! check {
        ($type:ident, $most:expr) => {
            for bits in [512, 5_000, 8_192, 200_000] {
                let builder = $type::builder().bits(bits);
                for keys in [1, 100, 1000, 100_000].into_iter().filter(|keys| keys / 2 < bits) {
                    let best = builder.capacity(keys).build().unwrap();
                    assert!(best.size_bytes() * 8 >= bits && best.capacity() == keys);
                    for probes in 1..=$most {
                        let other = builder.capacity(keys).probes(probes);
                        // Far too many probes make a filter that contains nearly every key.
                        let Ok(other) = other.build() else { continue };
                        // More than 8 probes round the bits up to blocks of 1,024.
                        if other.size_bytes() > best.size_bytes() {
                            continue;
                        }
                        assert!(best.target_fpr() <= other.target_fpr(), "{bits} {keys} {probes}");
                    }
                }
                for fpr in [0.3, 0.01, 1e-4] {
                    let most = builder.fpr(fpr).plan().unwrap();
                    for probes in 1..=$most {
                        let other = builder.fpr(fpr).probes(probes).plan();
                        let other = other.ok().filter(|o| o.size_bytes() <= most.size_bytes());
                        let keys = other.map_or(0, |other| other.capacity());
                        assert!(most.capacity() >= keys, "{bits} {fpr} {probes}");
                    }
                }
            }
        };
    }
    check!(BloomFilter, 16);
    check!(ClassicBloomFilter, 64);
    let counting = CountingBloomFilter::builder().bits(8192).capacity(900).build().unwrap();
    let plain = BloomFilter::builder().bits(8192).capacity(900).build().unwrap();
    assert_eq!(counting.layout(), plain.layout());
    // Without a plan, capacity and target rate are 0.
    let no_plan = ClassicBloomFilter::builder().bits(1000).probes(10).build().unwrap();
    assert!(no_plan.capacity() == 0 && no_plan.target_fpr() == 0.0 && !no_plan.stats().is_overfull);
}

#[test]
fn memory_error_contains_the_given_size() {
    for (error, text) in [
        (
            BloomFilter::with_memory(1, ByteSize::bytes(63)).unwrap_err(),
            "fits 63 bytes; give at least 64 ",
        ),
        (
            ClassicBloomFilter::with_memory(1, ByteSize::bytes(0)).unwrap_err(),
            "fits 0 bytes; give at least 64 ",
        ),
        (
            CountingBloomFilter::builder()
                .capacity(1)
                .memory(ByteSize::bytes(255))
                .build()
                .unwrap_err(),
            "fits 255 bytes; give at least 256 ",
        ),
    ] {
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// The message for a missing size names what this type of filter takes.
#[test]
fn missing_size_names_the_parameters_of_the_type() {
    let errors = [
        (BloomFilter::builder().build().unwrap_err(), "or bits and probes"),
        (QuotientFilter::builder().build().unwrap_err(), "or `table_size` and `slot_bits`"),
        (VectorQuotientFilter::builder().build().unwrap_err(), "or `table_size` and `slot_bits`"),
        (WindowedBloomFilter::builder().build().unwrap_err(), "capacity and false-positive rate"),
        (StaticFilter::builder().build(&[1]).unwrap_err(), "missing; give a false-positive rate"),
    ];
    for (error, end) in errors {
        assert!(error.is_invalid() && error.to_string().ends_with(end), "{error}");
    }
}
