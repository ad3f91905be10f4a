//! `check`: which lines a filter may hold.

use std::path::Path;

use petal::{AnyFilter, Mapped};
use petal_lines::{Check, Checked, Exceptions, LEAST_MEMORY, Settings, Source, check};

use super::{advance, foreign, known, print, prints, refuse_stdin_twice, settings};
use crate::args::CheckArgs;
use crate::exit::{Outcome, Result};
use crate::filter_file;
use crate::foreign_file::{self, AnyFile, Bytes, ForeignFilter};
use crate::output::{Output, name_output};
use crate::progress::Teller;

pub(super) fn run(args: &CheckArgs) -> Result<Outcome> {
    let teller = Teller::new(&args.engine.talk, prints(args.count, args.output.as_deref()));
    let mut settings = settings(&args.engine, &teller);
    filter_file::is_enough(settings.memory)?;
    let left = filter_file::fits(&args.filter, settings.memory)?;
    let filter = Asked::open(args, settings.memory)?;
    settings.memory = filter.leaves(settings.memory).unwrap_or(left);
    let inputs = args.inputs.sources();
    let list = args.allow.as_ref().map(Source::from_arg);
    let mut all = inputs.clone();
    all.push(Source::Path(args.filter.clone()));
    all.extend(list.clone());
    let known = args.known.probe_known.as_ref().map(Source::from_arg);
    all.extend(known.clone());
    refuse_stdin_twice(&all)?;
    // Refused before any line is read.
    let mut output =
        (!args.count).then(|| Output::open(args.output.as_deref(), &all)).transpose()?;
    let allow = list.map(|list| exceptions(&settings, &list)).transpose()?;
    let asked = Check { invert: args.invert, allow: allow.as_ref() };
    let sink = output.as_mut().map(|output| output.file() as &mut (dyn std::io::Write + Send));
    if let Some(known) = &known {
        filter.probe(&settings, &args.filter, known)?;
    }
    let checked = filter.check(&settings, &inputs, asked, sink);
    teller.finish();
    let named = |error| name_output(error, output.as_ref().map(Output::name), None);
    let found = checked.map_err(named)?.found;
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
    /// Another program's.
    Foreign(ForeignFilter<Bytes>),
}

impl Asked {
    fn open(args: &CheckArgs, memory: u64) -> Result<Self> {
        let filter = match foreign_file::open(&args.filter, args.foreign.written, memory)? {
            AnyFile::Foreign(filter) => {
                return filter.with_keys(args.foreign.form).map(Self::Foreign);
            }
            AnyFile::Native(filter) => filter,
        };
        foreign::refuse_form(&args.filter, args.foreign)?;
        if !matches!(&filter, AnyFilter::Windowed(filter) if filter.window_ticks().is_some()) {
            return Ok(Self::Mapped(filter));
        }
        let (mut filter, _) = filter_file::read(&args.filter)?;
        advance(&mut filter, &args.clock);
        Ok(Self::Read(filter))
    }

    /// What another program's filter leaves of the memory: a packed one is larger than its file.
    fn leaves(&self, memory: u64) -> Option<u64> {
        match self {
            Self::Mapped(_) | Self::Read(_) => None,
            Self::Foreign(filter) => Some(memory.saturating_sub(filter.memory()).max(LEAST_MEMORY)),
        }
    }

    fn check(
        &self,
        settings: &Settings<'_>,
        inputs: &[Source],
        asked: Check<'_>,
        sink: Option<&mut (dyn std::io::Write + Send)>,
    ) -> petal_lines::Result<Checked> {
        match self {
            Self::Mapped(filter) => check(settings, filter.face(), inputs, asked, sink),
            Self::Read(filter) => check(settings, filter.face(), inputs, asked, sink),
            Self::Foreign(filter) => check(settings, filter, inputs, asked, sink),
        }
    }

    /// Goes on only if every line of a list is held.
    fn probe(&self, settings: &Settings<'_>, path: &Path, known: &Source) -> Result<()> {
        match self {
            Self::Mapped(filter) => known::of_native(settings, filter.face(), path, known),
            Self::Read(filter) => known::of_native(settings, filter.face(), path, known),
            Self::Foreign(filter) => known::of_foreign(settings, filter, path, known),
        }
    }
}

/// The list of exceptions. What the engine leaves for work is not needed to check: all of it may
/// be the list.
fn exceptions(settings: &Settings<'_>, list: &Source) -> Result<Exceptions> {
    Ok(Exceptions::read(settings, std::slice::from_ref(list))?)
}
