//! `check`: which lines a filter may hold.

use petal_lines::{Source, check};

use super::{print, prints, settings};
use crate::args::CheckArgs;
use crate::exit::{Outcome, Result};
use crate::filter_file;
use crate::output::Output;
use crate::progress::Teller;

pub(super) fn run(args: &CheckArgs) -> Result<Outcome> {
    let teller = Teller::new(&args.engine.talk, prints(args.count, args.output.as_deref()));
    let mut settings = settings(&args.engine, &teller);
    settings.memory = filter_file::fits(&args.filter, settings.memory)?;
    let filter = filter_file::open(&args.filter)?;
    let inputs = args.inputs.sources();
    let mut all = inputs.clone();
    all.push(Source::Path(args.filter.clone()));
    let (checked, output) = if args.count {
        (check(&settings, filter.face(), &inputs, args.invert, None), None)
    } else {
        let mut output = Output::open(args.output.as_deref(), &all)?;
        let sink = Some(output.file() as &mut (dyn std::io::Write + Send));
        (check(&settings, filter.face(), &inputs, args.invert, sink), Some(output))
    };
    teller.finish();
    let checked = checked?;
    let found = if args.invert { checked.lines - checked.hits } else { checked.hits };
    match output {
        Some(output) => output.finish()?,
        None => print(&format!("{found}\n"))?,
    }
    Ok(if found > 0 { Outcome::Done } else { Outcome::NoneFound })
}
