//! Damaged work directories: one error line or the right output; never a wrong output, a panic or a
//! huge allocation.

use std::fs;
use std::time::{Duration, Instant};

use petal_testkit::rng::Rng;

use crate::common::{MEMORY_OVERHEAD, TestDir, overlapping, write_lines};

const JOB: &str = "common --strategy narrow -q -m 8M a b";

/// A job killed after phase 1 (its filter is needed next) or 3 (its records are needed next), with
/// its expected output.
struct KilledJob {
    dir: TestDir,
    files: Vec<(String, Vec<u8>)>,
    expect: Vec<u8>,
}

impl KilledJob {
    fn new(phases: u64) -> Self {
        let dir = TestDir::new();
        // The table of the candidates does not fit in memory.
        let [a, b] = overlapping(300_000, 95, 3);
        write_lines(&dir.files.file("a"), a);
        write_lines(&dir.files.file("b"), b);
        let expect = dir.run(JOB).ok();
        let done = format!("\"done\":{phases},");
        let end = Instant::now() + Duration::from_secs(60);
        // Tries again if the phase ended before it was observed.
        loop {
            let _ = fs::remove_dir_all(dir.files.file("work"));
            let mut child = dir.petal(&format!("{JOB} -o out --work-dir work")).spawn().unwrap();
            let journal = dir.files.file("work/petal.journal");
            let seen = || fs::read_to_string(&journal).is_ok_and(|text| text.contains(&done));
            while child.try_wait().unwrap().is_none() && !seen() {}
            let _ = child.kill();
            child.wait().unwrap();
            if seen() {
                break;
            }
            assert!(Instant::now() < end, "phase {phases} never seen");
        }
        let _ = fs::remove_file(dir.files.file("out"));
        let mut files: Vec<_> = fs::read_dir(dir.files.file("work"))
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap()))
            .collect();
        files.sort();
        Self { dir, files, expect }
    }

    fn of(&self, name: &str) -> &[u8] {
        &self.files.iter().find(|(other, _)| other == name).unwrap().1
    }

    /// Resumes the job with this file changed or missing; `None` if that is an error.
    #[track_caller]
    fn with(&self, name: &str, content: Option<&[u8]>, how: &str) -> Option<()> {
        let path = |name: &str| self.dir.files.file(&format!("work/{name}"));
        fs::create_dir_all(path("")).unwrap();
        for (name, content) in &self.files {
            fs::write(path(name), content).unwrap();
        }
        match content {
            Some(content) => fs::write(path(name), content).unwrap(),
            None => fs::remove_file(path(name)).unwrap(),
        }
        let output = self.dir.run(&format!("{JOB} --work-dir work --resume"));
        assert!(output.peak <= (8 << 20) + MEMORY_OVERHEAD, "{name}: {how}: {} bytes", output.peak);
        if output.code == Some(0) {
            assert!(output.out == self.expect, "{name}: {how}: wrong output");
            return Some(());
        }
        let line = output.failure();
        assert!(line.contains("work") && !line.contains("panicked"), "{name}: {how}: {line}");
        None
    }
}

#[test]
fn a_damaged_journal_is_refused() {
    let job = KilledJob::new(3);
    let journal = job.of("petal.journal");
    let mut rng = Rng::new(1);
    let refused = |content: &[u8], how: String| {
        assert!(job.with("petal.journal", Some(content), &how).is_none(), "{how}: accepted");
    };
    assert!(job.with("petal.lock", Some(b""), "unchanged").is_some());
    for cut in [0, 1, journal.len() / 2, journal.len() - 19, journal.len() - 1] {
        refused(&journal[..cut], format!("cut at {cut}"));
    }
    for length in [1, 100, 5000] {
        refused(&rng.bytes(length), format!("{length} random bytes"));
    }
    refused(b"{}", "an empty object".into());
    refused(&b"[".repeat(100_000), "deep".into());
    // Each number replaced by 0, by the next number, and by a huge one.
    let text = std::str::from_utf8(journal).unwrap();
    let (page, _) = text.split_once('\n').unwrap();
    let digits: Vec<_> = page
        .match_indices(|c: char| c.is_ascii_digit())
        .map(|(at, _)| at)
        .filter(|&at| !page.as_bytes()[at - 1].is_ascii_digit())
        .collect();
    assert!(digits.len() > 50, "{page}");
    for (turn, &at) in digits.iter().step_by(1 + digits.len() / 60).enumerate() {
        let end = at + page[at..].find(|c: char| !c.is_ascii_digit()).unwrap();
        let number: u64 = page[at..end].parse().unwrap();
        let other = [u64::MAX, number ^ 1, 1 << 40][turn % 3];
        let changed = format!("{}{other}{}", &text[..at], &text[end..]);
        refused(changed.as_bytes(), format!("byte {at}: {number} is {other}"));
    }
    for _ in 0..20 {
        let mut changed = journal.to_vec();
        let at = rng.below(changed.len());
        changed[at] ^= 1 << rng.below(8);
        refused(&changed, format!("a bit of byte {at}"));
    }
}

#[test]
fn truncated_or_missing_records_are_an_error() {
    let job = KilledJob::new(3);
    let records = job.of("petal.records");
    assert!(records.len() > 1 << 20);
    // Large cuts only: the end of the file belongs to the killed phase, and its length depends on
    // the number of processors.
    for cut in [0, 1, records.len() / 2, records.len() / 4 * 3] {
        let how = format!("cut at {cut}");
        assert!(job.with("petal.records", Some(&records[..cut]), &how).is_none(), "{how}");
    }
    assert!(job.with("petal.records", None, "missing").is_none());
    // Records of an unfinished phase at the end are ignored.
    let longer = [records, &Rng::new(2).bytes(100_000)].concat();
    assert!(job.with("petal.records", Some(&longer), "longer").is_some());
}

#[test]
fn a_damaged_filter_is_refused() {
    let job = KilledJob::new(1);
    let filter = job.of("petal.filter-1");
    let mut rng = Rng::new(3);
    for cut in [0, 10, filter.len() / 2, filter.len() - 1] {
        let how = format!("cut at {cut}");
        assert!(job.with("petal.filter-1", Some(&filter[..cut]), &how).is_none(), "{how}");
    }
    for _ in 0..20 {
        let mut changed = filter.to_vec();
        let at = rng.below(changed.len());
        changed[at] ^= 1 << rng.below(8);
        let how = format!("a bit of byte {at}");
        assert!(job.with("petal.filter-1", Some(&changed), &how).is_none(), "{how}");
    }
    assert!(job.with("petal.filter-1", None, "missing").is_none());
    assert!(job.with("petal.filter-1", Some(&rng.bytes(1000)), "random bytes").is_none());
    assert!(job.with("petal.lock", Some(b"anything"), "unchanged").is_some());
}
