//! `report`: shows the report of a job as a page.

use std::fs::File;
use std::io;

use petal_lines::Source;

use super::write_page;
use crate::args::ReportArgs;
use crate::error::{Failure, Outcome, Result, io_text};
use crate::html::{JobReport, job};

pub(super) fn run(args: &ReportArgs) -> Result<Outcome> {
    let source = args.source();
    let failed = |problem: String| Failure::Message(format!("{source}: {problem}"));
    let report = match &source {
        Source::Stdin => JobReport::read(io::stdin().lock()),
        Source::Path(path) => {
            let file = File::open(path);
            let file = file.map_err(|error| format!("cannot read: {}", io_text(&error)));
            file.and_then(JobReport::read)
        }
        Source::Object(_) => Err("cannot read: is no file; copy the report to a file".to_owned()),
    };
    let page = job::page(&report.map_err(failed)?)?;
    write_page(&args.html, &[source], &page)?;
    Ok(Outcome::Done)
}
