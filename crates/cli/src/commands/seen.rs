//! `seen`: lines never seen before, by a filter file that remembers across runs.
//!
//! What was printed is made durable first, the filter second, the exact fingerprints third. A
//! crash between any two of them makes lines come twice; none is lost.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use petal::{AnyFilter, BloomFilter, FilterType, Membership, Shape, WindowedBloomFilter};
use petal_lines::aside::behind_links;
use petal_lines::{Ledger, METADATA, Memory, Recipe, Settings, Source, explain_full, seen};

use super::{build, print, refused_by, settings};
use crate::args::SeenArgs;
use crate::exit::{Failure, Outcome, Result, cannot_write, words};
use crate::lock::{self, beside};
use crate::output::{LineAppender, Output, readable};
use crate::progress::Teller;
use crate::{filter_file, signal, text};

pub(super) fn run(args: &SeenArgs) -> Result<Outcome> {
    let teller = Teller::new(&args.engine.talk, !args.count);
    let settings = settings(&args.engine, &teller);
    let inputs = args.inputs.sources();
    let path = behind_links(&args.filter);
    let _lock = lock::take(&path)?;
    let (mut memory, mut keeper) = Keeper::open(args, path, &settings)?;
    // Refused before any work is done.
    drop(Output::open(Some(&keeper.path), &inputs)?);
    let mut ours = inputs.clone();
    ours.extend([&keeper.path, &keeper.exact].map(|path| Source::Path(path.clone())));
    let mut output = if args.count { None } else { Some(Output::open(None, &ours)?) };
    let mut appender = output.as_mut().map(|out| appender(out, settings.delimiter, &teller));
    let sink = appender.as_mut().map(|out| out as &mut (dyn io::Write + Send));
    signal::end_gently();
    let every = Duration::from_secs_f64(args.save_every);
    let novel = seen(&settings, &mut memory, &inputs, sink, every, |memory| {
        keeper.save(memory).map_err(|failure| io::Error::other(failure.to_string()))
    });
    teller.finish();
    let novel = novel.map_err(|error| explain_full(error, memory.filter.face()));
    let novel = novel.map_err(refused_by(&keeper.path))?;
    if args.count {
        print(&format!("{}\n", novel.new))?;
    }
    if novel.new > 0 || keeper.fresh {
        keeper.save(&mut memory)?;
    }
    match &memory.ledger {
        None => build::warn_if_overfull(memory.filter.face(), &teller),
        Some(ledger) => note_if_overfull(memory.filter.face(), ledger.len(), &teller),
    }
    Ok(if signal::stopped() { Outcome::Interrupted } else { Outcome::Done })
}

/// Standard output, to which whole lines are appended.
fn appender<'a>(output: &'a mut Output, delimiter: u8, teller: &Teller) -> LineAppender<'a> {
    let before = readable(output.file()).unwrap_or_else(|error| {
        teller.say(&format!(
            "warning: standard output: cannot read how the file ends: {}; if its last line has no \
             end, the first new line is joined to it",
            words(&error)
        ));
        None
    });
    LineAppender::new(output.file(), before, delimiter)
}

/// Keeps the memory in its files.
struct Keeper {
    path: PathBuf,
    /// Beside it: the fingerprints, if there are any.
    exact: PathBuf,
    metadata: String,
    /// Nothing is in the files yet.
    fresh: bool,
}

impl Keeper {
    fn open(args: &SeenArgs, path: PathBuf, settings: &Settings<'_>) -> Result<(Memory, Self)> {
        let exact = beside(&path, "exact");
        let mut keeper = Self { path, exact, metadata: String::new(), fresh: false };
        let memory = match fs::metadata(&keeper.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => keeper.begin(args, settings),
            _ => keeper.resume(args, settings),
        };
        Ok((memory?, keeper))
    }

    /// The first run on this file.
    fn begin(&mut self, args: &SeenArgs, settings: &Settings<'_>) -> Result<Memory> {
        let shown = self.path.display();
        if let Some(left) = self.ledger()?
            && !left.is_empty()
        {
            return Err(Failure::Plain(format!(
                "{}: remembers {} lines, but its filter {shown} is gone; restore that, or remove \
                 this to begin anew",
                self.exact.display(),
                text::count(left.len()),
            )));
        }
        // A first save that was cut short has left it, or a run that had nothing to remember.
        if !args.exact && self.exact.exists() {
            let failed = |e| Failure::Plain(cannot_write(&self.exact.display().to_string(), &e));
            fs::remove_file(&self.exact).map_err(failed)?;
        }
        let what = if args.window.is_some() { "within the window" } else { "in all" };
        let keys = args.last.or(args.expected).ok_or_else(|| {
            Failure::Plain(format!(
                "{shown}: does not exist yet; say with -n how many lines it is to remember {what}"
            ))
        })?;
        let filter = first(args, keys, settings)?;
        let ledger = args.exact.then(Ledger::new).transpose()?;
        METADATA.clone_into(&mut self.metadata);
        if let Some(ledger) = &ledger {
            self.metadata = marked(METADATA, ledger.pair());
        }
        self.fresh = true;
        Ok(Memory { filter, ledger, clock: clock(args) })
    }

    /// A later run.
    fn resume(&mut self, args: &SeenArgs, settings: &Settings<'_>) -> Result<Memory> {
        filter_file::fits(&self.path, settings.room_for_filter()?)?;
        let (filter, metadata) = filter_file::read(&self.path)?;
        self.agrees(args, &filter)?;
        let ledger = self.ledger()?;
        let (shown, exact) = (self.path.display(), self.exact.display());
        let trouble = match (pair(&metadata), &ledger) {
            (Some(pair), Some(ledger)) if pair == ledger.pair() => None,
            (None, None) if !args.exact => None,
            (None, None) => Some(format!(
                "{shown}: was begun without --exact and holds lines that only a filter knows; \
                 leave out --exact, or begin another file"
            )),
            (Some(_), None) => Some(format!(
                "{exact}: is gone, and {shown} is not exact without it; restore it, or remove \
                 {shown} to begin anew"
            )),
            (_, Some(_)) => Some(format!(
                "{exact}: does not belong to {shown}; restore the one that does, or move it away"
            )),
        };
        self.metadata = metadata;
        let memory = Memory { filter, ledger, clock: clock(args) };
        trouble.map_or(Ok(memory), |trouble| Err(Failure::Plain(trouble)))
    }

    /// The same words again are fine; others would promise what the file cannot keep.
    fn agrees(&self, args: &SeenArgs, filter: &AnyFilter) -> Result<()> {
        let (planned, target) = (filter.face().planned_keys(), filter.face().target_rate());
        let (time, last) = match filter {
            AnyFilter::Windowed(filter) => match filter.window_ticks() {
                Some(time) => (Some(time), None),
                None => (None, Some(planned)),
            },
            _ => (None, None),
        };
        if args.expected.is_none_or(|keys| keys == planned && last.is_none())
            && args.fpr.is_none_or(|rate| (rate / target - 1.0).abs() < 1e-9)
            && args.window.is_none_or(|window| time == Some(window))
            && args.last.is_none_or(|keys| last == Some(keys))
        {
            return Ok(());
        }
        let (of, words) = match (time, last) {
            (Some(time), _) => (format!(" within {}", text::span(time)), "-n, -p and --window"),
            (_, Some(_)) => (" that came last".to_owned(), "-p and --last"),
            _ if args.window.or(args.last).is_some() => {
                (" in all".to_owned(), "--window and --last")
            }
            _ => (String::new(), "-n and -p"),
        };
        Err(Failure::Plain(format!(
            "{}: was made for {} lines{of} at {}; leave out {words}, or begin another file",
            self.path.display(),
            text::count(planned),
            text::rate(target),
        )))
    }

    /// The fingerprints beside the filter, if there is such a file.
    fn ledger(&self) -> Result<Option<Ledger>> {
        let shown = self.exact.display().to_string();
        match fs::metadata(&self.exact) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Ok(data) if !data.is_file() => {
                Err(Failure::Plain(format!("{shown}: is no regular file; move it away")))
            }
            _ => Ok(Some(Ledger::open(self.open_exact()?, &shown)?)),
        }
    }

    fn open_exact(&self) -> Result<File> {
        File::open(&self.exact).map_err(|error| {
            Failure::Plain(format!("{}: cannot read: {}", self.exact.display(), words(&error)))
        })
    }

    /// Makes durable what was printed, then the memory of it.
    fn save(&mut self, memory: &mut Memory) -> Result<()> {
        sync_output().map_err(Failure::of_stdout)?;
        if self.fresh
            && let Some(ledger) = &memory.ledger
        {
            // Before a filter names it: that one alone would be refused at the next run.
            replace(&self.exact, |file| io::Write::write_all(file, &ledger.blank()))?;
        }
        let mut output = Output::open(Some(&self.path), &[])?;
        let written = memory.filter.write_to(output.file(), &self.metadata);
        written.map_err(Failure::of_output(&self.path))?;
        output.finish()?;
        self.fresh = false;
        if let Some(ledger) = &mut memory.ledger {
            let count = replace(&self.exact, |file| ledger.write_to(file))?;
            ledger.settle(self.open_exact()?, count)?;
        }
        Ok(())
    }
}

/// The filter of a first run, empty. Its hash has a random key: lines that come run after run are
/// often chosen by strangers.
fn first(args: &SeenArgs, keys: u64, settings: &Settings<'_>) -> Result<AnyFilter> {
    let (rate, room) = (args.fpr.unwrap_or(Recipe::RATE), settings.room_for_filter()?);
    let fits = |needed: u64| match needed <= room {
        true => Ok(()),
        false => Err(Failure::Plain(format!(
            "{} keys at {} take {}, more than the {} that -m {} leaves for a filter; raise -m, or \
             accept a higher rate with -p",
            text::count(keys),
            text::rate(rate),
            text::size(needed),
            text::size(room),
            text::size(settings.memory),
        ))),
    };
    // Of what forgets a little more than this.
    fits(Shape::for_rate(keys, rate)?.size_bytes())?;
    let hash = Recipe { keyed: true, ..Recipe::default() }.hash(FilterType::Bloom)?;
    if args.window.is_none() && args.last.is_none() {
        return Ok(BloomFilter::builder().keys(keys).rate(rate).hash(hash).build()?.into());
    }
    let builder = WindowedBloomFilter::builder().keys(keys).rate(rate).hash(hash);
    let builder = args.window.map_or(builder, |seconds| builder.time(seconds));
    let filter = AnyFilter::from(builder.build()?);
    fits(filter.face().size_bytes())?;
    Ok(filter)
}

fn clock(args: &SeenArgs) -> Box<dyn Fn() -> u64 + Send> {
    let clock = args.clock.clone();
    Box::new(move || clock.now())
}

/// With fingerprints an overfull filter costs time only.
fn note_if_overfull(filter: &dyn Membership, held: u64, teller: &Teller) {
    let planned = filter.planned_keys();
    if held as f64 > planned as f64 * 1.01 {
        teller.say(&format!(
            "note: the filter was planned for {} lines and {} are in: every answer is exact, but \
             looking up gets slow; begin another file with a larger -n",
            text::count(planned),
            text::count(held),
        ));
    }
}

/// Writes a file aside and moves it into place.
fn replace<T>(path: &Path, write: impl FnOnce(&mut File) -> io::Result<T>) -> Result<T> {
    let mut output = Output::open(Some(path), &[])?;
    let written = write(output.file());
    let done = written
        .map_err(|error| Failure::Plain(cannot_write(&path.display().to_string(), &error)))?;
    output.finish()?;
    Ok(done)
}

/// Where standard output is a file, what was printed must not be lost when the memory of it is
/// not.
fn sync_output() -> io::Result<()> {
    let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if out.metadata()?.is_file() { out.sync_data() } else { Ok(()) }
}

/// Metadata that name the file of fingerprints that belongs to the filter.
fn marked(metadata: &str, pair: u64) -> String {
    format!("{},\"exact\":\"{pair:016x}\"}}", metadata.trim_end_matches('}'))
}

/// The file of fingerprints that the metadata name.
pub(super) fn pair(metadata: &str) -> Option<u64> {
    let metadata: serde_json::Value = serde_json::from_str(metadata).ok()?;
    u64::from_str_radix(metadata.get("exact")?.as_str()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_read_back() {
        assert_eq!(pair(&marked(METADATA, 0xabc)), Some(0xabc));
        for other in [METADATA, "", "{}", r#"{"exact":1}"#, r#"{"exact":"x"}"#] {
            assert_eq!(pair(other), None, "{other}");
        }
    }
}
