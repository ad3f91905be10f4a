//! Random jobs: command, inputs, compression, pipes, strategy, threads, memory limit and line ends.
//! The output is that of the naive model.

use petal_testkit::line_files::{FileSpec, overlapping_files};
use petal_testkit::model::{LF, NUL};
use petal_testkit::rng::Rng;

use crate::common::pack::{FORMS, compress};
use crate::common::{EXACT_COMMANDS, STRATEGIES, TestDir, expected};

fn job(dir: &TestDir, seed: u64) {
    let mut rng = Rng::new(seed);
    let (delimiter, flag) = *rng.pick(&[(LF, ""), (NUL, "-z")]);
    let max_lines = *rng.pick(&[3, 30, 3000]);
    let files = overlapping_files(seed, FileSpec { delimiter, max_lines, ..FileSpec::small() });
    let count = 2 + rng.below(files.len().min(3) - 1);
    let inputs: Vec<_> = files[..count].iter().map(Vec::as_slice).collect();
    let (command, strategy) = (*rng.pick(&EXACT_COMMANDS), *rng.pick(&STRATEGIES));
    // One input may be standard input, redirected or a pipe.
    let stream = if rng.one_in(2) { Some(rng.below(count)) } else { None };
    let redirected = rng.one_in(2);
    let (mut names, mut forms, mut before, mut after) = (vec![], vec![], "", String::new());
    for (number, input) in inputs.iter().enumerate() {
        let form = *rng.pick(&FORMS);
        let name = ["a", "b", "c"][number];
        dir.write(name, compress(form, input, rng.next_u64()));
        forms.push(form);
        names.push(match stream {
            Some(this) if this == number && redirected => {
                after = format!("< {name}");
                "-"
            }
            Some(this) if this == number => {
                before = ["cat a |", "cat b |", "cat c |"][number];
                "-"
            }
            _ => name,
        });
    }
    let jobs = rng.pick(&[1, 2, 3, 8]);
    let memory = rng.pick(&["8M", "9M", "64M", "1G"]);
    let work = if before.is_empty() && rng.one_in(4) { "--work-dir work" } else { "" };
    let names = names.join(" ");
    let script = format!(
        "{before} \"$petal\" {command} {flag} -q {strategy} -j {jobs} -m {memory} {work} {names} {after}"
    );
    let output = dir.sh(&script);
    let context = format!("seed {seed}: {forms:?}: {script}");
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{context}");
    assert!(output.out == expected(command, &inputs, delimiter), "{context}");
    assert!(!dir.files.file("work").exists(), "{context}");
}

#[test]
fn random_jobs_equal_the_model() {
    let dir = TestDir::new();
    (0..300).for_each(|seed| job(&dir, seed));
}

#[test]
#[ignore = "takes several minutes"]
fn many_random_jobs_equal_the_model() {
    let dir = TestDir::new();
    (1000..6000).for_each(|seed| job(&dir, seed));
}
