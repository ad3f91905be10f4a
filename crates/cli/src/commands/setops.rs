//! `common`, `diff`, `symdiff` and `dedup`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use petal_lines::{
    LeftOutCounts, Mode, Outputs, Report, SetJob, SetOp, Settings, Source, check_temp_dir,
    forget_work,
};
use serde_json::{Map, Value, json};

use super::{is_terminal, op_name, print, prints_lines, settings};
use crate::args::{
    ApproxArgs, CommonArgs, DedupArgs, EngineArgs, FieldArgs, KeepArg, ResultArgs, SetArgs,
    SetInputs, SymDiffArgs,
};
use crate::error::{Failure, Outcome, Result, cannot_write};
use crate::files::inputs::{compared, input, inputs};
use crate::files::output::{LineOutputs, Output, name_output};
use crate::files::same_file::refuse_same_output;
use crate::html::JobReport;
use crate::process::memory;
use crate::process::sampler::{Sample, Sampler};
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn common(args: &CommonArgs) -> Result<Outcome> {
    compare(args.at_least.map_or(SetOp::Common, SetOp::AtLeast), &args.set)
}

/// Returns an error if `--at-least` is more than the number of other inputs.
pub(super) fn check_at_least(number: u8, others: usize) -> Result<()> {
    if usize::from(number) <= others {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "--at-least: {number} is more than the number of other inputs, {others}; lower it, or name more \
         inputs"
    )))
}

pub(super) fn compare(op: SetOp, args: &SetArgs) -> Result<Outcome> {
    let SetInputs { first, others, lists } = &args.inputs;
    let (first, others) = compared(first.as_deref(), others, lists, args.engine.memory.bytes())?;
    if let SetOp::AtLeast(number) = op {
        check_at_least(number, others.len())?;
    }
    Job {
        op,
        first,
        others,
        list: lists.source(),
        dupes: None,
        approx: &args.approx,
        result: &args.result,
        fields: &args.fields,
        engine: &args.engine,
    }
    .run()
}

pub(super) fn symdiff(args: &SymDiffArgs) -> Result<Outcome> {
    let (result, fields, engine) = (&args.result, &args.fields, &args.engine);
    let approx = &ApproxArgs::default();
    let (first, others) = (vec![input(&args.first)?], vec![input(&args.second)?]);
    Job {
        op: SetOp::SymDiff,
        first,
        others,
        list: None,
        dupes: None,
        approx,
        result,
        fields,
        engine,
    }
    .run()
}

pub(super) fn dedup(args: &DedupArgs) -> Result<Outcome> {
    let (result, fields, engine) = (&args.result, &args.fields, &args.engine);
    let first = inputs(&args.inputs, engine.memory.bytes())?;
    let dupes = args.dupes_output.as_deref();
    let op = match () {
        () if args.only_duplicates => SetOp::Duplicates,
        () if args.only_unique => SetOp::Unique,
        () if args.keep == KeepArg::Last => SetOp::DedupLast,
        () => SetOp::Dedup,
    };
    let approx = &args.approx;
    let list = args.inputs.lists.source();
    Job { op, first, others: Vec::new(), list, dupes, approx, result, fields, engine }.run()
}

struct Job<'a> {
    op: SetOp,
    first: Vec<Source>,
    others: Vec<Source>,
    /// The list of the names of the inputs.
    list: Option<Source>,
    /// The output for the lines of the first input that are not in the result.
    dupes: Option<&'a Path>,
    approx: &'a ApproxArgs,
    result: &'a ResultArgs,
    fields: &'a FieldArgs,
    engine: &'a EngineArgs,
}

impl Job<'_> {
    fn run(self) -> Result<Outcome> {
        let Self { op, first, others, list, dupes, approx, result, fields, engine } = self;
        let progress = ProgressReporter::new(
            &engine.verbosity,
            prints_lines(result.count, result.output.as_deref()),
        );
        let all: Vec<_> = first.iter().chain(&others).cloned().chain(list).collect();
        let mut settings = settings(engine, fields, &all, &progress)?;
        settings.work_dir.clone_from(&result.work_dir);
        settings.keys_only = result.rows.keys_only;
        settings.binary_output = !is_terminal(result.output.as_deref())
            && !dupes.is_some_and(|path| is_terminal(Some(path)));
        if engine.temp_dir.is_some() {
            check_temp_dir(&settings.temp_dir)?;
        }
        settings.resume = result.resume;
        let mode = if approx.approx {
            Mode::Approx { capacity: approx.capacity, fpr: approx.fpr }
        } else {
            Mode::Exact { strategy: result.strategy.map(Into::into) }
        };
        let file = |path: &Path| (path != Path::new("-")).then(|| path.to_owned());
        let result_path = result.output.as_deref().filter(|_| !result.count).and_then(file);
        let bad_file = engine.keys.bad_file().map(PathBuf::as_path);
        let other_paths = [dupes, result.report.as_deref(), bad_file];
        let other_paths = other_paths.into_iter().flatten().map(file);
        let output_paths: Vec<_> = [result_path].into_iter().chain(other_paths).collect();
        refuse_same_output(&output_paths, result.count)?;
        let outputs = LineOutputs::new(result.compress, &settings);
        let kept_path = (!result.count).then_some(result.output.as_deref());
        let paths: Vec<_> = kept_path.into_iter().chain(dupes.map(Some)).collect();
        settings.memory_limit = outputs.memory_beside(&paths)?;
        let mut kept = kept_path.map(|path| outputs.open(path, &all)).transpose()?;
        let mut rest = dupes.map(|path| outputs.open(Some(path), &all)).transpose()?;
        let report_path = result.report.as_deref();
        let report_output = report_path.map(|path| Output::open(Some(path), &all)).transpose()?;

        let sinks = Outputs {
            kept: kept.as_mut().map(|output| output.writer()),
            rest: rest.as_mut().map(|output| output.writer()),
        };
        let sampler = result.report.is_some().then(|| Sampler::start(&settings.disk_usage));
        let report = SetJob { op, first, others, mode }.run(&settings, sinks);
        let ended = Instant::now();
        let samples = sampler.map(Sampler::finish).unwrap_or_default();
        progress.finish();
        if let Ok(report) = &report {
            progress.verbose(&format!("strategy: {}", report.strategy));
        }
        // With two outputs, a closed pipe leaves the other one incomplete, which is an error.
        let report = report.map_err(|error| match error.is_broken_pipe() && dupes.is_some() {
            true => Failure::Message(CLOSED_OUTPUT.to_owned()),
            false => {
                name_output(error, kept.as_ref().map(Output::name), rest.as_ref().map(Output::name))
            }
        })?;
        if result.count {
            print(&format!("{}\n", report.kept))?;
        }
        // The work directory is removed next, so the outputs must be on disk.
        let synced = result.work_dir.is_some();
        let report_output = report_output.map(|output| {
            let run = Run { op, inputs: &all, report: &report, settings: &settings, ended };
            run.write(&samples, output)
        });
        let outputs = [kept, rest, report_output.transpose()?].into_iter().flatten();
        outputs.into_iter().try_for_each(|output| output.finish_synced(synced))?;
        result.work_dir.as_deref().into_iter().for_each(forget_work);
        if approx.approx {
            print_wrong_lines(op, &report, &progress);
        }
        Ok(Outcome::Done)
    }
}

const CLOSED_OUTPUT: &str = "output: its reader closed the pipe, and the other output is incomplete; \
                             read all lines, or write to a file";

/// A finished job, for its report.
pub(super) struct Run<'a> {
    pub(super) op: SetOp,
    pub(super) inputs: &'a [Source],
    pub(super) report: &'a Report,
    pub(super) settings: &'a Settings<'a>,
    pub(super) ended: Instant,
}

impl Run<'_> {
    /// Writes the report to an output, which is returned.
    pub(super) fn write(&self, samples: &[Sample], mut output: Output) -> Result<Output> {
        let written = output.write_all(self.json(samples).as_bytes());
        written.map_err(|error| Failure::Message(cannot_write(output.name(), &error)))?;
        Ok(output)
    }

    /// Returns the report as JSON, with the inputs, the memory, the disk and the number of threads.
    fn json(&self, samples: &[Sample]) -> String {
        let Self { op, inputs, report, settings, .. } = self;
        let mut fields = Map::new();
        let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        add("version", JobReport::VERSION.into());
        add("command", op_name(*op).into());
        add("inputs", inputs.iter().map(ToString::to_string).collect::<Vec<_>>().into());
        if let Value::Object(report) = json!(report) {
            fields.extend(report);
        }
        let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        add("memory_limit_bytes", settings.memory_limit.into());
        add("memory_peak_bytes", memory::peak().into());
        add("disk_peak_bytes", settings.disk_usage.peak().into());
        add("jobs", settings.jobs.into());
        let LeftOutCounts { bad, nulls, empty } = settings.left_out.counts();
        add("left_out", json!({"bad": bad, "nulls": nulls, "empty": empty}));
        let text = format!("{:#}", Value::Object(fields));
        // The samples are on one line.
        let text = text.strip_suffix("\n}").unwrap_or(&text);
        format!("{text},\n  \"samples\": {}\n}}\n", json!(self.timed(samples)))
    }

    /// Returns samples as seconds after the start of the job, bytes of memory, and bytes on disk.
    fn timed(&self, samples: &[Sample]) -> Vec<(f64, u64, u64)> {
        let before_end = |sample: &Sample| self.ended.checked_duration_since(sample.at);
        // Samples are taken from before the start of the job to after its end. The last one before
        // the start is kept, since a short job may have no other.
        let seconds = |sample| Some(self.report.seconds - before_end(sample)?.as_secs_f64());
        let early = samples.iter().filter(|sample| seconds(sample).is_some_and(|at| at < 0.0));
        let late = samples.iter().skip(early.count().saturating_sub(1));
        let timed =
            late.filter_map(|sample| Some((seconds(sample)?.max(0.0), sample.memory, sample.disk)));
        timed.collect()
    }
}

/// Prints the estimated number of wrong lines of an approximate result.
fn print_wrong_lines(op: SetOp, report: &Report, progress: &ProgressReporter) {
    if report.wrong.is_nan() {
        progress.print("warning: the filter is overfull, and the number of lost lines is unknown; raise -n or -m");
        return;
    }
    let (kept, wrong) = (text::count(report.kept), text::amount(report.wrong));
    let error = text::amount(report.wrong_error);
    progress.print(&match op {
        SetOp::Common => {
            format!("note: {kept} lines; about {wrong} of them are wrong (standard error {error})")
        }
        _ => {
            format!("note: {kept} lines; about {wrong} lines were lost (standard error {error})")
        }
    });
    if report.repeats_possible {
        progress
            .print("note: printed lines no longer fit in memory, so some lines may be repeated");
    }
}
