//! A work directory whose files are not what they were: trouble in one clear line or the right
//! answer, never a wrong one, a panic or a vast allocation.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::fs;
use std::time::{Duration, Instant};

use kit::{Place, overlapping, write_lines};
use petal_testkit::rng::Rng;

const JOB: &str = "common --strategy narrow -q -m 8M a b";

/// A place with a killed job in `work` that had done one phase (its filter is needed next) or
/// three (its records are); with the answer it should have given.
struct Begun {
    place: Place,
    files: Vec<(String, Vec<u8>)>,
    expect: Vec<u8>,
}

impl Begun {
    fn new(phases: u64) -> Self {
        let place = Place::new();
        let [a, b] = overlapping(300_000, 10, 3);
        write_lines(&place.files.file("a"), a);
        write_lines(&place.files.file("b"), b);
        let expect = place.run(JOB).ok();
        let done = format!("\"done\":{phases},");
        let end = Instant::now() + Duration::from_secs(60);
        // A phase may be over before it is seen: then once more.
        loop {
            let _ = fs::remove_dir_all(place.files.file("work"));
            let mut child = place.petal(&format!("{JOB} -o out --work-dir work")).spawn().unwrap();
            let journal = place.files.file("work/petal.journal");
            let seen = || fs::read_to_string(&journal).is_ok_and(|text| text.contains(&done));
            while child.try_wait().unwrap().is_none() && !seen() {}
            let _ = child.kill();
            child.wait().unwrap();
            if seen() {
                break;
            }
            assert!(Instant::now() < end, "phase {phases} never seen");
        }
        let _ = fs::remove_file(place.files.file("out"));
        let mut files: Vec<_> = fs::read_dir(place.files.file("work"))
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap()))
            .collect();
        files.sort();
        Self { place, files, expect }
    }

    fn of(&self, name: &str) -> &[u8] {
        &self.files.iter().find(|(other, _)| other == name).unwrap().1
    }

    /// Goes on with this file changed, or gone; `None` if it was refused, which must be in words.
    #[track_caller]
    fn with(&self, name: &str, content: Option<&[u8]>, how: &str) -> Option<()> {
        let path = |name: &str| self.place.files.file(&format!("work/{name}"));
        fs::create_dir_all(path("")).unwrap();
        for (name, content) in &self.files {
            fs::write(path(name), content).unwrap();
        }
        match content {
            Some(content) => fs::write(path(name), content).unwrap(),
            None => fs::remove_file(path(name)).unwrap(),
        }
        let ran = self.place.run(&format!("{JOB} --work-dir work --resume"));
        assert!(ran.peak <= 24 << 20, "{name}: {how}: {} bytes", ran.peak);
        if ran.code == Some(0) {
            assert!(ran.out == self.expect, "{name}: {how}: a wrong answer");
            return Some(());
        }
        let line = ran.trouble();
        assert!(line.contains("work") && !line.contains("panicked"), "{name}: {how}: {line}");
        None
    }
}

#[test]
fn a_damaged_journal_is_refused() {
    let begun = Begun::new(3);
    let journal = begun.of("petal.journal");
    let mut rng = Rng::new(1);
    let refused = |content: &[u8], how: String| {
        assert!(begun.with("petal.journal", Some(content), &how).is_none(), "{how}: accepted");
    };
    assert!(begun.with("petal.lock", Some(b""), "as it was").is_some());
    for cut in [0, 1, journal.len() / 2, journal.len() - 19, journal.len() - 1] {
        refused(&journal[..cut], format!("cut at {cut}"));
    }
    for length in [1, 100, 5000] {
        refused(&rng.bytes(length), format!("{length} random bytes"));
    }
    refused(b"{}", "an empty object".into());
    refused(&b"[".repeat(100_000), "deep".into());
    // Every number, as zero, one more, and huge.
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
fn records_cut_short_or_gone_are_refused() {
    let begun = Begun::new(3);
    let records = begun.of("petal.records");
    assert!(records.len() > 1 << 20);
    // Not shorter by a little: of the end, some is of the phase that was killed, and on one
    // processor more than on two.
    for cut in [0, 1, records.len() / 2, records.len() / 4 * 3] {
        let how = format!("cut at {cut}");
        assert!(begun.with("petal.records", Some(&records[..cut]), &how).is_none(), "{how}");
    }
    assert!(begun.with("petal.records", None, "gone").is_none());
    // What a phase that did not finish has written behind them counts for nothing.
    let longer = [records, &Rng::new(2).bytes(100_000)].concat();
    assert!(begun.with("petal.records", Some(&longer), "longer").is_some());
}

#[test]
fn a_damaged_filter_is_refused() {
    let begun = Begun::new(1);
    let filter = begun.of("petal.filter-1");
    let mut rng = Rng::new(3);
    for cut in [0, 10, filter.len() / 2, filter.len() - 1] {
        let how = format!("cut at {cut}");
        assert!(begun.with("petal.filter-1", Some(&filter[..cut]), &how).is_none(), "{how}");
    }
    for _ in 0..20 {
        let mut changed = filter.to_vec();
        let at = rng.below(changed.len());
        changed[at] ^= 1 << rng.below(8);
        let how = format!("a bit of byte {at}");
        assert!(begun.with("petal.filter-1", Some(&changed), &how).is_none(), "{how}");
    }
    assert!(begun.with("petal.filter-1", None, "gone").is_none());
    assert!(begun.with("petal.filter-1", Some(&rng.bytes(1000)), "random bytes").is_none());
    assert!(begun.with("petal.lock", Some(b"anything"), "as it was").is_some());
}
