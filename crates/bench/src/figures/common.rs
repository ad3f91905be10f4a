//! The chart of README.md: time and memory of `common` and its rivals, from the rows of `cargo x bench files`.

use super::chart::{Bar, Head, bar_pairs};
use crate::stats::{csv_fields, median};

/// The columns that are read.
const COLUMNS: [&str; 9] = [
    "lines_per_file",
    "lines_common",
    "line_bytes",
    "work",
    "tool",
    "config",
    "wall_s",
    "peak_rss_bytes",
    "trouble",
];
const MIB: f64 = 1_048_576.0;

/// The rounds of one command.
struct Command {
    tool: String,
    config: String,
    seconds: Vec<f64>,
    bytes: Vec<f64>,
    failed: usize,
}

/// Returns the chart; `None` if the file has no rows of `common` by petal.
///
/// # Errors
/// A sentence, if the file is not a result of `cargo x bench files`.
pub(super) fn chart(text: &str) -> Result<Option<String>, String> {
    let mut lines = text.lines();
    let header = csv_fields(lines.next().unwrap_or_default());
    let column = |name: &str| {
        let found = header.iter().position(|field| field == name);
        found.ok_or_else(|| format!("the header has no column `{name}`"))
    };
    let mut columns = [0; COLUMNS.len()];
    for (column_number, name) in columns.iter_mut().zip(COLUMNS) {
        *column_number = column(name)?;
    }
    let mut commands: Vec<Command> = Vec::new();
    let mut sizes = None;
    for (at, line) in lines.enumerate() {
        let fields = csv_fields(line);
        let problem = |what: &str| format!("line {}: {what}", at + 2);
        if fields.len() != header.len() {
            return Err(problem("the number of fields differs from the header"));
        }
        let [count, common, width, work, tool, config, seconds, bytes, trouble] =
            columns.map(|column| fields[column].as_str());
        if work != "common" || tool == "wc" {
            continue;
        }
        let number = |name: &str, text: &str| {
            text.parse::<f64>().map_err(|_| problem(&format!("{name} is not a number")))
        };
        let size = (
            number("lines_per_file", count)?,
            number("lines_common", common)?,
            number("line_bytes", width)?,
        );
        if *sizes.get_or_insert(size) != size {
            return Err(problem("its files differ from those of the lines before it"));
        }
        let same = |it: &Command| it.tool == tool && it.config == config;
        let position = commands.iter().position(same).unwrap_or_else(|| {
            let (tool, config) = (tool.to_owned(), config.to_owned());
            commands.push(Command {
                tool,
                config,
                seconds: Vec::new(),
                bytes: Vec::new(),
                failed: 0,
            });
            commands.len() - 1
        });
        let command = &mut commands[position];
        command.seconds.push(number("wall_s", seconds)?);
        command.bytes.push(number("peak_rss_bytes", bytes)?);
        command.failed += usize::from(!trouble.is_empty());
    }
    let Some((lines, common, width)) = sizes else { return Ok(None) };
    if !commands.iter().any(|it| it.tool == "petal") {
        return Ok(None);
    }
    let rounds = commands.iter().map(|it| it.seconds.len()).min().unwrap_or(0);
    let head = Head {
        title: "Which lines do two files have in common? Time and memory, less is better",
        subtitle: &format!(
            "Exact. Two files of {} million lines of {} bytes, {:.0} % in common, two cores, medians of {rounds} rounds.",
            lines / 1e6,
            width - 1.0,
            100.0 * common / lines
        ),
        x_label: "",
        height: 96 + 34 * selected(&commands).count() as u32,
    };
    let bars: Vec<Bar> = selected(&commands).map(bar).collect();
    bar_pairs(&head, ["time, s", "peak memory, MiB"], &bars).map(Some)
}

/// The commands in the order of the chart: the best rival, petal with its first memory limit, the other rivals.
fn selected(commands: &[Command]) -> impl Iterator<Item = &Command> {
    let petal = commands.iter().find(|it| it.tool == "petal");
    let mut rivals: Vec<&Command> = commands.iter().filter(|it| it.tool != "petal").collect();
    let time = |it: &Command| median(&it.seconds).unwrap_or(f64::INFINITY);
    // Those that fail are last of their tool.
    rivals.sort_by(|a, b| (a.failed > 0).cmp(&(b.failed > 0)).then(time(a).total_cmp(&time(b))));
    let tools: Vec<&str> = rivals.iter().map(|it| it.tool.as_str()).collect();
    rivals.sort_by_key(|it| tools.iter().position(|tool| *tool == it.tool));
    let rest = rivals.split_off(rivals.len().min(1));
    rivals.into_iter().chain(petal).chain(rest)
}

fn bar(command: &Command) -> Bar {
    let Command { tool, config, seconds, bytes, failed } = command;
    let name = match (tool.as_str(), config.as_str()) {
        ("duckdb", limit) => format!("DuckDB, memory limit {limit}"),
        ("zet", _) => "zet (all lines in memory)".to_owned(),
        ("sort+comm", config) => format!("GNU sort {config}, and comm"),
        (tool, config) => format!("{tool} common {config}"),
    };
    let failure =
        (*failed > 0).then(|| format!("out of memory in {failed} of {} rounds", seconds.len()));
    let values = [
        median(seconds).map(|value| (value, format!("{value:.1} s"))),
        median(bytes).map(|value| (value / MIB, format!("{:.0} MiB", value / MIB))),
    ];
    Bar { name, values, failure, is_ours: tool == "petal" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "date,lines_per_file,lines_common,line_bytes,work,tool,config,wall_s,peak_rss_bytes,trouble";

    fn rows(rows: &[&str]) -> String {
        let rows = rows.iter().map(|row| format!("2000-01-01,10000000,1000000,65,{row}\n"));
        format!("{HEADER}\n{}", rows.collect::<String>())
    }

    #[test]
    fn the_best_rival_is_first_and_failures_are_named() {
        let text = rows(&[
            "common,wc,-l,0.1,1048576,",
            "common,petal,-m 128M,2,104857600,",
            "common,petal,-m 1024M,1,104857600,",
            "common,duckdb,128MiB,4,1048576,out of memory",
            "common,duckdb,16GB,5,1048576000,",
            "common,duckdb,128MiB,3,1048576,",
            "common,zet,intersect,9,1048576000,",
            "dedup,petal,-m 7M,1,104857600,",
        ]);
        let svg = chart(&text).unwrap().unwrap();
        let at = |text: &str| svg.find(text).unwrap_or_else(|| panic!("{text}: {svg}"));
        let order = ["16GB", "petal common -m 128M", "128MiB", "zet"].map(at);
        assert!(order.is_sorted(), "{order:?}");
        at("out of memory in 1 of 2 rounds");
        at("10 million lines of 64 bytes, 10 % in common");
        for left_out in ["wc", "-m 7M", "-m 1024M", "4.0 s", "NaN"] {
            assert!(!svg.contains(left_out), "{left_out}");
        }
    }

    #[test]
    fn rows_of_other_files_and_invalid_rows_are_errors() {
        let good = "common,petal,-m 128M,2,104857600,";
        let other = rows(&[good]) + "2000-01-01,20000000,1000000,65,common,petal,-m 128M,2,1,\n";
        assert!(chart(&other).unwrap_err().starts_with("line 3: its files differ"));
        assert!(chart(&rows(&["common,petal,x,y,1,"])).unwrap_err().contains("wall_s"));
        assert!(chart(&rows(&["common,petal"])).unwrap_err().contains("number of fields"));
        assert!(chart("a,b\n").unwrap_err().contains("no column `lines_per_file`"));
        assert_eq!(chart(&rows(&["dedup,petal,-m 7M,1,1,"])), Ok(None));
        assert_eq!(chart(&rows(&["common,zet,,1,1,"])), Ok(None));
    }
}
