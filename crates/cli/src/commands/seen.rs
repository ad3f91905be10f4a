//! `seen`: prints the lines that no run has seen before, and remembers them in a filter file.
//!
//! The output is synced first, then the filter, then the fingerprint log. After a crash a line may be
//! printed again, but none is lost.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use petal::{AnyFilter, BloomFilter, Membership, WindowedBloomFilter};
use petal_lines::atomic_file::{AtomicFile, beside, open_whole};
use petal_lines::{
    Advice, AppendedTo, ErrorKind, FilterSpec, FingerprintLog, SeenFilter, Setting, Settings,
    Source, explain_full, filter_metadata, max_seen_filter, recorded_log_id, recorded_spelling,
    seen, with_log_id, with_spelling,
};

use super::{bad_note, build, filter_failure, is_terminal, print, settings};
use crate::args::SeenArgs;
use crate::error::{Failure, Outcome, Result, cannot_write, io_text};
use crate::files::inputs::inputs;
use crate::files::lock;
use crate::files::output::{
    Output, STDOUT, finish_file, is_at_end, name_output, readable, refuse_bad_file,
};
use crate::files::{filter_file, foreign_file, key_fields, key_transforms, spelling};
use crate::process::signal;
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn run(args: &SeenArgs) -> Result<Outcome> {
    let progress = ProgressReporter::new(&args.engine.verbosity, !args.count);
    let inputs = inputs(&args.inputs, args.engine.memory.bytes())?;
    let mut settings = settings(&args.engine, &args.fields, &inputs, &progress)?;
    settings.follow = args.follow;
    if args.follow && inputs.iter().any(|input| *input.place() == Source::Stdin) {
        let text = "standard input cannot be followed; name a file, or leave out --follow";
        return Err(Failure::Message(text.to_owned()));
    }
    filter_file::refuse_address(&args.filter)?;
    let path = lock::target(&args.filter)?;
    for file in [&path, &beside(&path, "exact")] {
        refuse_bad_file(file, &settings.left_out)?;
    }
    // A dry run reads the files, which other runs only replace as a whole: the log after the filter.
    // With a log newer or older than the filter, a line of the other run may still count as new.
    let _lock = (!args.dry_run).then(|| lock::take(&path)).transpose()?;
    let swapped = foreign_file::explain_swapped("seen", &args.filter, &inputs);
    let (mut memory, mut files) =
        SeenFiles::open(args, path, &inputs, &mut settings).map_err(swapped)?;
    let keys = (&*settings.keys, &inputs[..]);
    key_fields::note_if_different(&args.filter, &files.metadata, keys, &progress);
    let metadata = key_fields::added(&files.metadata, keys);
    files.metadata = args.notes.noted(&metadata).map_err(bad_note)?;
    let recorded = recorded_spelling(&files.metadata, memory.filter.as_dyn().inserted());
    // The filter file is checked before any line is read.
    if !args.dry_run {
        drop(Output::open(Some(&files.path), &inputs)?);
    }
    let mut our_files = inputs.clone();
    our_files.extend(args.inputs.lists.source());
    our_files.extend([&files.path, &files.exact].map(|path| Source::Path(path.clone())));
    let mut output = if args.count { None } else { Some(Output::open(None, &our_files)?) };
    // An earlier run has printed the header.
    let before = output.as_mut().map(|output| appended_to(output, &progress)).transpose();
    settings.appended_to = before.map_err(Failure::of_stdout)?.flatten();
    settings.keys_only = args.rows.keys_only;
    // Rows after those of an earlier run would be a file after a file.
    settings.binary_output = settings.appended_to.is_none() && !is_terminal(None);
    let sink = output.as_mut().map(Output::writer);
    signal::stop_on_first();
    // Without a save at intervals, only a full log asks for one.
    let every = if args.dry_run { Duration::MAX } else { Duration::from_secs_f64(args.save_every) };
    let counts = seen(&settings, &mut memory, &inputs, sink, every, |memory| match args.dry_run {
        true => Err(io::Error::other(
            "with --dry-run all new lines of an exact filter must fit into memory; raise -m",
        )),
        false => files.save(memory).map_err(|failure| io::Error::other(failure.to_string())),
    });
    progress.finish();
    let counts = counts.map_err(|error| explain_full(error, memory.filter.as_dyn()));
    let counts = counts.map_err(|error| failure(error, &files.path))?;
    if args.count {
        print(&format!("{}\n", counts.new))?;
    }
    spelling::warn_if_different(&settings, recorded, true, &args.filter, &progress);
    files.metadata = with_spelling(
        &files.metadata,
        settings.spellings.all().union(recorded.unwrap_or_default()),
        memory.filter.as_dyn().inserted(),
    );
    if !args.dry_run && (counts.new > 0 || files.fresh || !args.notes.is_empty()) {
        files.save(&mut memory)?;
    }
    match &memory.log {
        None => build::warn_if_overfull(memory.filter.as_dyn(), &progress),
        Some(log) => note_if_overfull(memory.filter.as_dyn(), log.len(), &progress),
    }
    Ok(if signal::stopped() { Outcome::Interrupted } else { Outcome::Done })
}

/// Converts an error of the job: of the output, which has no option of its own, of the filter, or of the
/// inputs.
fn failure(error: petal_lines::Error, filter: &Path) -> Failure {
    let redirect = "redirect standard output to a new file";
    let error = error.replace_advice(&Advice::Specify(Setting::Output), redirect);
    match error.kind() {
        ErrorKind::Output => name_output(error, Some(STDOUT), None),
        _ => filter_failure(filter)(error),
    }
}

/// Returns the file that standard output is appended to.
fn appended_to(output: &mut Output, progress: &ProgressReporter) -> io::Result<Option<AppendedTo>> {
    let Some(file) = output.file() else { return Ok(None) };
    let before = readable(file).unwrap_or_else(|error| {
        progress.print(&format!(
            "warning: standard output: cannot read the end of the file: {}; if its last line is not \
             terminated, the first new line is joined to it",
            io_text(&error)
        ));
        None
    });
    before.map(|before| Ok(AppendedTo::new(before, is_at_end(file)?))).transpose()
}

/// The filter file and its fingerprint log.
struct SeenFiles {
    path: PathBuf,
    /// The fingerprint log of `--exact`, beside the filter.
    exact: PathBuf,
    metadata: String,
    /// Whether the files do not exist yet.
    fresh: bool,
}

impl SeenFiles {
    fn open(
        args: &SeenArgs,
        path: PathBuf,
        inputs: &[Source],
        settings: &mut Settings<'_>,
    ) -> Result<(SeenFilter, Self)> {
        let exact = beside(&path, "exact");
        let mut files = Self { path, exact, metadata: String::new(), fresh: false };
        let memory = match fs::metadata(&files.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                files.create(args, inputs, settings)
            }
            _ => files.open_existing(args, settings),
        };
        Ok((memory?, files))
    }

    /// Creates the filter in the first run.
    fn create(
        &mut self,
        args: &SeenArgs,
        inputs: &[Source],
        settings: &Settings<'_>,
    ) -> Result<SeenFilter> {
        let shown = self.path.display();
        if let Some(orphan) = self.open_log()?
            && !orphan.is_empty()
        {
            return Err(Failure::Message(format!(
                "{}: has {} fingerprints, but its filter {shown} is missing; restore the \
                 filter, or remove the log to start over",
                self.exact.display(),
                text::count(orphan.len()),
            )));
        }
        // Left by an interrupted first save, or by a run without lines.
        if !args.exact && !args.dry_run && self.exact.exists() {
            let failed = |e| Failure::Message(cannot_write(&self.exact.display().to_string(), &e));
            fs::remove_file(&self.exact).map_err(failed)?;
        }
        let period = if args.window.is_some() { "in the window" } else { "in all runs" };
        let keys = args.last.or(args.capacity).ok_or_else(|| {
            Failure::Message(format!(
                "{shown}: does not exist yet; specify with -n the number of lines {period}"
            ))
        })?;
        let filter = new_filter(args, keys, settings)?;
        let log = args.exact.then(FingerprintLog::new).transpose()?;
        self.metadata = filter_metadata(&settings.keys, inputs);
        if let Some(log) = &log {
            self.metadata = with_log_id(&self.metadata, log.pair_id());
        }
        self.fresh = true;
        Ok(SeenFilter { filter, log, clock: clock(args) })
    }

    /// Opens the files in a later run, which changes keys as the first one did.
    fn open_existing(
        &mut self,
        args: &SeenArgs,
        settings: &mut Settings<'_>,
    ) -> Result<SeenFilter> {
        filter_file::memory_beside(&self.path, max_seen_filter(settings)?)?;
        let (filter, metadata) = filter_file::read(&self.path, &args.secret)?;
        self.check_settings(args, &filter)?;
        key_transforms::adopt(&self.path, &metadata, settings)?;
        let log = self.open_log()?;
        let (shown, exact) = (self.path.display(), self.exact.display());
        let problem = match (recorded_log_id(&metadata), &log) {
            (Some(pair), Some(log)) if pair == log.pair_id() => None,
            (None, None) if !args.exact => None,
            (None, None) => Some(format!(
                "{shown}: was created without --exact, so it has no fingerprints; leave out \
                 --exact, or use another file"
            )),
            (Some(_), None) => Some(format!(
                "{exact}: is missing, and {shown} is not exact without it; restore it, or remove \
                 {shown} to start over"
            )),
            (_, Some(_)) => Some(format!(
                "{exact}: does not belong to {shown}; restore the right log, or move this one away"
            )),
        };
        self.metadata = metadata;
        let memory = SeenFilter { filter, log, clock: clock(args) };
        problem.map_or(Ok(memory), |problem| Err(Failure::Message(problem)))
    }

    /// Returns an error if a setting differs from that of the existing filter.
    fn check_settings(&self, args: &SeenArgs, filter: &AnyFilter) -> Result<()> {
        let (planned, target) = (filter.as_dyn().capacity(), filter.as_dyn().target_fpr());
        let (time, last) = match filter {
            AnyFilter::Windowed(filter) => match filter.window_ticks() {
                Some(time) => (Some(time), None),
                None => (None, Some(planned)),
            },
            _ => (None, None),
        };
        let same_rate = |rate: f64| (rate / target - 1.0).abs() < 1e-9;
        let different: Vec<_> = [
            ("-n", args.capacity.is_some_and(|keys| keys != planned || last.is_some())),
            ("-p", args.fpr.is_some_and(|rate| !same_rate(rate))),
            ("--window", args.window.is_some_and(|window| time != Some(window))),
            ("--last", args.last.is_some_and(|keys| last != Some(keys))),
        ]
        .into_iter()
        .filter_map(|(flag, differs)| differs.then_some(flag))
        .collect();
        let flags = match &different[..] {
            [] => return Ok(()),
            [one] => (*one).to_owned(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        };
        let period = match (time, last) {
            (Some(time), _) => format!(" in {}", text::duration(time)),
            (_, Some(_)) => " (the last ones)".to_owned(),
            _ if args.window.or(args.last).is_some() => " in all runs".to_owned(),
            _ => String::new(),
        };
        let plan = match planned {
            0 => "without a capacity".to_owned(),
            _ => format!("for {} lines{period} at {}", text::count(planned), text::rate(target)),
        };
        Err(Failure::Message(format!(
            "{}: was created {plan}; leave out {flags}, or use another file",
            self.path.display(),
        )))
    }

    /// Opens the fingerprint log, if it exists.
    fn open_log(&self) -> Result<Option<FingerprintLog>> {
        let shown = self.exact.display().to_string();
        match fs::metadata(&self.exact) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Ok(data) if !data.is_file() => {
                Err(Failure::Message(format!("{shown}: is not a regular file; move it away")))
            }
            _ => Ok(Some(FingerprintLog::open(self.open_exact()?, &shown)?)),
        }
    }

    fn open_exact(&self) -> Result<File> {
        open_whole(&self.exact).map_err(|error| {
            Failure::Message(format!("{}: cannot read: {}", self.exact.display(), io_text(&error)))
        })
    }

    /// Syncs the output, then saves the filter and the log.
    fn save(&mut self, memory: &mut SeenFilter) -> Result<()> {
        sync_output().map_err(Failure::of_stdout)?;
        if self.fresh
            && let Some(log) = &memory.log
        {
            // The log must exist before a filter that refers to it.
            replace(&self.exact, |file| io::Write::write_all(file, &log.empty_file()))?;
        }
        let mut output = Output::open(Some(&self.path), &[])?;
        filter_file::write(memory.filter.as_dyn(), &self.metadata, &mut output, &self.path)?;
        output.finish()?;
        self.fresh = false;
        if let Some(log) = &mut memory.log {
            let shown = self.exact.display().to_string();
            if log.appends() {
                let appended = File::options().write(true).open(&self.exact);
                let appended = appended.and_then(|file| log.append_to(&file));
                return appended.map_err(|error| Failure::Message(cannot_write(&shown, &error)));
            }
            replace(&self.exact, |file| log.write_to(file))?;
            log.reload(self.open_exact()?, &shown)?;
        }
        Ok(())
    }
}

/// Returns the empty filter of a first run.
fn new_filter(args: &SeenArgs, keys: u64, settings: &Settings<'_>) -> Result<AnyFilter> {
    let (rate, available) =
        (args.fpr.unwrap_or(FilterSpec::DEFAULT_FPR), max_seen_filter(settings)?);
    let fits = |needed: u64| match needed <= available {
        true => Ok(()),
        false => Err(Failure::Message(format!(
            "{} keys at {} take {}, more than the {} that -m {} leaves for a filter; raise -m, or \
             raise -p",
            text::count(keys),
            text::rate(rate),
            text::size(needed),
            text::size(available),
            text::size(settings.memory_limit),
        ))),
    };
    // A windowed filter takes a little more; it is checked again below.
    fits(BloomFilter::builder().capacity(keys).fpr(rate).plan()?.size_bytes())?;
    let hash = SeenFilter::new_hash(args.exact)?;
    if args.window.is_none() && args.last.is_none() {
        return Ok(BloomFilter::builder().capacity(keys).fpr(rate).hash(hash).build()?.into());
    }
    let builder = WindowedBloomFilter::builder().capacity(keys).fpr(rate).hash(hash);
    let builder = args.window.map_or(builder, |seconds| builder.window(seconds));
    let filter = AnyFilter::from(builder.build()?);
    fits(filter.as_dyn().size_bytes())?;
    Ok(filter)
}

fn clock(args: &SeenArgs) -> Box<dyn Fn() -> u64 + Send> {
    let clock = args.clock.clone();
    Box::new(move || clock.now())
}

/// Prints a note if the filter is overfull, which costs only time with a fingerprint log.
fn note_if_overfull(filter: &dyn Membership, inserted: u64, progress: &ProgressReporter) {
    let planned = filter.capacity();
    if inserted as f64 > planned as f64 * 1.01 {
        progress.print(&format!(
            "note: the filter was planned for {} lines and has {}: results stay exact, but lookups \
             are slower; start another file with a larger -n",
            text::count(planned),
            text::count(inserted),
        ));
    }
}

/// Replaces a file atomically; only the owner can read a new one.
fn replace<T>(path: &Path, write: impl FnOnce(&mut File) -> io::Result<T>) -> Result<T> {
    let shown = path.display().to_string();
    let written = AtomicFile::create(path).and_then(|mut file| {
        file.make_private()?;
        let done = write(file.file())?;
        Ok((file, done))
    });
    let (file, done) = written.map_err(|error| Failure::Message(cannot_write(&shown, &error)))?;
    finish_file(file, &shown)?;
    Ok(done)
}

/// Syncs standard output if it is a file, so that no line that the filter contains is lost.
fn sync_output() -> io::Result<()> {
    let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if out.metadata()?.is_file() { out.sync_data() } else { Ok(()) }
}
