//! The files that a command takes: those on the command line or those of a list, with the files of a
//! directory in its place.
//!
//! Their order is that of the names, and in a directory that of the bytes of the names in it. Links below a
//! directory are followed. What is neither a file nor a directory there, such as a FIFO, is left out.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};
use petal_lines::{ErrorKind, LineBuffer, Settings, Source, io_text};
use walkdir::{DirEntry, WalkDir};

use crate::args::{Inputs, ListArgs, source};
use crate::error::{Failure, Result};
use crate::text;

/// Returns the inputs of a command; without any name, standard input. The names of a list may take a
/// quarter of the memory limit.
pub(crate) fn inputs(args: &Inputs, memory_limit: u64) -> Result<Vec<Source>> {
    sources(&input_names(args, memory_limit)?, &args.lists)
}

/// Returns the paths of inputs that have no keys of their own; without any name, standard input.
pub(crate) fn input_paths(args: &Inputs, memory_limit: u64) -> Result<Vec<PathBuf>> {
    expanded(input_names(args, memory_limit)?, &args.lists)
}

fn input_names(args: &Inputs, memory_limit: u64) -> Result<Vec<PathBuf>> {
    let named = names_or_none(&args.files, &args.lists, memory_limit)?;
    Ok(if named.is_empty() { vec![PathBuf::from("-")] } else { named })
}

/// Returns the first input, which may be several files, and the inputs to compare with. A list has the
/// inputs to compare with, and the first one too unless the command line names it.
pub(crate) fn compared(
    first: Option<&Path>,
    others: &[PathBuf],
    lists: &ListArgs,
    memory_limit: u64,
) -> Result<(Vec<Source>, Vec<Source>)> {
    let streams = key_list(first)?.into_iter().chain(lists.source());
    Source::check_streams(&streams.collect::<Vec<_>>())?;
    let mut others = names(others, lists, memory_limit)?;
    let first = match first {
        Some(first) => first.to_owned(),
        None if others.len() < 2 => {
            let list = lists.source().map_or_else(String::new, |list| format!("{list}: "));
            return Err(Failure::Message(format!(
                "{list}names one input, expected another to compare it with; add one, or name the first \
                 input before the list"
            )));
        }
        None => others.remove(0),
    };
    Ok((sources(&[first], lists)?, sources(&others, lists)?))
}

/// Returns a file of lines as an input. Its name may have a fragment.
pub(crate) fn input(name: &Path) -> Result<Source> {
    let source = source(name)?;
    match source.place() {
        Source::Path(dir) if dir.is_dir() => Err(Failure::Message(format!(
            "{}: is a directory, expected a file of lines; name the files in it, or add --recursive",
            dir.display()
        ))),
        _ => Ok(source),
    }
}

/// Returns files of lines as inputs. Their names may have fragments; the files of a directory have its
/// fragment.
fn sources(names: &[PathBuf], lists: &ListArgs) -> Result<Vec<Source>> {
    if !lists.recursive {
        return names.iter().map(|name| input(name)).collect();
    }
    let mut inputs = Vec::with_capacity(names.len());
    for name in names {
        let named = source(name)?;
        match named.place() {
            Source::Path(dir) if dir.is_dir() => {
                let files = files_in(dir, &lists.glob)?;
                inputs.extend(files.into_iter().map(|file| named.at(Source::Path(file))));
            }
            _ => inputs.push(named),
        }
    }
    Ok(inputs)
}

/// Returns the input of an option that names one.
pub(crate) fn key_list(path: Option<impl Into<PathBuf>>) -> Result<Option<Source>> {
    Ok(path.map(|path| source(path)).transpose()?)
}

/// Returns the inputs of the estimate of a command; none if none is named.
pub(crate) fn inputs_to_sample(
    named: &[PathBuf],
    lists: &ListArgs,
    memory_limit: u64,
) -> Result<Vec<Source>> {
    sources(&names_or_none(named, lists, memory_limit)?, lists)
}

/// Returns files without keys of their own, such as filters; none if none is named.
pub(crate) fn paths(
    named: &[PathBuf],
    lists: &ListArgs,
    memory_limit: u64,
) -> Result<Vec<PathBuf>> {
    expanded(names_or_none(named, lists, memory_limit)?, lists)
}

fn names_or_none(named: &[PathBuf], lists: &ListArgs, memory_limit: u64) -> Result<Vec<PathBuf>> {
    let names = names(named, lists, memory_limit)?;
    if lists.recursive && names.is_empty() {
        let text = "--recursive: no directory is named; add one, e.g. . for the current directory";
        return Err(Failure::Message(text.to_owned()));
    }
    Ok(names)
}

/// Returns the names of a list; without a list, those of the command line.
fn names(named: &[PathBuf], lists: &ListArgs, memory_limit: u64) -> Result<Vec<PathBuf>> {
    let Some((list, end, option)) = lists.list() else { return Ok(named.to_vec()) };
    if let Some(name) = named.first() {
        return Err(Failure::Message(format!(
            "{option}: {list} has the names of the files, and the command line names {}; leave out one \
             of them",
            name.display()
        )));
    }
    let lines = read(&list, end, memory_limit)?;
    let shown = if list == Source::Stdin { "standard input".to_owned() } else { list.to_string() };
    let bad = |at: usize, problem: &str| {
        let line = text::count(at as u64 + 1);
        Err(Failure::Message(format!("{shown}: name {line}: {problem}")))
    };
    let mut names = Vec::with_capacity(lines.len());
    for (at, name) in lines.iter().enumerate() {
        match name {
            b"" => return bad(at, "expected the name of a file, found none; remove it"),
            b"-" | [b'-', b'#', ..] if list == Source::Stdin => {
                return bad(
                    at,
                    "- is standard input, which is the list; save one of them to a file",
                );
            }
            name => names.push(PathBuf::from(OsString::from_vec(name.to_vec()))),
        }
    }
    if names.is_empty() {
        return Err(Failure::Message(format!(
            "{shown}: has no names, expected those of the files; add one, or leave out {option}"
        )));
    }
    Ok(names)
}

/// Reads the names of a list, which may be compressed.
fn read(list: &Source, end: u8, memory_limit: u64) -> Result<LineBuffer> {
    /// Bytes of a name besides its text: in a vector, and its allocation.
    const BYTES_PER_NAME: u64 = 64;
    let mut settings = Settings::new(memory_limit);
    settings.delimiter = end;
    let lists = std::slice::from_ref(list);
    LineBuffer::read(&settings, lists, memory_limit / 4, BYTES_PER_NAME).map_err(|error| {
        if error.kind() != ErrorKind::LineBuffer {
            return error.into();
        }
        Failure::Message(format!(
            "{list}: its names take more than a quarter of the {} of -m; raise -m, or divide the list",
            text::size(memory_limit),
        ))
    })
}

/// Replaces directories by the files in and below them, if that was asked for.
fn expanded(names: Vec<PathBuf>, lists: &ListArgs) -> Result<Vec<PathBuf>> {
    if !lists.recursive {
        return Ok(names);
    }
    let mut paths = Vec::with_capacity(names.len());
    for name in names {
        match name.is_dir() {
            true => paths.extend(files_in(&name, &lists.glob)?),
            false => paths.push(name),
        }
    }
    Ok(paths)
}

/// Returns the files in and below a directory that match a pattern; all files without a pattern.
fn files_in(dir: &Path, patterns: &[Pattern]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in WalkDir::new(dir).follow_links(true).sort_by_file_name() {
        let entry = entry.map_err(|error| unreadable(dir, &error))?;
        if entry.file_type().is_file() && (patterns.is_empty() || is_match(&entry, dir, patterns)) {
            paths.push(entry.into_path());
        }
    }
    if paths.is_empty() {
        let which = if patterns.is_empty() { "" } else { " that match --glob" };
        return Err(Failure::Message(format!(
            "{}: is a directory without files{which}; leave it out, or name another",
            dir.display()
        )));
    }
    Ok(paths)
}

fn is_match(entry: &DirEntry, dir: &Path, patterns: &[Pattern]) -> bool {
    let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
    let name = entry.file_name().to_string_lossy();
    let path = entry.path().strip_prefix(dir).unwrap_or(entry.path()).to_string_lossy();
    patterns.iter().any(|pattern| {
        let of = if pattern.as_str().contains('/') { &path } else { &name };
        pattern.matches_with(of, options)
    })
}

fn unreadable(dir: &Path, error: &walkdir::Error) -> Failure {
    let path = error.path().unwrap_or(dir).display();
    Failure::Message(match (error.loop_ancestor(), error.io_error()) {
        (Some(above), _) => format!(
            "{path}: is a link to {}, a directory that it is in; remove the link, or name the directories",
            above.display()
        ),
        (_, Some(error)) => format!("{path}: cannot read: {}", io_text(error)),
        _ => format!("{path}: cannot read: {error}"),
    })
}
