//! All kernels of this machine write the same files and the same output.

use petal::Kernel;

use crate::common::{TestDir, run, write_lines};

#[test]
fn every_kernel_builds_the_same_file_and_checks_alike() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..5000);
    write_lines(&dir.files.file("b"), 4000..9000);
    // Blocks of one and of two cache lines, with probes in all lanes and in some.
    for shape in ["-p 0.01", "-p 0.004", "-p 1e-6", "--size 3K", "--size 64K"] {
        let mut law = None;
        for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
            let name = kernel.name();
            dir.run(&format!("--kernel {name} build -q {shape} -n 5000 -o f a")).ok();
            let check = dir.run(&format!("check --kernel {name} f a b")).ok();
            let others = dir.run(&format!("check --kernel {name} -v f a b")).ok();
            let came = (dir.read("f"), check, others);
            assert!(*law.get_or_insert_with(|| came.clone()) == came, "{shape}: {name}");
        }
    }
}

#[test]
fn unavailable_kernel_is_an_error() {
    for kernel in Kernel::ALL.into_iter().filter(|kernel| !kernel.is_available()) {
        let name = kernel.name();
        let line = run(["--kernel", name, "plan", "-n", "5", "--size", "1K"]).failure();
        assert!(
            line.starts_with(&format!("petal: --kernel: this processor does not support {name};")),
            "{line}"
        );
        assert!(line.contains("use one of portable"), "{line}");
    }
    for name in ["abacus", "", "AVX2"] {
        let line = run(["plan", "-n", "5", "--size", "1K", "--kernel", name]).failure();
        assert!(
            line.contains(&format!("'{name}' is not a kernel; use one of portable, ")),
            "{line}"
        );
    }
}

#[test]
fn kernel_option_is_hidden() {
    let mut pages = vec![run(["--help"]), run(["build", "--help"]), run(["man"])];
    pages.extend(["bash", "zsh", "fish"].map(|shell| run(["completions", shell])));
    let dir = TestDir::new();
    pages.push(dir.sh("\"$petal\" man --dir pages && cat pages/*"));
    for page in pages {
        assert!(!page.text().contains("kernel"));
    }
}
