//! `check`: prints the lines that may be in a filter.

use std::path::Path;
use std::sync::Arc;

use petal::{AnyFilter, Mapped};
use petal_lines::{
    AllowList, CheckCounts, CheckOptions, KeySpec, MIN_MEMORY, ObjectUrl, RemoteFile, RemoteFilter,
    Settings, Source, Spelling, check, recorded_spelling,
};

use super::{advance, assert_members, foreign, is_terminal, print, prints_lines, settings};
use crate::args::CheckArgs;
use crate::error::{Outcome, Result};
use crate::files::foreign_file::{self, AnyFile, Bytes, ForeignLines};
use crate::files::output::{Output, name_output};
use crate::files::{filter_file, key_fields, key_transforms, spelling};
use crate::terminal::progress::ProgressReporter;

pub(super) fn run(args: &CheckArgs) -> Result<Outcome> {
    let progress = ProgressReporter::new(
        &args.engine.verbosity,
        prints_lines(args.count, args.output.as_deref()),
    );
    let mut settings = settings(&args.engine, &args.fields, &progress);
    settings.keys_only = args.rows.keys_only;
    settings.binary_output = !is_terminal(args.output.as_deref());
    filter_file::check_memory_limit(settings.memory_limit)?;
    let inputs = args.inputs.sources();
    let swapped = foreign_file::explain_swapped("check", &args.filter, &inputs);
    let address = match Source::from_arg(&args.filter) {
        Source::Object(url) => Some(url),
        _ => None,
    };
    let left = match &address {
        Some(_) => settings.memory_limit,
        None => {
            filter_file::memory_beside(&args.filter, settings.memory_limit).map_err(&swapped)?
        }
    };
    let filter = QueriedFilter::open(args, address, settings.memory_limit).map_err(&swapped)?;
    let members_settings = filter.settings_of_members(&args.filter, &settings)?;
    filter.adopt_transforms(&args.filter, &mut settings)?;
    if args.sums {
        key_transforms::take_checksums(filter.spelling(), &mut settings);
    }
    settings.memory_limit = filter.memory_beside(settings.memory_limit).unwrap_or(left);
    let allow_list = args.allow.as_ref().map(Source::from_arg);
    let mut all = inputs.clone();
    all.push(Source::Path(args.filter.clone()));
    all.extend(allow_list.clone());
    let members = args.assert_members.file.as_ref().map(Source::from_arg);
    all.extend(members.clone());
    Source::check_streams(&all)?;
    // The output is checked before any line is read.
    let mut output =
        (!args.count).then(|| Output::open(args.output.as_deref(), &all)).transpose()?;
    let allow = allow_list.map(|list| read_allow_list(&settings, &list)).transpose()?;
    let options = CheckOptions { invert: args.invert, allow: allow.as_ref() };
    let sink = output.as_mut().map(Output::writer);
    if let Some(members) = &members {
        filter.assert_members(&members_settings, &args.filter, members)?;
    }
    let checked = filter.check(&settings, &inputs, options, sink);
    progress.finish();
    let is_found = match &checked {
        Ok(CheckCounts { lines, found }) if args.invert => found < lines,
        Ok(CheckCounts { found, .. }) => *found > 0,
        Err(_) => true,
    };
    spelling::warn_if_different(&settings, filter.spelling(), is_found, &args.filter, &progress);
    let failed = |error| name_output(error, output.as_ref().map(Output::name), None);
    let CheckCounts { found, .. } = checked.map_err(failed)?;
    if let Some(metadata) = filter.metadata() {
        key_fields::note_if_not_found(&args.filter, metadata, &settings.keys, is_found, &progress);
    }
    match output {
        Some(output) => output.finish()?,
        None => print(&format!("{found}\n"))?,
    }
    Ok(if found > 0 { Outcome::Done } else { Outcome::NoneFound })
}

/// The filter to query.
enum QueriedFilter {
    /// A mapped filter.
    Mapped(AnyFilter<Mapped>),
    /// A windowed filter in memory, because advancing its clock changes it; and its metadata.
    Read(AnyFilter, String),
    /// A filter of another program.
    Foreign(ForeignLines<Bytes>),
    /// A filter at an address.
    Remote(Box<RemoteFilter>),
}

impl QueriedFilter {
    fn open(args: &CheckArgs, address: Option<ObjectUrl>, memory: u64) -> Result<Self> {
        if let Some(url) = address {
            let file = Arc::new(RemoteFile::open(&url)?);
            let filter = filter_file::with_secret(&args.filter, &args.secret, |secret| {
                RemoteFilter::open(&file, secret)
            });
            return Ok(Self::Remote(Box::new(filter?)));
        }
        let filter =
            match foreign_file::open(&args.filter, args.foreign.format, memory, &args.secret)? {
                AnyFile::Foreign(filter) => {
                    return filter.with_key_type(args.foreign.key_type).map(Self::Foreign);
                }
                AnyFile::Native(filter) => filter,
            };
        foreign::refuse_key_type(&args.filter, args.foreign)?;
        if !matches!(&filter, AnyFilter::Windowed(filter) if filter.window_ticks().is_some()) {
            return Ok(Self::Mapped(filter));
        }
        let (mut filter, metadata) = filter_file::read(&args.filter, &args.secret)?;
        advance(&mut filter, &args.clock);
        Ok(Self::Read(filter, metadata))
    }

    /// Makes a job look up keys as the filter records it; filters of other programs do not.
    fn adopt_transforms(&self, path: &Path, settings: &mut Settings<'_>) -> Result<()> {
        self.metadata().map_or(Ok(()), |metadata| {
            key_transforms::adopt_for_queries(path, metadata, self.spelling(), settings)
        })
    }

    /// Returns settings with which lines are changed as those that the filter was built from.
    fn settings_of_members<'a>(
        &self,
        path: &Path,
        settings: &Settings<'a>,
    ) -> Result<Settings<'a>> {
        let mut members = settings.clone();
        if let Some(metadata) = self.metadata()
            && let Some(transforms) = key_transforms::of_filter(path, metadata)?
        {
            let keys = KeySpec { transforms, ..KeySpec::clone(&settings.keys) };
            members.keys = Arc::new(keys);
        }
        Ok(members)
    }

    /// Returns the metadata; `None` for filters of other programs.
    fn metadata(&self) -> Option<&str> {
        match self {
            Self::Mapped(filter) => Some(filter.metadata()),
            Self::Read(_, metadata) => Some(metadata),
            Self::Remote(filter) => Some(filter.metadata()),
            Self::Foreign(_) => None,
        }
    }

    /// Returns how the keys of the filter are spelled, if it records that.
    fn spelling(&self) -> Option<Spelling> {
        let inserted = match self {
            Self::Mapped(filter) => filter.as_dyn().inserted(),
            Self::Read(filter, _) => filter.as_dyn().inserted(),
            Self::Remote(filter) => filter.inserted(),
            Self::Foreign(filter) => return filter.spelling(),
        };
        recorded_spelling(self.metadata()?, inserted)
    }

    /// Returns the memory that remains beside another program's filter; a compressed one is larger
    /// than its file.
    fn memory_beside(&self, memory: u64) -> Option<u64> {
        match self {
            Self::Mapped(_) | Self::Read(..) | Self::Remote(_) => None,
            Self::Foreign(filter) => Some(memory.saturating_sub(filter.memory()).max(MIN_MEMORY)),
        }
    }

    fn check(
        &self,
        settings: &Settings<'_>,
        inputs: &[Source],
        options: CheckOptions<'_>,
        sink: Option<&mut (dyn std::io::Write + Send)>,
    ) -> petal_lines::Result<CheckCounts> {
        match self {
            Self::Mapped(filter) => check(settings, filter.as_dyn(), inputs, options, sink),
            Self::Read(filter, _) => check(settings, filter.as_dyn(), inputs, options, sink),
            Self::Foreign(filter) => check(settings, filter, inputs, options, sink),
            Self::Remote(filter) => check(settings, &**filter, inputs, options, sink),
        }
    }

    /// Returns an error unless the filter contains all lines of `members`.
    fn assert_members(&self, settings: &Settings<'_>, path: &Path, members: &Source) -> Result<()> {
        match self {
            Self::Mapped(filter) => {
                assert_members::in_native(settings, filter.as_dyn(), path, members)
            }
            Self::Read(filter, _) => {
                assert_members::in_native(settings, filter.as_dyn(), path, members)
            }
            Self::Foreign(filter) => assert_members::in_foreign(settings, filter, path, members),
            Self::Remote(filter) => assert_members::in_native(settings, &**filter, path, members),
        }
    }
}

/// Reads the allow list, which may take all the memory that the settings leave.
fn read_allow_list(settings: &Settings<'_>, list: &Source) -> Result<AllowList> {
    let keys = Arc::new(settings.keys.of_listed_keys());
    let settings = Settings { keys, ..settings.clone() };
    Ok(AllowList::read(&settings, std::slice::from_ref(list))?)
}
