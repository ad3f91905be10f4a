//! The estimates of `plan COMMAND INPUTS` for inputs of many shapes, compared with the jobs.
//!
//! `cargo test -p petal-cli --test commands plan_shapes -- --nocapture` prints a row for each shape.
//! The bounds of samples are tested in `petal-lines`, on many more inputs.

#![expect(clippy::print_stdout, reason = "the table is for people")]

use std::collections::HashMap;
use std::fmt::Write as _;

use petal_testkit::rng::Rng;
use serde_json::Value;

use crate::common::TestDir;
use crate::common::pack::gz;

/// The text of a line of a file.
type Lines<'a> = Box<dyn Iterator<Item = String> + 'a>;

/// A file A, or two files to compare.
struct Shape {
    name: &'static str,
    files: Vec<Vec<u8>>,
    compressed: bool,
}

fn text(lines: Lines<'_>) -> Vec<u8> {
    let mut text = String::new();
    lines.for_each(|line| {
        text.push_str(&line);
        text.push('\n');
    });
    text.into_bytes()
}

/// A line of 32 characters with a number.
fn line(number: u64) -> String {
    format!("{:032x}", u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

/// A Zipf distribution over `values` values: the cumulated weights.
fn zipf(values: usize, exponent: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let weights = (1..=values).map(|rank| {
        sum += (rank as f64).powf(-exponent);
        sum
    });
    weights.collect()
}

/// A number in 0..1.
fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn draw(cumulated: &[f64], rng: &mut Rng) -> u64 {
    let at = unit(rng) * cumulated[cumulated.len() - 1];
    cumulated.partition_point(|sum| *sum < at) as u64
}

fn shuffled(mut lines: Vec<String>, rng: &mut Rng) -> Vec<String> {
    rng.shuffle(&mut lines);
    lines
}

/// All shapes with about `n` lines in A.
fn shapes(n: u64, seed: u64) -> Vec<Shape> {
    let base = seed << 40;
    let mut all = Vec::new();
    let mut rng = Rng::new(seed);
    let mut add = |name, files: Vec<Vec<u8>>| {
        all.push(Shape { name, files, compressed: false });
    };
    let range = |from: u64, to: u64| text(Box::new((from..to).map(move |i| line(base + i))));
    add("all lines equal", vec![text(Box::new((0..n).map(|_| line(base))))]);
    for (name, exponent) in [("Zipf 0.5", 0.5), ("Zipf 1", 1.0), ("Zipf 1.5", 1.5)] {
        let cumulated = zipf(n as usize / 2, exponent);
        add(name, vec![text(Box::new((0..n).map(|_| line(base + draw(&cumulated, &mut rng)))))]);
    }
    add("1,000 values", vec![text(Box::new((0..n).map(|_| line(base + rng.next_u64() % 1000))))]);
    // Sorted blocks of a tenth, which share most lines.
    let block = |_| {
        let mut lines: Vec<_> =
            (0..n / 10).map(|_| line(base + rng.next_u64() % (n / 5))).collect();
        lines.sort();
        lines
    };
    add("sorted blocks", vec![text(Box::new((0..10).flat_map(block)))]);
    let mut lines: Vec<_> = (0..n).map(|_| line(base + rng.next_u64() % (n / 3))).collect();
    lines.sort();
    add("sorted with repeats", vec![text(Box::new(lines.into_iter()))]);
    let url = |_| {
        let (host, page) = (rng.next_u64() % 997, (unit(&mut rng).powi(3) * n as f64) as u64);
        format!("https://host{host}.example/{seed}/{}", page % (n / 500))
    };
    add("URLs", vec![text(Box::new((0..n).map(url)))]);
    let hot = |i| line(base + if i % 4 < 3 { rng.next_u64() % 7 } else { i });
    add("hot lines and a tail", vec![text(Box::new((0..n).map(hot)))]);
    add("all distinct", vec![range(0, n)]);
    add("twice, adjacent", vec![text(Box::new((0..n).map(|i| line(base + i / 2))))]);
    add("twice, far apart", vec![text(Box::new((0..n).map(|i| line(base + i % (n / 2)))))]);
    add(
        "twice, 1,000 lines apart",
        vec![text(Box::new((0..n).map(|i| line(base + i / 2000 * 1000 + i % 1000))))],
    );
    let long = |i: u64| match i % 50 {
        0 => line(base + i).repeat(60),
        _ => line(base + i % (n / 2))[..9].to_owned(),
    };
    add("long and short lines", vec![text(Box::new((0..n / 3).map(long)))]);
    let growing = |i: u64| line(base + i).repeat((i * 8 / n + 1) as usize);
    add("growing lines", vec![text(Box::new((0..n / 2).map(growing)))]);
    for (name, share) in [
        ("0 % in common", 0.0),
        ("0.01 % in common", 0.0001),
        ("1 % in common", 0.01),
        ("50 % in common", 0.5),
        ("100 % in common", 1.0),
    ] {
        let shared = (n as f64 * share) as u64;
        let in_b = (0..n).map(|i| line(base + if i < shared { i * n / shared } else { n + i }));
        let b = shuffled(in_b.collect(), &mut rng);
        add(name, vec![range(0, n), text(Box::new(b.into_iter()))]);
    }
    add("100 %, in equal order", vec![range(0, n), range(0, n)]);
    let mut lines: Vec<_> = (0..n).map(|i| line(base + i)).collect();
    lines.sort();
    let b = shuffled((n / 3..n + n / 3).map(|i| line(base + i)).collect(), &mut rng);
    add(
        "sorted and shuffled",
        vec![text(Box::new(lines.into_iter())), text(Box::new(b.into_iter()))],
    );
    add("B is 1/100 of A", vec![range(0, n), range(n - n / 200, n + n / 200)]);
    add("B is 10 times A", vec![range(0, n / 10), range(n / 20, n + n / 20)]);
    add(
        "common part at the end",
        vec![
            range(0, n),
            text(Box::new(
                (0..n).map(|i| line(base + if i < n / 50 * 49 { 2 * n + i } else { i })),
            )),
        ],
    );
    let cumulated = zipf(n as usize / 2, 1.0);
    let skewed = [0, n / 4].map(|offset| {
        text(Box::new((0..n).map(|_| line(base + offset + draw(&cumulated, &mut rng)))))
    });
    add("two Zipf files", skewed.to_vec());
    add(
        "repeats in both",
        [2, 3].map(|step| text(Box::new((0..n).map(|i| line(base + i / 5 * step))))).to_vec(),
    );
    let gzipped = vec![range(0, n), range(n / 2, n + n / 2)];
    all.push(Shape { name: "gzip", files: gzipped, compressed: true });
    all
}

/// How often a number was outside of its range, and how often it was checked.
#[derive(Default)]
struct Checks {
    checked: u32,
    violations: Vec<String>,
    /// By name of the number: values that were off by more than 10 %, with wide ranges.
    rough: HashMap<String, u32>,
}

impl Checks {
    fn check(&mut self, context: &str, name: &str, value: &Value, range: &Value, found: f64) {
        let number = |value: &Value| value.as_f64();
        let (least, most) =
            (number(&range[0]).unwrap(), number(&range[1]).unwrap_or(f64::INFINITY));
        self.checked += 1;
        let value = number(value).unwrap();
        if found < least || found > most {
            self.violations.push(format!("{context}: {name}: {found} not in {least} to {most}"));
        }
        if (value - found).abs() > found / 10.0 {
            *self.rough.entry(name.to_owned()).or_default() += 1;
        }
    }
}

/// Plans and runs jobs on all shapes of `files` files; returns the table and the checks.
fn run(n: u64, seed: u64, files: usize, scan: &str, memory: &str) -> (String, Checks) {
    let mut checks = Checks::default();
    let mut table = String::new();
    for shape in shapes(n, seed).into_iter().filter(|shape| shape.files.len() == files) {
        let dir = TestDir::new();
        let mut names = Vec::new();
        for (file, name) in shape.files.iter().zip(["a", "b"]) {
            dir.write(name, if shape.compressed { gz(file) } else { file.clone() });
            names.push(name);
        }
        let truth: Vec<HashMap<&[u8], u32>> = shape
            .files
            .iter()
            .map(|file| {
                let mut lines = HashMap::new();
                for line in file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    *lines.entry(line).or_default() += 1;
                }
                lines
            })
            .collect();
        let commands: &[&str] = match names.len() {
            1 => &["dedup", "dedup -d", "dedup -u"],
            _ => &["common", "diff", "symdiff"],
        };
        for command in commands {
            let args = format!("{command} {} -m {memory} -j 2", names.join(" "));
            let planned = dir.run(&format!("plan {args} --full-scan={scan} --json"));
            let peak = planned.peak;
            assert!(peak < 60 << 20, "{}: {peak} bytes of memory", shape.name);
            let plan: Value = serde_json::from_slice(&planned.ok()).unwrap();
            dir.run(&format!("{args} -o out --report report")).ok();
            let report: Value = serde_json::from_slice(&dir.read("report")).unwrap();
            let context = format!("{}, seed {seed}, {command}, {scan}", shape.name);
            for (input, truth) in plan["inputs"].as_array().unwrap().iter().zip(&truth) {
                if *command == "symdiff" {
                    break;
                }
                let lines: u32 = truth.values().sum();
                let (lines, distinct) = (f64::from(lines), truth.len() as f64);
                for (name, found) in [("lines", lines), ("distinct", distinct)] {
                    let range = &input[format!("{name}_range")];
                    checks.check(&context, name, &input[name], range, found);
                }
            }
            for name in ["kept", "passes", "bytes_read", "spilled", "candidates"] {
                let found = report[name].as_f64().unwrap();
                checks.check(&context, name, &plan[name], &plan[format!("{name}_range")], found);
            }
            let distinct = &plan["inputs"][0]["distinct"];
            let distinct_range = &plan["inputs"][0]["distinct_range"];
            let _ = writeln!(
                table,
                "{:<26} {command:<9} distinct {:>8} {distinct:>8} {distinct_range}; result {:>8} {:>8} {}; \
                 spilled {} {} {}; candidates {} {} {}; passes {} {}; {} / {}; {:.1} MiB",
                shape.name,
                truth[0].len(),
                report["kept"],
                plan["kept"],
                plan["kept_range"],
                report["spilled"],
                plan["spilled"],
                plan["spilled_range"],
                report["candidates"],
                plan["candidates"],
                plan["candidates_range"],
                report["passes"],
                plan["passes"],
                report["strategy"],
                plan["strategy"],
                peak as f64 / f64::from(1 << 20),
            );
        }
    }
    (table, checks)
}

/// Prints the table, and fails if more numbers are outside of their ranges than 99 % allow.
fn check(table: &str, checks: &Checks) {
    println!("{table}");
    let missed = checks.violations.len();
    println!("{missed} of {} outside of their ranges", checks.checked);
    checks.violations.iter().for_each(|text| println!("  {text}"));
    println!("off by more than 10 %: {:?}", checks.rough);
    assert!(missed * 100 <= checks.checked as usize, "{:#?}", checks.violations);
}

#[test]
fn estimates_of_full_scans_of_one_file() {
    let (table, checks) = run(60_000, 1, 1, "always", "8M");
    check(&table, &checks);
}

#[test]
fn estimates_of_full_scans_of_two_files() {
    let (table, checks) = run(60_000, 1, 2, "always", "8M");
    check(&table, &checks);
}

/// The memory of blocks and of tables is large beside what these jobs spill.
#[test]
fn bounds_hold_when_little_is_spilled_or_nothing_survives() {
    const N: u64 = 300_000;
    let dir = TestDir::new();
    let write = |name: &str, lines: Lines<'_>| dir.write(name, text(lines));
    let numbered = |i: u64| format!("line-{i:09}");
    write("runs", Box::new((0..2 * N).map(|i| numbered(i / 3))));
    let late = move |i| if i < 2 * N / 10 * 9 { numbered(i) } else { "hot".to_owned() };
    write("late", Box::new((0..2 * N).map(late)));
    let first = move |i| if i < 2 * N / 10 { "hot".to_owned() } else { numbered(i) };
    write("first", Box::new((0..2 * N).map(first)));
    write("half", Box::new((0..2 * N).map(|i| (i % N).to_string())));
    write("ints", Box::new((0..2 * N).map(|i| i.to_string())));
    write(
        "frequent",
        Box::new((0..2 * N).map(move |i| numbered(if i % 2 == 0 { i } else { i % 50 }))),
    );
    write("few", Box::new((0..N).map(|i| format!("x{}", i * i % 4999))));
    write("other", Box::new((0..N).map(|i| format!("y{}", i * i % 4999))));
    write("empty", Box::new((0..N).map(|_| String::new())));
    write("two", Box::new((0..N).map(|i| (i % 2).to_string())));
    let mut checks = Checks::default();
    for args in [
        "dedup runs -m 8M",
        "dedup late -m 8M",
        "dedup first -m 8M",
        "dedup -u late -m 8M",
        "dedup -d half -m 8M",
        "dedup frequent -m 8M",
        "dedup ints -m 8M",
        "diff late first -m 8M",
        "diff ints half frequent -m 8M",
        "symdiff frequent ints -m 8M",
        "symdiff ints half -m 8M",
        "symdiff late first -m 64M",
        "common ints frequent -m 8M",
        "common few other -m 8M",
        "common empty two -m 64M",
    ] {
        let plan = dir.run(&format!("plan {args} -j 2 --full-scan=always --json")).ok();
        let plan: Value = serde_json::from_slice(&plan).unwrap();
        dir.run(&format!("{args} -j 2 -o out --report report")).ok();
        let report: Value = serde_json::from_slice(&dir.read("report")).unwrap();
        for name in ["kept", "passes", "bytes_read", "spilled", "candidates"] {
            let found = report[name].as_f64().unwrap();
            checks.check(args, name, &plan[name], &plan[format!("{name}_range")], found);
        }
        for input in plan["inputs"].as_array().unwrap() {
            let [distinct, most] = [&input["distinct"], &input["distinct_range"][1]];
            let lines = input["lines"].as_u64();
            assert!(distinct.as_u64() <= lines && most.as_u64() <= lines, "{args}: {input}");
        }
    }
    // With these keys; with others, one range in a hundred may miss.
    assert_eq!(checks.violations, [""; 0]);
}
