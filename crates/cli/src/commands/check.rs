//! `check`: prints the lines that may be in a filter.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use petal::{AnyFilter, Mapped};
use petal_lines::{
    AllowList, CheckCounts, CheckOptions, FilterGroup, KeySpec, MIN_MEMORY, RemoteFile,
    RemoteFilter, Settings, Source, Spelling, Transform, check, recorded_spelling,
};

use super::{advance, ask, assert_members, foreign, is_terminal, print, prints_lines, settings};
use crate::args::CheckArgs;
use crate::error::{Outcome, Result};
use crate::files::foreign_file::{self, AnyFile, Bytes, ForeignLines};
use crate::files::inputs::{inputs, key_list};
use crate::files::output::{LineOutputs, Output, name_output};
use crate::files::{filter_file, key_fields, key_transforms, spelling};
use crate::terminal::progress::ProgressReporter;

pub(super) fn run(args: &CheckArgs) -> Result<Outcome> {
    let progress = ProgressReporter::new(
        &args.engine.verbosity,
        prints_lines(args.count, args.output.as_deref()),
    );
    let inputs = inputs(&args.inputs(), args.engine.memory.bytes())?;
    let members = key_list(args.assert_members.file.as_ref())?;
    let allow_list = key_list(args.allow.as_ref())?;
    let mut all = inputs.clone();
    all.extend(members.iter().chain(&allow_list).cloned());
    let mut settings = settings(&args.engine, &args.fields, &all, &progress)?;
    settings.keys_only = args.rows.keys_only;
    settings.binary_output = !is_terminal(args.output.as_deref());
    let outputs = LineOutputs::new(args.compress, &settings);
    let output_path = (!args.count).then_some(args.output.as_deref());
    settings.memory_limit = outputs.memory_beside(output_path.as_slice())?;
    filter_file::check_memory_limit(settings.memory_limit)?;
    let paths = args.filters();
    let mut filters = Vec::with_capacity(paths.len());
    let mut left = settings.memory_limit;
    for path in &paths {
        let swapped = foreign_file::explain_swapped("check", path, &inputs);
        let filter = QueriedFilter::open(args, path, &settings, &mut left).map_err(swapped)?;
        filters.push(filter);
    }
    let members_settings = filters.first().map(|filter| filter.settings_of_members(&settings));
    let members_settings = members_settings.transpose()?;
    let transforms = adopt_transforms(&filters, args.sums, &mut settings)?;
    settings.memory_limit = left;
    let common = settings.keys.transforms.clone();
    let of_queries = transforms.iter().map(|own| if common.is_empty() { own } else { &common });
    if args.sums {
        let all = filters.iter().zip(of_queries.clone());
        let all: Vec<_> =
            all.map(|(filter, own)| (&*filter.name, filter.spelling(), &own[..])).collect();
        key_transforms::take_checksums(&all, &mut settings)?;
    }
    let assert_members = || match (&members, &members_settings, &filters[..]) {
        (Some(members), Some(settings), [filter]) => filter.assert_members(settings, members),
        _ => Ok(()),
    };
    let digests = of_queries.clone().flatten().filter(|transform| transform.is_digest());
    let digests: Vec<_> = digests.collect();
    if ask::are_typed(&inputs) && !digests.is_empty() {
        ask::refuse_options(args, &inputs, &inputs[0].keys(&settings.keys).fields)?;
        assert_members()?;
        return ask::run(&group(&filters, of_queries.cloned()), &digests);
    }
    all.extend(paths.iter().map(|path| Source::from_arg(*path)));
    all.extend(args.inputs().lists.source());
    Source::check_streams(&all)?;
    // The output is checked before any line is read.
    let mut output = output_path.map(|path| outputs.open(path, &all)).transpose()?;
    let allow = allow_list.map(|list| read_allow_list(&settings, &list)).transpose()?;
    let names: Vec<_> = filters.iter().map(|filter| filter.name.display().to_string()).collect();
    let names = args.which.then_some(&names[..]);
    let options = CheckOptions { invert: args.invert, allow: allow.as_ref(), names };
    let sink = output.as_mut().map(Output::writer);
    assert_members()?;
    let checked = match &filters[..] {
        [filter] => filter.check(&settings, &inputs, options, sink),
        _ => check(&settings, &group(&filters, transforms), &inputs, options, sink),
    };
    progress.finish();
    let is_found = match &checked {
        Ok(CheckCounts { lines, found }) if args.invert => found < lines,
        Ok(CheckCounts { found, .. }) => *found > 0,
        Err(_) => true,
    };
    for filter in &filters {
        let recorded = filter.spelling();
        spelling::warn_if_different(&settings, recorded, is_found, &filter.name, &progress);
    }
    let has_hashes = |keys: Spelling| keys.hex_shape().is_some_and(|shape| shape.length.is_some());
    for filter in filters.iter().filter(|_| args.sums && !is_found) {
        if !filter.spelling().is_none_or(has_hashes) {
            progress.print(&format!(
                "warning: the keys of {} are not hashes of one length; if it was built from lines with more than a \
                 hash, build it with --column or --counts",
                filter.name.display()
            ));
        }
    }
    let failed = |error| name_output(error, output.as_ref().map(Output::name), None);
    let CheckCounts { found, .. } = checked.map_err(failed)?;
    for filter in &filters {
        if let Some(metadata) = filter.metadata() {
            let keys = (&*settings.keys, &inputs[..]);
            key_fields::note_if_not_found(&filter.name, metadata, keys, is_found, &progress);
        }
    }
    match output {
        Some(output) => output.finish()?,
        None => print(&format!("{found}\n"))?,
    }
    Ok(if found > 0 { Outcome::Done } else { Outcome::NoneFound })
}

/// Returns the filters, which change keys by these transforms.
fn group(
    filters: &[QueriedFilter],
    transforms: impl IntoIterator<Item = Vec<Transform>>,
) -> FilterGroup<'_> {
    let mut group = FilterGroup::default();
    for (filter, transforms) in filters.iter().zip(transforms) {
        filter.join(&mut group, transforms);
    }
    group
}

/// Makes a job look up keys as the filters record it. If they differ, the job changes no keys; returns the
/// transforms that each filter makes itself. `are_hashes`: keys are digests, which a filter would hash.
fn adopt_transforms(
    filters: &[QueriedFilter],
    are_hashes: bool,
    settings: &mut Settings<'_>,
) -> Result<Vec<Vec<Transform>>> {
    let mut each = Vec::with_capacity(filters.len());
    for filter in filters {
        let mut adopted = settings.clone();
        filter.adopt_transforms(are_hashes, &mut adopted)?;
        each.push(adopted.keys.transforms.clone());
    }
    let common = match each.first() {
        Some(first) if each.iter().all(|transforms| transforms == first) => first.clone(),
        _ => Vec::new(),
    };
    if !common.is_empty() {
        each.fill(Vec::new());
    }
    settings.keys = Arc::new(KeySpec { transforms: common, ..KeySpec::clone(&settings.keys) });
    Ok(each)
}

/// A filter to query.
struct QueriedFilter {
    /// The path, or the masked address.
    name: PathBuf,
    kind: Kind,
}

enum Kind {
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
    /// Opens a filter and subtracts its memory from `left`.
    fn open(
        args: &CheckArgs,
        path: &Path,
        settings: &Settings<'_>,
        left: &mut u64,
    ) -> Result<Self> {
        let Source::Object(url) = Source::from_arg(path) else {
            return Ok(Self { name: path.to_path_buf(), kind: Kind::open(args, path, left)? });
        };
        let name = PathBuf::from(url.to_string());
        foreign::refuse_format(&name, args.foreign)?;
        foreign::refuse_key_type(&name, args.foreign)?;
        let settings = Settings { memory_limit: *left, ..settings.clone() };
        let file = Arc::new(RemoteFile::open(&url, &settings)?);
        *left = left.saturating_sub(file.memory()).max(MIN_MEMORY);
        let filter = filter_file::with_secret(&name, &args.secret, |secret| {
            RemoteFilter::open(&file, secret)
        });
        Ok(Self { name, kind: Kind::Remote(Box::new(filter?)) })
    }

    /// Makes a job look up keys as the filter records it; filters of other programs do not.
    fn adopt_transforms(&self, are_hashes: bool, settings: &mut Settings<'_>) -> Result<()> {
        let Some(metadata) = self.metadata() else { return Ok(()) };
        if are_hashes {
            key_transforms::take_hashes(&self.name, metadata, settings)?;
        }
        key_transforms::adopt_for_queries(&self.name, metadata, self.spelling(), settings)
    }

    /// Returns settings with which lines are changed as those that the filter was built from.
    fn settings_of_members<'a>(&self, settings: &Settings<'a>) -> Result<Settings<'a>> {
        let mut members = settings.clone();
        if let Some(metadata) = self.metadata()
            && key_transforms::recorded(&self.name, metadata)?.of_keys().is_some()
        {
            let keys = KeySpec { transforms: Vec::new(), ..KeySpec::clone(&settings.keys) };
            members.keys = Arc::new(keys);
            key_transforms::adopt(&self.name, metadata, &mut members)?;
        }
        Ok(members)
    }

    /// Returns the metadata; `None` for filters of other programs.
    fn metadata(&self) -> Option<&str> {
        match &self.kind {
            Kind::Mapped(filter) => Some(filter.metadata()),
            Kind::Read(_, metadata) => Some(metadata),
            Kind::Remote(filter) => Some(filter.metadata()),
            Kind::Foreign(_) => None,
        }
    }

    /// Returns how the keys of the filter are spelled, if it records that.
    fn spelling(&self) -> Option<Spelling> {
        let inserted = match &self.kind {
            Kind::Mapped(filter) => filter.as_dyn().inserted(),
            Kind::Read(filter, _) => filter.as_dyn().inserted(),
            Kind::Remote(filter) => filter.inserted(),
            Kind::Foreign(filter) => return filter.spelling(),
        };
        recorded_spelling(self.metadata()?, inserted)
    }

    fn check(
        &self,
        settings: &Settings<'_>,
        inputs: &[Source],
        options: CheckOptions<'_>,
        sink: Option<&mut (dyn std::io::Write + Send)>,
    ) -> petal_lines::Result<CheckCounts> {
        match &self.kind {
            Kind::Mapped(filter) => check(settings, filter.as_dyn(), inputs, options, sink),
            Kind::Read(filter, _) => check(settings, filter.as_dyn(), inputs, options, sink),
            Kind::Foreign(filter) => check(settings, filter, inputs, options, sink),
            Kind::Remote(filter) => check(settings, &**filter, inputs, options, sink),
        }
    }

    /// Adds the filter to a group.
    fn join<'a>(&'a self, group: &mut FilterGroup<'a>, transforms: Vec<Transform>) {
        match &self.kind {
            Kind::Mapped(filter) => group.push(filter.as_dyn(), transforms),
            Kind::Read(filter, _) => group.push(filter.as_dyn(), transforms),
            Kind::Foreign(filter) => group.push(filter, transforms),
            Kind::Remote(filter) => group.push(&**filter, transforms),
        }
    }

    /// Returns an error unless the filter contains all lines of `members`.
    fn assert_members(&self, settings: &Settings<'_>, members: &Source) -> Result<()> {
        let path = &self.name;
        match &self.kind {
            Kind::Mapped(filter) => {
                assert_members::in_native(settings, filter.as_dyn(), path, members)
            }
            Kind::Read(filter, _) => {
                assert_members::in_native(settings, filter.as_dyn(), path, members)
            }
            Kind::Foreign(filter) => assert_members::in_foreign(settings, filter, path, members),
            Kind::Remote(filter) => assert_members::in_native(settings, &**filter, path, members),
        }
    }
}

impl Kind {
    fn open(args: &CheckArgs, path: &Path, left: &mut u64) -> Result<Self> {
        let beside = filter_file::memory_beside(path, *left)?;
        let filter = match foreign_file::open(path, args.foreign.format, *left, &args.secret)? {
            AnyFile::Foreign(filter) => {
                let filter = filter.with_key_type(args.foreign.key_type)?;
                // A compressed one is larger than its file.
                *left = left.saturating_sub(filter.memory()).max(MIN_MEMORY);
                return Ok(Self::Foreign(filter));
            }
            AnyFile::Native(filter) => filter,
        };
        *left = beside;
        foreign::refuse_key_type(path, args.foreign)?;
        if !matches!(&filter, AnyFilter::Windowed(filter) if filter.window_ticks().is_some()) {
            return Ok(Self::Mapped(filter));
        }
        let (mut filter, metadata) = filter_file::read(path, &args.secret)?;
        advance(&mut filter, &args.clock);
        Ok(Self::Read(filter, metadata))
    }
}

fn read_allow_list(settings: &Settings<'_>, list: &Source) -> Result<AllowList> {
    let keys = Arc::new(settings.keys.of_listed_keys());
    let settings = Settings { keys, ..settings.clone() };
    Ok(AllowList::read(&settings, std::slice::from_ref(list))?)
}
