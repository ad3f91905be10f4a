//! The lists of options of docs/reference/cli-options.md equal the definitions of the arguments.
//!
//! After a change of an option, `PETAL_UPDATE_OPTIONS=1 cargo test -p petal-cli --bin petal options_page` writes them
//! again.

use std::fs;

use clap::{Arg, CommandFactory as _};

use super::Cli;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli-options.md");
const BEGIN: &str = "<!-- options: begin -->\n";
const END: &str = "<!-- options: end -->\n";

/// Commands whose common options have a list of their own, and commands that the lists have under one name.
const READERS: [&str; 11] = [
    "common", "diff", "symdiff", "dedup", "count", "build", "add", "remove", "check", "probe",
    "seen",
];
const SET_COMMANDS: [&str; 4] = ["common", "diff", "symdiff", "dedup"];

/// An option as one or more commands describe it.
struct Row {
    long: String,
    option: String,
    text: String,
    commands: Vec<String>,
}

/// Returns the rows in the order of the help, those of one option together.
fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for command in Cli::command().get_subcommands() {
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let Some(long) = arg.get_long() else { continue };
            let (option, text) = (option(arg, long), text(arg));
            let same = rows.iter_mut().find(|row| row.option == option && row.text == text);
            if let Some(row) = same {
                row.commands.push(command.get_name().to_owned());
                continue;
            }
            let others = rows.iter().rposition(|row| row.long == long);
            let at = others.map_or(rows.len(), |at| at + 1);
            let commands = vec![command.get_name().to_owned()];
            rows.insert(at, Row { long: long.to_owned(), option, text, commands });
        }
    }
    rows
}

/// Returns the names of an option, and that of its value.
fn option(arg: &Arg, long: &str) -> String {
    let shorts =
        arg.get_short().into_iter().chain(arg.get_visible_short_aliases().into_iter().flatten());
    let longs = [long].into_iter().chain(arg.get_visible_aliases().into_iter().flatten());
    let names: Vec<String> = shorts
        .map(|short| format!("-{short}"))
        .chain(longs.map(|long| format!("--{long}")))
        .collect();
    let value = arg.get_value_names().filter(|_| arg.get_action().takes_values());
    let value = value.map_or(String::new(), |names| match arg.is_require_equals_set() {
        true => format!("[={}]", names[0]),
        false => format!(" {}", names[0]),
    });
    format!("`{}{value}`", names.join("`, `"))
}

/// Returns the text of the help, with the default and a short list of values.
fn text(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut text = help.split_whitespace().collect::<Vec<_>>().join(" ");
    if arg.get_action().takes_values() {
        let values: Vec<_> = arg.get_possible_values();
        let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy());
        let notes = [
            ("values", values.iter().map(|value| value.get_name().to_owned()).collect::<Vec<_>>()),
            ("default", defaults.map(String::from).collect()),
        ];
        for (name, values) in notes {
            if (1..=4).contains(&values.len()) {
                text.push_str(&format!(" [{name}: {}]", values.join(", ")));
            }
        }
    }
    text
}

/// Returns the names of commands, the set commands as one.
fn names(commands: &[String]) -> String {
    let mut left: Vec<&str> = commands.iter().map(String::as_str).collect();
    let has_all = SET_COMMANDS.iter().all(|command| left.contains(command));
    left.retain(|command| !has_all || !SET_COMMANDS.contains(command));
    let names = left.iter().map(|command| format!("`{command}`"));
    names.chain(has_all.then(|| "set commands".to_owned())).collect::<Vec<_>>().join(", ")
}

/// Returns what to note of an option that the commands which read lines have, all or all but one.
fn exceptions(commands: &[String]) -> Option<String> {
    let missing = READERS.into_iter().filter(|reader| !commands.iter().any(|name| name == reader));
    let missing: Vec<_> = missing.map(|reader| format!("not `{reader}`")).collect();
    let others = commands.iter().filter(|command| !READERS.contains(&command.as_str()));
    let others: Vec<_> = others.map(|command| format!("`{command}`")).collect();
    let also = (!others.is_empty()).then(|| format!("also {}", others.join(", ")));
    let notes: Vec<_> = also.iter().chain(&missing).map(String::as_str).collect();
    let note = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    (missing.len() < 2).then_some(note)
}

/// Returns the lists: options of all commands that read lines, of several commands, and of one.
fn lists() -> String {
    let (mut readers, mut several, mut one) = (String::new(), String::new(), String::new());
    for rows in rows().chunk_by(|left, right| left.long == right.long) {
        // docs/reference/cli-plan.md describes what `plan` has of the commands that it estimates.
        let others: Vec<_> = rows.iter().filter(|row| row.commands != ["plan"]).collect();
        let rows = if others.is_empty() { rows.iter().collect() } else { others };
        let texts: Vec<_> = rows
            .iter()
            .map(|row| match exceptions(&row.commands) {
                Some(note) => format!("{}{note}", row.text),
                None => format!("{} ({})", row.text, names(&row.commands)),
            })
            .collect();
        let list = match &rows[..] {
            rows if rows.iter().any(|row| exceptions(&row.commands).is_some()) => &mut readers,
            [row] if row.commands.len() == 1 => &mut one,
            _ => &mut several,
        };
        list.push_str(&format!("- {}: {}\n", rows[0].option, texts.join("<br>")));
    }
    format!(
        "## Options of all commands that read lines\n\nThese are `{}`.\n\n{readers}\n\
         ## Options of several commands\n\nSet commands are `{}`.\n\n{several}\n\
         ## Options of one command\n\n{one}\n",
        READERS.join("`, `"),
        SET_COMMANDS.join("`, `"),
    )
}

#[test]
fn lists_of_options_are_those_of_the_help() {
    let page = fs::read_to_string(PAGE).expect("the page exists");
    let (before, rest) = page.split_once(BEGIN).expect("the page has the marker");
    let (shown, after) = rest.split_once(END).expect("the page has the marker");
    let lists = format!("\n{}", lists());
    if std::env::var_os("PETAL_UPDATE_OPTIONS").is_some() {
        let written = fs::write(PAGE, format!("{before}{BEGIN}{lists}{END}{after}"));
        return written.expect("the page can be written");
    }
    assert!(
        shown == lists,
        "docs/reference/cli-options.md: the lists of options are not current; write them with\n\
         PETAL_UPDATE_OPTIONS=1 cargo test -p petal-cli --bin petal options_page"
    );
}
