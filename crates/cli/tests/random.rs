//! Some hundred random jobs: verb, inputs, how they are packed and come, strategy, threads, cap
//! and line ends all drawn; the answer is that of the naive model.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use kit::pack::{FORMS, packed};
use kit::{Place, STRATEGIES, VERBS, expected};
use petal_testkit::model::{LF, NUL};
use petal_testkit::nasty::{Recipe, related};
use petal_testkit::rng::Rng;

fn job(place: &Place, seed: u64) {
    let mut rng = Rng::new(seed);
    let (delimiter, flag) = *rng.pick(&[(LF, ""), (NUL, "-z")]);
    let max_lines = *rng.pick(&[3, 30, 3000]);
    let files = related(seed, Recipe { delimiter, max_lines, ..Recipe::small() });
    let count = 2 + rng.below(files.len().min(3) - 1);
    let inputs: Vec<_> = files[..count].iter().map(Vec::as_slice).collect();
    let (verb, strategy) = (*rng.pick(&VERBS), *rng.pick(&STRATEGIES));
    // One of them may be standard input, redirected or a pipe.
    let stream = if rng.one_in(2) { Some(rng.below(count)) } else { None };
    let redirected = rng.one_in(2);
    let (mut names, mut forms, mut before, mut after) = (vec![], vec![], "", String::new());
    for (number, input) in inputs.iter().enumerate() {
        let form = *rng.pick(&FORMS);
        let name = ["a", "b", "c"][number];
        place.write(name, packed(form, input, rng.next_u64()));
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
    let cap = rng.pick(&["8M", "9M", "64M", "1G"]);
    let work = if before.is_empty() && rng.one_in(4) { "--work-dir work" } else { "" };
    let names = names.join(" ");
    let script = format!(
        "{before} \"$petal\" {verb} {flag} -q {strategy} -j {jobs} -m {cap} {work} {names} {after}"
    );
    let ran = place.sh(&script);
    let told = format!("seed {seed}: {forms:?}: {script}");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{told}");
    assert!(ran.out == expected(verb, &inputs, delimiter), "{told}");
    assert!(!place.files.file("work").exists(), "{told}");
}

#[test]
fn random_jobs_equal_the_model() {
    let place = Place::new();
    (0..300).for_each(|seed| job(&place, seed));
}

#[test]
#[ignore = "the long form: some minutes"]
fn many_random_jobs_equal_the_model() {
    let place = Place::new();
    (1000..6000).for_each(|seed| job(&place, seed));
}
