//! `report`: shows the report of a job, as a table or as a page.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;

use petal_lines::Source;

use super::{print, write_page};
use crate::args::ReportArgs;
use crate::error::{Failure, Outcome, Result, io_text};
use crate::html::{JobReport, job};

pub(super) fn run(args: &ReportArgs) -> Result<Outcome> {
    let source = args.source();
    let failed = |problem: String| Failure::Message(format!("{source}: {problem}"));
    let read = |file: io::Result<File>| {
        let file = file.map_err(|error| format!("cannot read: {}", io_text(&error)));
        file.and_then(JobReport::read)
    };
    let report = match &source {
        // Not `io::Stdin`, which reads nothing from a closed input.
        Source::Stdin => read(io::stdin().as_fd().try_clone_to_owned().map(File::from)),
        Source::Path(path) => read(File::open(path)),
        Source::Object(_) | Source::Counted(_) | Source::Keyed(..) => {
            Err("cannot read: is no file; copy the report to a file".to_owned())
        }
    };
    let report = report.map_err(failed)?;
    match &args.html {
        Some(path) => write_page(path, &[source], &job::page(&report)?)?,
        None => print(&job::table(&report))?,
    }
    Ok(Outcome::Done)
}
