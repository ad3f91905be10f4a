//! `check`: which lines a filter may hold.

use petal::{AnyFilter, Mapped, Membership};
use petal_lines::{Check, Exceptions, Settings, Source, check};

use super::{make, print, prints, refuse_stdin_twice, settings};
use crate::args::CheckArgs;
use crate::exit::{Outcome, Result};
use crate::filter_file;
use crate::output::Output;
use crate::progress::Teller;

pub(super) fn run(args: &CheckArgs) -> Result<Outcome> {
    let teller = Teller::new(&args.engine.talk, prints(args.count, args.output.as_deref()));
    let mut settings = settings(&args.engine, &teller);
    settings.memory = filter_file::fits(&args.filter, settings.memory)?;
    let filter = Asked::open(args)?;
    let inputs = args.inputs.sources();
    let list = args.allow.as_ref().map(Source::from_arg);
    let mut all = inputs.clone();
    all.push(Source::Path(args.filter.clone()));
    all.extend(list.clone());
    refuse_stdin_twice(&all)?;
    // Refused before any line is read.
    let mut output =
        (!args.count).then(|| Output::open(args.output.as_deref(), &all)).transpose()?;
    let allow = list.map(|list| exceptions(&settings, &list)).transpose()?;
    let asked = Check { invert: args.invert, allow: allow.as_ref() };
    let sink = output.as_mut().map(|output| output.file() as &mut (dyn std::io::Write + Send));
    let checked = check(&settings, filter.face(), &inputs, asked, sink);
    teller.finish();
    let found = checked?.found;
    match output {
        Some(output) => output.finish()?,
        None => print(&format!("{found}\n"))?,
    }
    Ok(if found > 0 { Outcome::Done } else { Outcome::NoneFound })
}

/// The filter that is asked.
enum Asked {
    /// Where it lies.
    Mapped(AnyFilter<Mapped>),
    /// In memory: what has grown too old since lines were added is to be forgotten.
    Read(AnyFilter),
}

impl Asked {
    fn open(args: &CheckArgs) -> Result<Self> {
        let filter = filter_file::open(&args.filter)?;
        if !matches!(&filter, AnyFilter::Windowed(filter) if filter.window_ticks().is_some()) {
            return Ok(Self::Mapped(filter));
        }
        let (mut filter, _) = filter_file::read(&args.filter)?;
        make::advance(&mut filter, &args.clock);
        Ok(Self::Read(filter))
    }

    fn face(&self) -> &dyn Membership {
        match self {
            Self::Mapped(filter) => filter.face(),
            Self::Read(filter) => filter.face(),
        }
    }
}

/// The list of exceptions. What the engine leaves for work is not needed to check: all of it may
/// be the list.
fn exceptions(settings: &Settings<'_>, list: &Source) -> Result<Exceptions> {
    Ok(Exceptions::read(settings, std::slice::from_ref(list))?)
}
