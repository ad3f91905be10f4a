//! What the front door says is true: its Rust example runs, its first command gives what it says.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

/// The example of README.md, line by line what is printed there.
#[test]
fn the_rust_example_runs() -> Result<(), petal::Error> {
    use petal::BloomFilter;

    let mut seen = BloomFilter::with_rate(1_000_000, 0.001)?; // this many keys, this false-positive rate
    assert!(seen.insert("https://example.org/")); // it was new
    assert!(seen.contains("https://example.org/")); // "maybe": wrong for one stranger in a thousand
    assert!(!seen.contains("https://example.org/other")); // "no" is always right

    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let readme = include_str!("../../../README.md");
    let shown = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("# Ok").next());
    let here = include_str!("readme.rs").split("-> Result<(), petal::Error> {\n").nth(1);
    let here = here.and_then(|rest| rest.split("\n\n    let squeeze").next());
    assert_eq!(squeeze(shown.unwrap()), squeeze(here.unwrap()), "change both together");
    Ok(())
}

/// Every `petal …` line of README.md, docs/cli.md and docs/interop.md is made of words that the program knows.
#[test]
fn every_command_shown_is_one() {
    let place = kit::Place::new();
    let pages = [
        include_str!("../../../README.md"),
        include_str!("../../../docs/cli.md"),
        include_str!("../../../docs/interop.md"),
    ];
    let mut seen = 0;
    for line in pages.iter().flat_map(|page| page.lines()) {
        let line = line.trim_start();
        let shown =
            line.starts_with("$ petal ") || line.starts_with("petal ") || line.contains("| petal ");
        if !shown
            || line.contains('[')
            || line.contains("VERB")
            || line.contains("──")
            || line.starts_with("petal common A B")
        {
            continue;
        }
        let (_, words) = line.split_once("petal ").unwrap();
        let words = words.split(" #").next().unwrap().split(" &&").next().unwrap();
        let words = words.split(" >").next().unwrap();
        if words.contains("answers") {
            continue;
        }
        let ran = place.run(words);
        // No such files here: that is another kind of trouble than words that are unknown.
        assert!(!ran.err.starts_with("error: "), "{line}: {}", ran.err);
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}
