//! The files that a command takes: those on the command line or those of a list, with the files of a
//! directory in its place.
//!
//! Their order is that of the names, and in a directory that of the bytes of the names in it. Links below a
//! directory are followed. What is neither a file nor a directory there, such as a FIFO, is left out.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};
use petal_lines::{ErrorKind, LineBuffer, Settings, Source, io_text, split_fragment};
use walkdir::{DirEntry, WalkDir};

use crate::args::{Inputs, ListArgs, source};
use crate::error::{Failure, Result};
use crate::text;

/// Returns the inputs of a command; without any name, standard input. The names of a list may take a
/// quarter of the memory limit.
pub(crate) fn inputs(args: &Inputs, memory_limit: u64) -> Result<Vec<Source>> {
    sources(input_paths(args, memory_limit)?)
}

/// Like [`inputs`], as paths.
pub(crate) fn input_paths(args: &Inputs, memory_limit: u64) -> Result<Vec<PathBuf>> {
    let named = paths(&args.files, &args.lists, memory_limit)?;
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
    Ok((sources(expanded(&[first], lists)?)?, sources(expanded(&others, lists)?)?))
}

/// Returns files of lines as inputs. Their names may have fragments.
pub(crate) fn sources(paths: Vec<PathBuf>) -> Result<Vec<Source>> {
    let input = |path| {
        let source = source(path)?;
        match source.place() {
            Source::Path(dir) if dir.is_dir() => Err(Failure::Message(format!(
                "{}: is a directory, expected a file of lines; name the files in it, or add --recursive",
                dir.display()
            ))),
            _ => Ok(source),
        }
    };
    paths.into_iter().map(input).collect()
}

/// Returns the input of an option that names one.
pub(crate) fn key_list(path: Option<impl Into<PathBuf>>) -> Result<Option<Source>> {
    Ok(path.map(|path| source(path)).transpose()?)
}

/// Returns the files; none if none is named.
pub(crate) fn paths(
    named: &[PathBuf],
    lists: &ListArgs,
    memory_limit: u64,
) -> Result<Vec<PathBuf>> {
    let names = names(named, lists, memory_limit)?;
    if lists.recursive && names.is_empty() {
        let text = "--recursive: no directory is named; add one, e.g. . for the current directory";
        return Err(Failure::Message(text.to_owned()));
    }
    expanded(&names, lists)
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

/// Replaces directories by the files in and below them, if that was asked for. Each has the fragment of its directory.
fn expanded(names: &[PathBuf], lists: &ListArgs) -> Result<Vec<PathBuf>> {
    if !lists.recursive {
        return Ok(names.to_vec());
    }
    let mut paths = Vec::with_capacity(names.len());
    for name in names {
        let (dir, fragment) = split_fragment(name);
        if dir.is_dir() {
            add_files(dir, fragment, &lists.glob, &mut paths)?;
        } else {
            paths.push(name.clone());
        }
    }
    Ok(paths)
}

/// Adds the files in and below a directory that match a pattern; all files without a pattern.
fn add_files(
    dir: &Path,
    fragment: Option<&OsStr>,
    patterns: &[Pattern],
    paths: &mut Vec<PathBuf>,
) -> Result<()> {
    let before = paths.len();
    for entry in WalkDir::new(dir).follow_links(true).sort_by_file_name() {
        let entry = entry.map_err(|error| unreadable(dir, &error))?;
        if entry.file_type().is_file() && (patterns.is_empty() || is_match(&entry, dir, patterns)) {
            let mut path = entry.into_path().into_os_string();
            if let Some(fragment) = fragment {
                path.push("#");
                path.push(fragment);
            }
            paths.push(path.into());
        }
    }
    if paths.len() == before {
        let which = if patterns.is_empty() { "" } else { " that match --glob" };
        return Err(Failure::Message(format!(
            "{}: is a directory without files{which}; leave it out, or name another",
            dir.display()
        )));
    }
    Ok(())
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
