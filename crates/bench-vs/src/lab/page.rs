//! The tables and the plot of docs/uses/lab.md, from the newest rows of `cargo x lab`, and the same tables as text.

use std::fs;
use std::path::{Path, PathBuf};

use petal_bench::figures::page::replace;
use petal_bench::figures::scatter::{Texts, scatter};

use super::claims::{self, case, sample_case};
use super::java_sample::{DEFAULT_SIZE, SEEDS, SIZE_IN_COMMENT};
use super::rows::{Figures, Row};
use super::ways::{WAYS, Way};

const PAGE: &str = "docs/uses/lab.md";
const PLOT: &str = "docs/uses/plots/lab.svg";
/// The sizes of the page.
const SIZES: [(u64, &str); 3] = [(1_000_000, "10⁶"), (10_000_000, "10⁷"), (100_000_000, "10⁸")];
/// The number of URLs of the claims on the page.
const CLAIMS: u64 = 1_000_000;

/// Writes the tables and the plot, and returns the path of the page.
///
/// # Errors
/// A sentence: no rows, no markers, or a file cannot be written.
pub fn write(root: &Path) -> Result<PathBuf, String> {
    let old = fs::read_to_string(root.join(PAGE)).map_err(|e| format!("{PAGE}: {e}"))?;
    let [new, svg] = updated(root, &old)?;
    for (path, text) in [(PAGE, new), (PLOT, svg)] {
        let folder = root.join(path).parent().map_or(Ok(()), fs::create_dir_all);
        folder
            .and_then(|()| fs::write(root.join(path), text))
            .map_err(|e| format!("{path}: {e}"))?;
    }
    Ok(PAGE.into())
}

/// Returns the page with the tables of the newest rows below `root`, and the plot.
///
/// # Errors
/// A sentence: no rows, or no markers.
pub fn updated(root: &Path, page: &str) -> Result<[String; 2], String> {
    let file = newest(&root.join("results")).ok_or("no results/*/*-lab.csv; run `cargo x lab`")?;
    let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
    let text = fs::read_to_string(&file).map_err(|e| format!("{shown}: {e}"))?;
    let figures = Figures::parse(&text).map_err(|e| format!("{shown}: {e}"))?;
    let [machine, date] = &figures.source;
    let commits = figures.commits.join(", ");
    let changed = match commits.contains('+') {
        true => "\nA + after a commit: files of its work tree were changed.",
        false => "",
    };
    let source = format!("Rows: `{shown}`\n({machine}; {date}; commits {commits}).{changed}");
    let bodies = [
        ("ways", ways(&figures)),
        ("sizes", sizes(&figures)),
        ("claims", claims_table(&figures)),
        ("sample", sample(&figures)),
        ("source", source),
    ];
    let page = bodies.iter().try_fold(page.to_owned(), |page, (name, body)| {
        replace(&page, name, body).map_err(|e| format!("{PAGE}: {e}"))
    })?;
    Ok([page, plot(&figures)?])
}

/// Draws bytes per URL and ns per query, at the first size. The Java sample, whose size is fixed, is left out.
fn plot(figures: &Figures) -> Result<String, String> {
    let (size, _) = SIZES[0];
    let point = |way: &Way| {
        let space = if way.is_database() { "disk" } else { "memory" };
        let get = |figure| figures.get(way.name, size, figure);
        Some((way.name.replace('`', ""), get(space)?, get("query")?))
    };
    let points: Vec<_> =
        WAYS.iter().filter(|way| way.target().is_some()).filter_map(point).collect();
    let texts = Texts {
        title: "Ways to remember a million URLs: ns per query, by bytes per URL",
        subtitle: "Log scales; bytes in memory, of databases on disk. Lower left is better.",
        x_label: "bytes per URL",
    };
    scatter(&texts, &points)
}

/// Returns the result file of the last day.
fn newest(folder: &Path) -> Option<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let files = entries(folder).into_iter().flat_map(|machine| entries(&machine));
    let rows = files.filter(|file| file.to_string_lossy().ends_with("-lab.csv"));
    rows.max_by_key(|file| file.file_name().map(ToOwned::to_owned))
}

/// ns, in three digits.
fn time(ns: f64) -> String {
    match ns {
        1_000.0.. => grouped(ns as u64),
        100.0.. => format!("{ns:.0}"),
        _ => format!("{ns:.1}"),
    }
}

/// A part of all, in percent with three digits.
fn percent(part: f64) -> String {
    percent_in(3, part)
}

/// A part of all, in percent with this number of digits.
fn percent_in(digits: i32, part: f64) -> String {
    if part == 0.0 {
        return "0".into();
    }
    if part < 1e-8 {
        return "< 0.000001 %".into();
    }
    let last = f64::from(digits - 1) - (part * 100.0).log10().floor();
    let places = last.clamp(0.0, 6.0) as usize;
    format!("{:.places$} %", part * 100.0)
}

/// A measured part of `queried` URLs, in percent with the digits that its number of events supports: the
/// standard error of `n` events is their square root. Fewer than ten events are counted.
fn measured_percent(part: f64, queried: f64) -> String {
    let events = (part * queried).round();
    match events {
        0.0 => "0".into(),
        ..10.0 => format!("{events} of {}", grouped(queried as u64)),
        ..100.0 => percent_in(1, part),
        ..10_000.0 => percent_in(2, part),
        _ => percent(part),
    }
}

/// A number with a comma before each group of three digits.
fn grouped(number: u64) -> String {
    match number {
        ..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

/// Bytes per URL: in memory, or on disk.
fn space(figures: &Figures, way: Way, size: u64) -> Option<String> {
    let disk = figures.get(way.name, size, "disk")?;
    let memory = figures.get(way.name, size, "memory")?;
    Some(match way.is_database() {
        true => format!("{disk:.0} on disk"),
        false => bytes(memory),
    })
}

/// Bytes per URL in three digits.
fn bytes(bytes: f64) -> String {
    if bytes < 20.0 { format!("{bytes:.2}") } else { format!("{bytes:.0}") }
}

/// The wrong answers of a way: of new URLs, because no seen one is denied.
fn wrong(figures: &Figures, way: Way, size: u64) -> Option<String> {
    let wrong = figures.get(way.name, size, "false positives")?;
    let new = figures.get(way.name, size, "new URLs")?;
    Some(measured_percent(wrong / new, new))
}

/// The main table, at the first size.
fn ways(figures: &Figures) -> String {
    let size = SIZES[0].0;
    let mut text = String::from(
        "| way | bytes per URL | at most, while filled | ns per insert | ns per query | wrong answers | survives a restart | deletes | shared by |\n\
         |---|--:|--:|--:|--:|--:|---|---|---|\n",
    );
    for way in WAYS {
        let line = || {
            let get = |figure| figures.get(way.name, size, figure);
            let survives = match (get("survives a restart")? == 1.0, way.is_database()) {
                (true, true) => "yes",
                (true, false) => "as a file",
                _ => "no",
            };
            let deletes = if get("deletes")? == 1.0 { "yes" } else { "no" };
            Some(format!(
                "| {} | {} | {} | {} | {} | {} | {survives} | {deletes} | {} |\n",
                way.name,
                space(figures, way, size)?,
                if way.is_database() { String::new() } else { bytes(get("peak memory")?) },
                time(get("insert")?),
                time(get("query")?),
                wrong(figures, way, size)?,
                way.sharing
            ))
        };
        text += &line().unwrap_or_default();
    }
    text
}

/// Space, times and wrong answers at the larger sizes. A way that was left out has empty cells.
fn sizes(figures: &Figures) -> String {
    let larger = &SIZES[1..];
    let mut text = String::from("| way |");
    for (_, shown) in larger {
        text += &format!(" {shown}: MB | insert | query | wrong |");
    }
    text += &format!("\n|---|{}\n", "--:|".repeat(4 * larger.len()));
    for way in WAYS {
        text += &format!("| {} |", way.name);
        for &(size, _) in larger {
            let cells = || {
                let get = |figure| figures.get(way.name, size, figure);
                let space = if way.is_database() { "disk" } else { "memory" };
                let megabytes = get(space)? * size as f64 / 1e6;
                let megabytes = match megabytes {
                    20.0.. => format!("{megabytes:.0}"),
                    _ => format!("{megabytes:.1}"),
                };
                let times = [get("insert")?, get("query")?].map(time);
                let wrong = wrong(figures, way, size)?;
                Some(format!(" {megabytes} | {} | {} | {wrong} |", times[0], times[1]))
            };
            text += &cells().unwrap_or_else(|| " | | | |".into());
        }
        text.push('\n');
    }
    text
}

/// A claim: what the articles say, what was measured, and whether that makes it true.
struct Claim {
    says: &'static str,
    measured: String,
    verdict: &'static str,
}

/// Returns the claims; `None` if a figure is missing.
fn claims_of(figures: &Figures, keys: u64) -> Option<[Claim; 5]> {
    let rate = |bits: f64, k: u32| figures.get(&case(bits, k), keys, "rate");
    let percent = |part| measured_percent(part, (claims::ABSENT * keys) as f64);
    let per_url = |way: &str| figures.get(way, SIZES[0].0, "memory");
    let [less, bitmap] = [rate(90.0, 1)?, rate(100.0, 1)?];
    let [table, petal] =
        [per_url("hash table of 8-byte fingerprints")?, per_url("petal's default")?];
    let fixed = per_url("petal's static filter")?;
    let (eighth, quarter) = (rate(16.0, 11)?, rate(32.0, 22)?);
    let sweep: Vec<(u32, f64)> =
        claims::SWEEP.map(|k| Some((k, rate(claims::SWEEP_BITS, k)?))).collect::<Option<_>>()?;
    let of_k = |k: u32| sweep.iter().find(|one| one.0 == k).map(|one| percent(one.1));
    let best = sweep.iter().min_by(|a, b| a.1.total_cmp(&b.1))?.0;
    let formula = claims::SWEEP_BITS * std::f64::consts::LN_2;
    let [thirteen, nine, fourteen] = [rate(13.0, 8)?, rate(13.0, 9)?, rate(14.4, 10)?];
    let eight = rate(14.4, 8)?;
    let verdict = |is_true: bool, otherwise| if is_true { "true" } else { otherwise };
    let near = |value: f64, target: f64, by: f64| (value / target - 1.0).abs() < by;
    Some([
        Claim {
            says: "A bitmap with one hash needs about 100 bits per URL for 1 %.",
            measured: format!("100 bits: {}; 90 bits: {}", percent(bitmap), percent(less)),
            verdict: verdict(bitmap <= 0.01 && less > 0.01, "false"),
        },
        Claim {
            says: "A hash table of fingerprints takes 1.6 GB for 10⁸ addresses.",
            measured: format!("{table:.1} bytes per URL: {:.2} GB for 10⁸", table / 10.0),
            verdict: verdict(near(table, 16.0, 0.02), "false"),
        },
        Claim {
            says: "A filter needs 1/8 to 1/4 of the hash table.",
            measured: format!(
                "1/8: {}; 1/4: {}. For 1 %, petal's default takes 1/{:.1}, the static filter 1/{:.1}",
                percent(eighth),
                if quarter == 0.0 { "none wrong".into() } else { percent(quarter) },
                table / petal,
                table / fixed
            ),
            verdict: verdict(table / petal < 8.0, "inexact: less is enough"),
        },
        Claim {
            says: "The best k is ln 2 · m/n.",
            measured: format!(
                "m/n = 10, formula {formula:.2}: k = {best} is the best of 1 to 14, {}; k = {}: {}; k = {}: {}",
                of_k(best)?,
                best - 1,
                of_k(best - 1)?,
                best + 1,
                of_k(best + 1)?
            ),
            verdict: verdict((f64::from(best) - formula).abs() < 1.0, "false"),
        },
        Claim {
            says: "E = 0.001 needs m = 13 n bits and k = 8.",
            measured: format!(
                "13 n, k = 8: {}, {:.1} times E; k = 9: {}. 14.4 n, k = 10: {}; k = 8: {}",
                percent(thirteen),
                thirteen / 0.001,
                percent(nine),
                percent(fourteen),
                percent(eight)
            ),
            verdict: verdict(thirteen <= 0.001, "false: 14.4 n and k = 10"),
        },
    ])
}

/// The claims of articles beside the measurements.
fn claims_table(figures: &Figures) -> String {
    let mut text = String::from("| the article says | measured | verdict |\n|---|---|---|\n");
    for Claim { says, measured, verdict } in claims_of(figures, CLAIMS).into_iter().flatten() {
        text += &format!("| {says} | {measured} | **{verdict}** |\n");
    }
    text
}

/// The Java sample: rates with random and sequential URLs, at both of its sizes.
fn sample(figures: &Figures) -> String {
    let mut text = String::from(
        "| URLs in the filter | bits | formula | random URLs | sequential URLs |\n|--:|---|--:|--:|--:|\n",
    );
    for multiple in claims::SAMPLE_MULTIPLES {
        let keys = CLAIMS * multiple;
        for cap in [DEFAULT_SIZE, SIZE_IN_COMMENT] {
            let line = || {
                let random = sample_case(claims::RANDOM, cap);
                let sequential = sample_case(claims::SEQUENTIAL, cap);
                Some(format!(
                    "| {} · 10⁶ | 2^{} | {} | {} | {} |\n",
                    keys / CLAIMS,
                    cap.ilog2(),
                    percent(figures.get(&random, keys, "rate by the formula")?),
                    measured_percent(figures.get(&random, keys, "rate")?, keys as f64),
                    measured_percent(figures.get(&sequential, keys, "rate")?, keys as f64)
                ))
            };
            text += &line().unwrap_or_default();
        }
    }
    let sequential = sample_case(claims::SEQUENTIAL, DEFAULT_SIZE);
    let hits = SEEDS.iter().filter_map(|&seed| {
        let hits = figures.get(&sequential, CLAIMS, &claims::seed_figure(seed))?;
        Some(format!("seed {seed}: {}", percent(hits)))
    });
    let hits = hits.collect::<Vec<_>>().join("; ");
    text + &format!(
        "\nNew sequential URLs whose bit of one seed was set already, 10⁶ URLs in 2^25 bits:\n{hits}.\n"
    )
}

/// The figures of the ways as text for a terminal.
pub fn plain(keys: u64, rows: &[Row]) -> String {
    let mut text = format!(
        "\n{keys} URLs\n{:<36} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8}\n",
        "", "memory/URL", "disk/URL", "insert ns", "query ns", "wrong", "restart", "deletes"
    );
    for way in WAYS {
        let get = |figure: &str| {
            let same = |row: &&Row| row.case == way.name && row.figure == figure;
            rows.iter().find(same).map(|row| row.value)
        };
        let line = || {
            let part = get("false positives")? / get("new URLs")?;
            let yes = |value: f64| if value == 1.0 { "yes" } else { "no" };
            Some(format!(
                "{:<36} {:>10.2} {:>10.2} {:>10} {:>10} {:>10} {:>8} {:>8}\n",
                way.name,
                get("memory")?,
                get("disk")?,
                time(get("insert")?),
                time(get("query")?),
                percent(part),
                yes(get("survives a restart")?),
                yes(get("deletes")?)
            ))
        };
        text += &line().unwrap_or_default();
    }
    text
}

/// The figures of the claims as text for a terminal.
pub fn plain_claims(keys: u64, rows: &[Row]) -> String {
    let mut text = format!("\nfalse positives, claims at up to {keys} URLs\n");
    for row in rows.iter().filter(|row| row.unit == "of new URLs") {
        let Row { case, size, figure, value, .. } = row;
        text += &format!("{size:>8} URLs, {case:<48} {figure:<20} {}\n", percent(*value));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_digits_that_their_events_support() {
        for (events, of, text) in [
            (0.0, 500_000.0, "0"),
            (2.0, 500_000.0, "2 of 500,000"),
            (9.0, 1e6, "9 of 1,000,000"),
            (47.0, 1e6, "0.005 %"),
            (182.0, 1e6, "0.018 %"),
            (5052.0, 500_000.0, "1.0 %"),
            (39_712.0, 4e6, "0.993 %"),
            (1e6, 1e6, "100 %"),
        ] {
            assert_eq!(measured_percent(events / of, of), text, "{events}");
        }
    }
}
