//! `dedup --unit`: removes repeated parts of documents.

use std::path::{Path, PathBuf};
use std::time::Instant;

use petal_lines::{DocumentJob, Fields, Mode, PartCounts, PartUnit, Report, SetOp, check_temp_dir};

use super::setops::Run;
use super::settings;
use crate::args::{DedupArgs, DocumentArgs};
use crate::error::{Outcome, Result};
use crate::files::inputs::inputs;
use crate::files::output::{LineOutputs, Output};
use crate::files::output_dir::OutputDir;
use crate::process::sampler::Sampler;
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn run(args: &DedupArgs, unit: PartUnit) -> Result<Outcome> {
    let DedupArgs { result, engine, approx, .. } = args;
    let DocumentArgs { min_parts, drop_if, .. } = args.documents;
    let progress = ProgressReporter::new(&engine.verbosity, false);
    let inputs = inputs(&args.inputs, engine.memory.bytes())?;
    let list = args.inputs.lists.source();
    let all: Vec<_> = inputs.iter().cloned().chain(list.clone()).collect();
    let mut settings = settings(engine, &args.fields, &all, &progress)?;
    if engine.temp_dir.is_some() {
        check_temp_dir(&settings.temp_dir)?;
    }
    let mode = match approx.approx {
        true => Mode::Approx { capacity: approx.capacity, fpr: approx.fpr },
        false => Mode::Exact { strategy: None },
    };
    let job = DocumentJob { inputs, unit, min_parts: min_parts.unwrap_or(0), drop_if, mode };
    job.check(&settings)?;
    let outputs = LineOutputs::new(result.compress, &settings);
    let dir = result.output.as_deref().unwrap_or(Path::new("."));
    let report_path = result.report.as_deref();
    let bad_file = engine.keys.bad_file().map(PathBuf::as_path);
    let others: Vec<_> = report_path.into_iter().chain(bad_file).collect();
    let mut documents = OutputDir::new(dir, &job.inputs, list, &others, &outputs)?;
    settings.memory_limit = documents.memory_beside()?;
    let report_output = report_path.map(|path| Output::open(Some(path), &all)).transpose()?;
    let sampler = report_path.map(|_| Sampler::start(&settings.disk_usage));
    let report = job.run(&settings, &mut documents);
    let ended = Instant::now();
    let samples = sampler.map(Sampler::finish).unwrap_or_default();
    progress.finish();
    let report = match report {
        Ok(report) => report,
        Err(error) => return Err(documents.failure(error)),
    };
    documents.finish()?;
    progress.verbose(&format!("strategy: {}", report.strategy));
    if let Some(output) = report_output {
        let run = Run {
            op: SetOp::Dedup,
            inputs: &job.inputs,
            report: &report,
            settings: &settings,
            ended,
        };
        run.write(&samples, output)?.finish()?;
    }
    progress.print(&summary(&report, unit, settings.keys.fields == Fields::Line));
    if approx.approx {
        progress.print(&lost(&report, unit));
    }
    Ok(Outcome::Done)
}

/// Returns what was read and removed. `lines`: the documents are lines.
fn summary(report: &Report, unit: PartUnit, lines: bool) -> String {
    let PartCounts { read, repeated, .. } = report.parts.unwrap_or_default();
    let parts = format!("{}, {} repeated", counted(read, name(unit)), text::count(repeated));
    if lines {
        return format!("note: {parts}");
    }
    let dropped = text::count(report.first_lines - report.kept);
    format!("note: {parts}; {}, {dropped} dropped", counted(report.first_lines, "document"))
}

/// Returns how many parts an approximate job took for repeated ones.
fn lost(report: &Report, unit: PartUnit) -> String {
    let name = name(unit);
    if report.wrong.is_nan() {
        return format!(
            "warning: the filter is overfull, and the number of lost {name}s is unknown; raise -n or -m"
        );
    }
    let (wrong, error) = (text::amount(report.wrong), text::amount(report.wrong_error));
    format!("note: about {wrong} {name}s were lost (standard error {error})")
}

fn counted(count: u64, name: &str) -> String {
    format!("{} {name}{}", text::count(count), if count == 1 { "" } else { "s" })
}

fn name(unit: PartUnit) -> &'static str {
    match unit {
        PartUnit::Paragraph => "paragraph",
        PartUnit::Line => "line",
        PartUnit::Sentence => "sentence",
    }
}
