//! Inputs that change while a job reads them: the job reads the bytes of the time it opened them.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use petal_lines::{Error, Mode, Outputs, Progress, SetJob, SetOp, Settings, Source, Strategy};
use petal_testkit::model;
use petal_testkit::scratch::Scratch;

/// Changes a file when a phase begins.
struct AtPhase<'a> {
    phase: usize,
    begun: AtomicUsize,
    change: &'a (dyn Fn(&Path) + Sync),
    path: PathBuf,
}

impl Progress for AtPhase<'_> {
    fn phase(&self, _: &'static str, _: Option<u64>) {
        if self.begun.fetch_add(1, Ordering::Relaxed) == self.phase {
            (self.change)(&self.path);
        }
    }
}

/// Returns lines, the last of which is incomplete.
fn text(from: u32, to: u32) -> Vec<u8> {
    let lines: Vec<_> = (from..to).map(|line| format!("{}", line * 7919 % 60_000)).collect();
    lines.join("\n").into_bytes()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const JOBS: [(SetOp, Option<Strategy>); 11] = [
    (SetOp::Duplicates, Some(Strategy::Narrow)),
    (SetOp::Unique, Some(Strategy::Memory)),
    (SetOp::DedupLast, Some(Strategy::Partition)),
    (SetOp::Common, Some(Strategy::Memory)),
    (SetOp::Common, Some(Strategy::Narrow)),
    (SetOp::Common, Some(Strategy::Partition)),
    (SetOp::Diff, Some(Strategy::Narrow)),
    (SetOp::Diff, Some(Strategy::Partition)),
    (SetOp::Dedup, Some(Strategy::Memory)),
    (SetOp::Dedup, Some(Strategy::Narrow)),
    (SetOp::Dedup, Some(Strategy::Partition)),
];

fn expected(op: SetOp, a: &[u8], b: &[u8]) -> Vec<u8> {
    match op {
        SetOp::Common => model::common(a, &[b], b'\n'),
        SetOp::AtLeast(number) => model::at_least(number.into(), a, &[b], b'\n'),
        SetOp::SymDiff => model::symdiff(a, b, b'\n'),
        SetOp::Diff => model::diff(a, &[b], b'\n'),
        SetOp::Dedup => model::dedup(&[a], b'\n'),
        SetOp::DedupLast => model::dedup_last(&[a], b'\n'),
        SetOp::Duplicates => model::duplicates(&[a], b'\n'),
        SetOp::Unique => model::unique(&[a], b'\n'),
    }
}

/// Runs a job whose input `changed` changes at the start of phase `phase`. Returns the result and
/// the number of phases.
fn run(
    (op, strategy): (SetOp, Option<Strategy>),
    [a, b]: [&Path; 2],
    changed: &Path,
    phase: usize,
    change: &(dyn Fn(&Path) + Sync),
) -> (Result<Vec<u8>, Error>, usize) {
    let progress = AtPhase { phase, begun: AtomicUsize::new(0), change, path: changed.to_owned() };
    let settings = Settings { jobs: 2, progress: &progress, ..Settings::new(8 << 20) };
    let (first, others) = (vec![Source::from_arg(a)], vec![Source::from_arg(b)]);
    let mut out = Vec::new();
    let job = SetJob { op, first, others, mode: Mode::Exact { strategy } };
    let done = job.run(&settings, Outputs::to(&mut out)).map(|_| out);
    (done, progress.begun.into_inner())
}

/// Makes a change at each phase of each job, to each of its inputs, plain and compressed.
fn at_each_phase(
    change: &(dyn Fn(&Path) + Sync),
    check: impl Fn(&str, SetOp, usize, Result<Vec<u8>, Error>, [&[u8]; 2], &Path),
) {
    let (a, b) = (text(0, 25_000), text(20_000, 45_000));
    for packed in [false, true] {
        for job in JOBS {
            for side in 0..2 {
                if job.0 == SetOp::Dedup && side == 1 {
                    continue;
                }
                let scratch = Scratch::new();
                let put = |name: &str, text: &[u8]| {
                    scratch.write(name, if packed { gz(text) } else { text.to_vec() })
                };
                let fresh = || [put("a", &a), put("b", &b)];
                let run = |paths: [PathBuf; 2], phase, change| {
                    run(job, [&paths[0], &paths[1]], &paths[side], phase, change)
                };
                let phases = run(fresh(), usize::MAX, &|_| ()).1;
                for phase in 0..phases {
                    let paths = fresh();
                    let changed = paths[side].clone();
                    let done = run(paths, phase, change).0;
                    let case = format!("{job:?}, side {side}, packed {packed}, phase {phase}");
                    check(&case, job.0, side, done, [&a, &b], &changed);
                }
            }
        }
    }
}

fn same_answer(change: &(dyn Fn(&Path) + Sync)) {
    at_each_phase(change, |case, op, _, done, [a, b], _| {
        assert!(done.expect(case) == expected(op, a, b), "{case}");
    });
}

#[test]
fn growing_file_is_read_up_to_its_first_length() {
    same_answer(&|path| {
        File::options().append(true).open(path).unwrap().write_all(b"9\nmore\n").unwrap();
    });
}

#[test]
fn permissions_and_times_may_change() {
    same_answer(&|path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    });
    same_answer(&|path| {
        let later = SystemTime::now() + Duration::from_secs(60);
        File::options().append(true).open(path).unwrap().set_modified(later).unwrap();
    });
}

#[test]
fn file_may_be_renamed_replaced_or_removed() {
    same_answer(&|path| fs::rename(path, path.with_extension("1")).unwrap());
    same_answer(&|path| {
        let new = path.with_extension("new");
        fs::write(&new, "another\n").unwrap();
        fs::rename(new, path).unwrap();
    });
    same_answer(&|path| fs::remove_file(path).unwrap());
}

/// Runs all jobs. The answer must be that of the bytes at the opening, or of the current bytes if
/// they were not read before, or an error. Returns the number of errors.
fn errors(change: &(dyn Fn(&Path) + Sync)) -> usize {
    let errors = AtomicUsize::new(0);
    at_each_phase(change, |case, op, side, done, texts, path| match done {
        Err(error) => {
            errors.fetch_add(1, Ordering::Relaxed);
            let error = error.to_string();
            let known = ["changed while", "damaged", "cut short"];
            assert!(known.iter().any(|known| error.contains(known)), "{case}: {error}");
        }
        Ok(out) => {
            let now = fs::read(path).unwrap();
            let [a, b] = texts;
            let rewritten = if side == 0 { expected(op, &now, b) } else { expected(op, a, &now) };
            assert!(out == expected(op, a, b) || out == rewritten, "{case}");
        }
    });
    errors.into_inner()
}

#[test]
fn truncated_file_is_an_error_if_read_again() {
    let cut = |path: &Path| File::options().write(true).open(path).unwrap().set_len(100).unwrap();
    let errors = errors(&cut);
    assert!(errors > 40, "{errors}");
}

/// The byte is after those that are compared before the first pass.
#[test]
fn rewritten_line_is_an_error_if_read_before() {
    let rewrite = |path: &Path| {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let (mut byte, at) = ([0], file.metadata().unwrap().len() - 10);
        file.read_exact_at(&mut byte, at).unwrap();
        byte[0] = if byte[0] == b'7' { b'8' } else { b'7' };
        file.write_all_at(&byte, at).unwrap();
    };
    let errors = errors(&rewrite);
    assert!(errors > 20, "{errors}");
}
