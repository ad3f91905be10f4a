//! Every kernel that the machine has makes the same files and gives the same answers.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use kit::{Place, run, write_lines};
use petal::Kernel;

#[test]
fn every_kernel_builds_the_same_file_and_checks_alike() {
    let place = Place::new();
    write_lines(&place.files.file("a"), 0..5000);
    write_lines(&place.files.file("b"), 4000..9000);
    // Lines of one block and of two, all lanes marked and some.
    for shape in ["-p 0.01", "-p 0.004", "-p 1e-6", "-m 3K", "-m 64K"] {
        let mut law = None;
        for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_there()) {
            let name = kernel.name();
            place.run(&format!("--kernel {name} build -q {shape} -n 5000 -o f a")).ok();
            let check = place.run(&format!("check --kernel {name} f a b")).ok();
            let others = place.run(&format!("check --kernel {name} -v f a b")).ok();
            let came = (place.read("f"), check, others);
            assert!(*law.get_or_insert_with(|| came.clone()) == came, "{shape}: {name}");
        }
    }
}

#[test]
fn a_kernel_that_is_not_there_is_refused() {
    for kernel in Kernel::ALL.into_iter().filter(|kernel| !kernel.is_there()) {
        let name = kernel.name();
        let line = run(["--kernel", name, "plan", "-n", "5", "-m", "1K"]).trouble();
        assert!(
            line.starts_with(&format!("petal: --kernel: this machine has no {name};")),
            "{line}"
        );
        assert!(line.contains("it has portable"), "{line}");
    }
    for name in ["abacus", "", "AVX2"] {
        let line = run(["plan", "-n", "5", "-m", "1K", "--kernel", name]).trouble();
        assert!(
            line.contains(&format!("'{name}' is no kernel; write one of portable, ")),
            "{line}"
        );
    }
}

#[test]
fn kernels_are_not_for_everybody() {
    let mut pages = vec![run(["--help"]), run(["build", "--help"]), run(["man"])];
    pages.extend(["bash", "zsh", "fish"].map(|shell| run(["completions", shell])));
    let place = Place::new();
    pages.push(place.sh("\"$petal\" man --dir pages && cat pages/*"));
    for page in pages {
        assert!(!page.text().contains("kernel"));
    }
}
