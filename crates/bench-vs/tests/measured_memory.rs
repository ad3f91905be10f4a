//! The measured memory of rivals. Alone in its process, because the allocator counts all of it.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

use peak_alloc::PeakAlloc;
use petal_bench::harness::{RunPlan, rounds::run};
use petal_bench_vs::{family, rivals};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

#[test]
fn rivals_keep_their_keys_and_have_plausible_memory() {
    let plan = RunPlan {
        keys: 40_000,
        rounds: 2,
        absent_keys: 200_000,
        chunk: 10_000,
        time_whole_fill: true,
    };
    let mut cases = family::all(plan.keys, 0.01, || MEMORY.current_usage()).unwrap();
    let timed: usize = cases.iter().map(|one| one.operations.len()).sum();
    let rows = run("test", plan, &mut cases, &|_| ()).unwrap();
    assert_eq!(rows.len(), timed);
    for row in &rows {
        let (target, rate) = (row.target_rate.unwrap(), row.measured_rate.unwrap());
        let bits = row.bits_per_key.unwrap();
        // This checks that sizes and rates are passed correctly; one rival does not keep its rate.
        let factor = if row.filter == "growable-bloom-filter grown" { 6.0 } else { 1.4 };
        assert!(rate < target * factor, "{}: {rate} of {target}", row.filter);
        assert!((7.0..45.0).contains(&bits), "{row:?}");
    }
    let bits =
        |name: &str| rows.iter().find(|row| row.filter == name).unwrap().bits_per_key.unwrap();
    let reported = rivals::fastbloom_foldhash(plan.keys, 0.01).bits_per_key;
    // The test harness allocates up to a few kilobytes meanwhile, in its own thread.
    assert!((bits("fastbloom foldhash") / reported - 1.0).abs() < 0.1, "{reported}");
    // Fingerprints of eight bits, in slots whose number is a power of two.
    assert!((bits("cuckoofilter full") - 8.0 * 65_536.0 / 40_000.0).abs() < 1.0);
}
