//! No rival loses a key, and each weighs what it asked the allocator for. Alone in its program: the meter counts all of it.
#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

use peak_alloc::PeakAlloc;
use petal_bench::contest::rounds::{Plan, run};
use petal_bench_vs::{family, rivals};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

#[test]
fn no_rival_loses_a_key_and_all_weigh_what_they_asked_for() {
    let plan = Plan { keys: 40_000, rounds: 2, judged: 200_000, chunk: 10_000, whole_fill: true };
    let mut contestants = family::all(plan.keys, 0.01, || MEMORY.current_usage()).unwrap();
    let timed: usize = contestants.iter().map(|one| one.operations.len()).sum();
    let rows = run("test", plan, &mut contestants, &|_| ()).unwrap();
    assert_eq!(rows.len(), timed);
    for row in &rows {
        let (target, (rate, _)) = (row.target.unwrap(), row.measured.unwrap());
        // To see that sizes and answers are understood, not to judge rivals; one of them does not keep its rate.
        let over = if row.filter == "growable-bloom-filter grown" { 6.0 } else { 1.4 };
        assert!(rate < target * over, "{}: {rate} of {target}", row.filter);
        assert!((7.0..45.0).contains(&row.bits_per_key), "{row:?}");
    }
    let bits = |name: &str| rows.iter().find(|row| row.filter == name).unwrap().bits_per_key;
    let told = rivals::fastbloom_foldhash(plan.keys, 0.01).bits_per_key;
    assert!((bits("fastbloom foldhash") / told - 1.0).abs() < 0.02, "{told}");
    // Fingerprints of eight bits, in slots whose number is a power of two.
    assert!((bits("cuckoofilter full") - 8.0 * 65_536.0 / 40_000.0).abs() < 0.1);
}
