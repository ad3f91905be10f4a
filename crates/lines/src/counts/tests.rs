//! Counts equal those of a naive model for any memory, order and number of threads.

use std::cmp::Reverse;
use std::collections::HashMap;

use petal_testkit::rng::Rng;

use super::*;

/// The output of the job, computed in memory.
fn model(texts: &[&[u8]], job: &CountJob) -> Vec<u8> {
    let lines: Vec<_> = texts
        .iter()
        .flat_map(|text| {
            text.strip_suffix(b"\n")
                .unwrap_or(text)
                .split(|byte| *byte == b'\n')
                .filter(|_| !text.is_empty())
        })
        .collect();
    let mut counts = HashMap::new();
    for line in &lines {
        *counts.entry(*line).or_insert(0u64) += 1;
    }
    let mut rows = Vec::new();
    for line in lines {
        if let Some(count) = counts.remove(line) {
            rows.push((count, line));
        }
    }
    rows.retain(|(count, _)| *count >= job.min_count);
    if let CountOrder::Count { top } = job.order {
        rows.sort_by_key(|(count, _)| Reverse(*count));
        rows.truncate(top.map_or(usize::MAX, |top| top as usize));
    }
    let mut out = Vec::new();
    for (count, line) in rows {
        out.extend([count.to_string().as_bytes(), b"\t", line, b"\n"].concat());
    }
    out
}

#[test]
fn counts_equal_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(11);
    for round in 0..24 {
        let distinct = [1, 3, 40, 3000][rng.below(4)];
        let mut texts = Vec::new();
        for _ in 0..1 + rng.below(3) {
            let mut text = Vec::new();
            for _ in 0..rng.below([30, 300, 3000][round % 3]) {
                let line = rng.below(distinct) * rng.below(distinct) / distinct;
                let text_of = ["", "line ", "\0\r"][line % 3];
                text.extend(format!("{text_of}{line}{}\n", "y".repeat(line % 7)).bytes());
            }
            if rng.one_in(2) {
                text.pop();
            }
            texts.push(text);
        }
        let paths: Vec<_> = (0..texts.len()).map(|at| dir.path().join(at.to_string())).collect();
        for (path, text) in paths.iter().zip(&texts) {
            std::fs::write(path, text).unwrap();
        }
        let texts: Vec<_> = texts.iter().map(Vec::as_slice).collect();
        let orders = [
            CountOrder::Appearance,
            CountOrder::Count { top: None },
            CountOrder::Count { top: Some(rng.below(30) as u64) },
        ];
        for order in orders {
            let job = CountJob {
                inputs: paths.iter().map(Source::from_arg).collect(),
                order,
                min_count: [0, 1, 2, 5][rng.below(4)],
            };
            let expected = model(&texts, &job);
            // With the least memory, partitions and spans are divided several times.
            for table in [None, Some(50_000), Some(4000), Some(200)] {
                // With one distinct line assumed, the filter has many false positives, and a table
                // that is too small is found to be only when it is full.
                let distinct = [None, Some(1)][rng.below(2)];
                let assumed = Assumed { table, distinct };
                let mut settings = Settings::new(crate::MIN_MEMORY);
                settings.jobs = 1 + rng.below(3);
                let mut out = Vec::new();
                let report = job.run_within(&settings, &mut out, assumed).unwrap();
                assert!(out == expected, "round {round}, {job:?}, {assumed:?}");
                let printed = out.iter().filter(|byte| **byte == b'\n').count();
                assert_eq!(report.printed, printed as u64);
            }
        }
    }
}

/// Records would need the temporary directory.
#[test]
fn lines_that_occur_once_take_no_table() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lines");
    let lines = 50_000;
    let text: String =
        (0..lines).map(|line| format!("{}\n", if line % 100 == 0 { 0 } else { line })).collect();
    std::fs::write(&path, &text).unwrap();
    let order = CountOrder::Count { top: Some(10) };
    for order in [CountOrder::Appearance, order] {
        let job = CountJob { inputs: vec![Source::from_arg(&path)], order, min_count: 0 };
        let mut settings = Settings::new(crate::MIN_MEMORY);
        settings.temp_dir = dir.path().join("missing");
        let mut out = Vec::new();
        // Half of what a table of all lines needs.
        let memory = lines * FingerprintMap::<u64>::BYTES_PER_ENTRY / 2;
        let assumed = Assumed { table: Some(memory), ..Assumed::default() };
        job.run_within(&settings, &mut out, assumed).unwrap();
        assert!(out == model(&[text.as_bytes()], &job));
    }
}
