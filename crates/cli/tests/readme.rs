//! The Rust example and the commands of README.md, docs/reference/cli.md and docs/reference/interop.md run as shown.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod common;

/// Runs the example of README.md; the code here must be equal to it.
#[test]
fn the_rust_example_runs() -> Result<(), petal::Error> {
    use petal::BloomFilter;

    let mut seen = BloomFilter::with_fpr(1_000_000, 0.001)?; // capacity, false-positive rate
    assert!(seen.insert("https://example.org/")); // true: it was new
    assert!(seen.contains("https://example.org/")); // "yes" is wrong for one absent key in a thousand
    assert!(!seen.contains("https://example.org/other")); // "no" is always right

    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let readme = include_str!("../../../README.md");
    let shown = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("# Ok").next());
    let here = include_str!("readme.rs").split("-> Result<(), petal::Error> {\n").nth(1);
    let here = here.and_then(|rest| rest.split("\n\n    let squeeze").next());
    assert_eq!(squeeze(shown.unwrap()), squeeze(here.unwrap()), "change both together");
    Ok(())
}

/// Every `petal …` line of these pages has valid arguments.
#[test]
fn every_command_in_the_readme_runs() {
    let dir = common::TestDir::new();
    let pages = [
        include_str!("../../../README.md"),
        include_str!("../../../docs/reference/cli.md"),
        include_str!("../../../docs/reference/interop.md"),
    ];
    let mut seen = 0;
    let mut code = false;
    for line in pages.iter().flat_map(|page| page.lines()) {
        code ^= line.starts_with("```");
        let indented = line.starts_with("    ");
        let line = line.trim_start();
        let shown =
            line.starts_with("$ petal ") || line.starts_with("petal ") || line.contains("| petal ");
        if !shown
            || !(code || indented)
            || line.contains('[')
            || line.contains("COMMAND")
            || line.contains("──")
            || line.starts_with("petal common A B")
        {
            continue;
        }
        let (_, args) = line.split_once("petal ").unwrap();
        let args = args.split(" #").next().unwrap().split(" &&").next().unwrap();
        let args = args.split(" >").next().unwrap();
        if args.contains("answers") {
            continue;
        }
        let output = dir.run(args);
        // The files do not exist here, which is not a usage error.
        assert!(!output.err.starts_with("error: "), "{line}: {}", output.err);
        seen += 1;
    }
    assert!(seen > 60, "{seen}");
}
