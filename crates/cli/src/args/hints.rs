//! Usage errors: one line like other errors, which names the command that does what was asked for, or the command
//! or mode that an option belongs to.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _, Error};

use crate::error::print_stderr;

/// Options that need another argument, which selects a mode.
struct ModeOptions {
    /// The argument, as usage errors show it.
    needs: &'static str,
    /// The options, by their identifiers.
    options: &'static [&'static str],
    /// What they are options of, and how to select it.
    mode: &'static str,
}

const MODES: [ModeOptions; 4] = [
    ModeOptions {
        needs: "--approx",
        options: &["capacity", "fpr"],
        mode: "is an option of approximate jobs; add --approx",
    },
    ModeOptions {
        needs: "--work-dir <DIR>",
        options: &["resume"],
        mode: "continues the job of a work directory; name it with --work-dir",
    },
    ModeOptions {
        needs: "--format <FORMAT>",
        options: &["key_type", "gzip"],
        mode: "is an option of filters of other programs; name the program with --format",
    },
    ModeOptions {
        needs: "<COMMAND>",
        options: &[
            "jobs",
            "null",
            "text",
            "count",
            "strategy",
            "at_least",
            "only_duplicates",
            "only_unique",
            "keep",
        ],
        mode: "is an option of the estimate of a job; name the command and its inputs",
    },
];

/// Commands of other programs, and what does the same.
const OTHER_NAMES: [(&[&str], &str); 13] = [
    (&["comm", "inner", "intersect", "intersection", "join"], "`petal common`"),
    (&["anti", "antijoin", "difference", "except", "minus", "setdiff", "subtract"], "`petal diff`"),
    (&["symmetric-difference", "xor"], "`petal symdiff`"),
    (&["concat", "or", "union"], "`petal dedup`, or `petal merge` for filters"),
    (
        &["dedupe", "deduplicate", "distinct", "sort", "unique"],
        "`petal dedup`, or `petal dedup -u` for lines that occur once",
    ),
    (&["dup", "duplicates", "dups", "repeated"], "`petal dedup -d`"),
    (&["freq", "frequency", "histogram", "tally"], "`petal count`"),
    (&["anew", "new"], "`petal seen`"),
    (&["contains", "exists", "grep", "has", "lookup", "query", "test"], "`petal check`"),
    (&["create", "make"], "`petal build`"),
    (&["append", "insert"], "`petal add`"),
    (&["del", "delete", "rm"], "`petal remove`"),
    (&["describe", "inspect", "show", "stat", "stats"], "`petal info`"),
];

/// Prints a usage error; without any arguments, the usage and the names of the commands.
pub(super) fn print(error: &Error, args: &[OsString]) {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let program = super::Cli::command();
        let names: Vec<_> = program.get_subcommands().map(Command::get_name).collect();
        print_stderr("Usage: petal COMMAND [OPTIONS] [INPUTS]");
        let mut line = "Commands:".to_owned();
        for name in names {
            if line.len() + name.len() >= 79 {
                print_stderr(&std::mem::replace(&mut line, " ".repeat(9)));
            }
            line.push(' ');
            line.push_str(name);
        }
        print_stderr(&line);
        print_stderr("See `petal --help` for what they do and for examples.");
    } else {
        print_stderr(&format!("petal: {}", line(error, args)));
    }
}

/// Returns the text of a usage error in one line: what is wrong, and what to do.
pub(super) fn line(error: &Error, args: &[OsString]) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let mut lines = text.lines().map(str::trim);
    let problem: Vec<_> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let mut problem = problem.join(" ");
    if error.kind() == ErrorKind::ValueValidation
        && let [arg] = &texts(error, ContextKind::InvalidArg)[..]
        && let Some((_, reason)) = problem.split_once(&format!(" for '{arg}': "))
    {
        let name = arg.split(' ').next().unwrap_or(arg);
        let value = texts(error, ContextKind::InvalidValue).pop().unwrap_or_default();
        // Most reasons begin with the value.
        problem = match reason.trim_start_matches('\'').starts_with(&value) {
            true => format!("{name}: {reason}"),
            false => format!("{name} {value}: {reason}"),
        };
    }
    let tips = lines.filter_map(|line| line.strip_prefix("tip: "));
    // That an unknown option could be the name of a file is no help.
    let tips: Vec<_> = tips.filter(|tip| !tip.starts_with("to pass ")).collect();
    let step = match error.kind() {
        _ if !tips.is_empty() => tips.join("; "),
        _ if problem.contains("; ") => return problem,
        ErrorKind::ArgumentConflict => "leave out one of them".to_owned(),
        _ => format!("see `{}--help`", command_of(args)),
    };
    format!("{problem}; {step}")
}

/// Returns the program and the command of a command line, with a space after each.
fn command_of(args: &[OsString]) -> String {
    let program = super::Cli::command();
    let mut names = args.iter().skip(1).filter_map(|arg| arg.to_str());
    let name = names.find_map(|arg| program.find_subcommand(arg)).map(Command::get_name);
    match name {
        Some(name) if name != "help" => format!("petal {name} "),
        _ => "petal ".to_owned(),
    }
}

/// Returns a usage error with the mode or the commands that its option belongs to.
pub(super) fn explained(mut error: Error, program: &mut Command, args: &[OsString]) -> Error {
    if error.kind() == ErrorKind::InvalidSubcommand {
        let typed = texts(&error, ContextKind::InvalidSubcommand).pop().unwrap_or_default();
        let typed = typed.to_lowercase();
        let same = OTHER_NAMES.iter().find(|(names, _)| names.contains(&&*typed));
        if let Some((_, command)) = same {
            error.remove(ContextKind::SuggestedSubcommand);
            let tip = ContextValue::StyledStrs(vec![format!("use {command}").into()]);
            error.insert(ContextKind::Suggested, tip);
        }
        return error;
    }
    let args: Vec<_> = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let Some(name) = args.iter().find_map(|arg| program.find_subcommand(arg)) else {
        return error;
    };
    let name = name.get_name().to_owned();
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let Some(option) = texts(&error, ContextKind::InvalidArg).pop() else { return error };
            let option = option.split('=').next().unwrap_or_default();
            let owners = owners(program, option);
            let tip = match option {
                // Standard input with a fragment, to the user.
                "-#" => {
                    let tip =
                        "for standard input write /dev/stdin#, for another name write -- before it";
                    Some(tip.to_owned())
                }
                _ if owners.is_empty() => None,
                _ => Some(format!("'{option}' is an option of {}", owners.join(", "))),
            };
            if let Some(tip) = tip {
                error.remove(ContextKind::SuggestedArg);
                let tip = ContextValue::StyledStrs(vec![tip.into()]);
                error.insert(ContextKind::Suggested, tip);
            }
            error
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = texts(&error, ContextKind::InvalidArg);
            let mode = MODES.iter().find(|mode| missing.iter().any(|arg| arg == mode.needs));
            let Some(command) = program.find_subcommand_mut(&name) else { return error };
            let option = mode.and_then(|mode| Some((given(command, mode.options, &args)?, mode)));
            let Some((option, mode)) = option else { return error };
            let text = format!("'{option}' {}, or leave out the option", mode.mode);
            command.error(ErrorKind::MissingRequiredArgument, text)
        }
        ErrorKind::InvalidValue if name == "plan" => {
            let [arg, value] = [ContextKind::InvalidArg, ContextKind::InvalidValue]
                .map(|kind| texts(&error, kind).pop().unwrap_or_default());
            if arg != "[COMMAND]" || program.find_subcommand(&value).is_none() {
                return error;
            }
            let Some(command) = program.find_subcommand_mut(&name) else { return error };
            let text = format!(
                "'{value}' cannot be estimated; petal plan estimates common, diff, symdiff and dedup"
            );
            command.error(ErrorKind::InvalidValue, text)
        }
        ErrorKind::ArgumentConflict if name == "plan" => {
            let both = [ContextKind::InvalidArg, ContextKind::PriorArg];
            let both: Vec<_> = both.into_iter().flat_map(|kind| texts(&error, kind)).collect();
            let Some(command) = program.find_subcommand_mut(&name) else { return error };
            match &both[..] {
                [one, option] | [option, one] if one == "[COMMAND]" && option != one => {
                    let text = format!(
                        "'{option}' is an option of sizing a filter, not of the estimate of a job; \
                         leave it out, or leave out the command and its inputs"
                    );
                    command.error(ErrorKind::ArgumentConflict, text)
                }
                _ => error,
            }
        }
        _ => error,
    }
}

/// Returns the texts of one kind of context of an error.
fn texts(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Returns the commands that have an option, as `petal NAME`.
fn owners(program: &Command, option: &str) -> Vec<String> {
    let has = |command: &&Command| {
        command.get_arguments().any(|arg| !arg.is_hide_set() && is_given_by(arg, option))
    };
    let names = program.get_subcommands().filter(has).map(Command::get_name);
    names.map(|name| format!("petal {name}")).collect()
}

/// Returns whether an argument of the command line begins the option.
fn is_given_by(option: &Arg, arg: &str) -> bool {
    let long = option.get_long().into_iter().chain(option.get_all_aliases().unwrap_or_default());
    let short =
        option.get_short().into_iter().chain(option.get_all_short_aliases().unwrap_or_default());
    match arg.strip_prefix("--") {
        Some(name) => long.into_iter().any(|long| name.split('=').next() == Some(long)),
        None => short
            .into_iter()
            .any(|short| arg.strip_prefix('-').is_some_and(|rest| rest.starts_with(short))),
    }
}

/// Returns the first of these options that the command line has.
fn given(command: &Command, options: &[&str], args: &[String]) -> Option<String> {
    let is_option = |option: &&Arg| options.contains(&option.get_id().as_str());
    let mut known = command.get_arguments().filter(is_option);
    let found = known.find(|option| args.iter().any(|arg| is_given_by(option, arg)));
    found.map(ToString::to_string)
}
