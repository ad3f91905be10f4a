//! `explain`: shows how a filter answers a query of one key.

use std::os::unix::ffi::OsStrExt as _;

use petal::{AnyFilter, ExplainedPart, Explanation, FilterType, Mapped, Membership};
use petal_lines::{
    MemoryLimit, Source, Transform, recorded_spelling, transform_key, transforms_text,
};
use serde_json::{Value, json};

use super::print;
use crate::args::{ExplainArgs, FormatArg};
use crate::error::{Failure, Outcome, Result};
use crate::files::foreign_file::{self, AnyFile};
use crate::files::{filter_file, key_transforms, spelling};
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn run(args: &ExplainArgs) -> Result<Outcome> {
    let filter = open(args)?;
    let spelling = recorded_spelling(filter.metadata(), filter.as_dyn().inserted());
    let changes = key_transforms::recorded(&args.filter, filter.metadata())?;
    let transforms = changes.of_queries(spelling, &[]).unwrap_or_default();
    let changed = transform_key(args.key.as_bytes(), &transforms).map_err(|problem| {
        Failure::Message(format!("{}: the key: {problem}; name such a key", args.filter.display()))
    })?;
    let key = &changed[..];
    let spec = filter.as_dyn().hash_spec();
    let hash = spec.hash(key);
    let explanation = match &filter {
        AnyFilter::Windowed(filter) => filter.explain_mixed_hash_at(args.clock.now(), hash),
        _ => filter.as_dyn().explain_mixed_hash(hash),
    };
    if let Some(recorded) = recorded_spelling(filter.metadata(), filter.as_dyn().inserted()) {
        let progress = ProgressReporter::silent(false);
        let found = explanation.contains;
        spelling::warn_if_key_differs(key, recorded, found, &args.filter, &progress);
    }
    let answer = Answer { filter: filter.as_dyn(), key, hash, explanation, transforms };
    print(&if args.json { answer.json() } else { answer.table() })?;
    Ok(Outcome::Done)
}

fn open(args: &ExplainArgs) -> Result<AnyFilter<Mapped>> {
    let path = &args.filter;
    let key = [Source::Path(args.key.clone().into())];
    let swapped = foreign_file::explain_swapped("explain", path, &key);
    let limit = MemoryLimit::DEFAULT.bytes();
    match foreign_file::open(path, FormatArg { name: None }, limit, &args.secret) {
        Ok(AnyFile::Native(filter)) => Ok(filter),
        Ok(AnyFile::Foreign(filter)) => Err(Failure::Message(format!(
            "{}: is a filter of {}, and explain reads only petal's own; query it with petal check",
            path.display(),
            filter.0.format(),
        ))),
        // The error of a file that is not a filter of petal's.
        Err(_) => filter_file::open(path, &args.secret).map_err(swapped),
    }
}

/// The answer to a query, with its explanation.
struct Answer<'a> {
    filter: &'a dyn Membership,
    key: &'a [u8],
    hash: u64,
    explanation: Explanation,
    /// The changes that made the key.
    transforms: Vec<Transform>,
}

impl Answer<'_> {
    fn table(&self) -> String {
        let filter = self.filter;
        let spec = filter.hash_spec();
        let bytes = self.key.len();
        let unit = if bytes == 1 { "byte" } else { "bytes" };
        let seed = match self.seed() {
            Some(seed) => format!("seed {seed}"),
            None => "secret key".to_owned(),
        };
        let changes = match &self.transforms[..] {
            [] => String::new(),
            list => format!(", after {}", transforms_text(list)),
        };
        let key = self.key.escape_ascii();
        let rows = [
            ("key", format!("{key} ({} {unit}{changes})", text::count(bytes as u64))),
            ("filter", format!("{}, {}", filter.filter_type(), text::grouped(&filter.describe()))),
            ("hash", format!("{} ({}, {seed})", self.hash_text(), spec.name())),
            ("answer", self.verdict()),
        ];
        let mut table: String =
            rows.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect();
        for part in &self.explanation.parts {
            table.push('\n');
            table.push_str(&self.part(part));
        }
        table
    }

    fn hash_text(&self) -> String {
        format!("{:#018x}", self.hash)
    }

    /// Returns the seed; `None` if it is a secret.
    fn seed(&self) -> Option<u64> {
        let spec = self.filter.hash_spec();
        let low = spec.seed().first_chunk().map(|seed| u64::from_le_bytes(*seed));
        low.filter(|_| !spec.is_keyed())
    }

    fn verdict(&self) -> String {
        let answer = match self.filter.filter_type() {
            _ if self.explanation.contains => "yes: the key may be in the filter".to_owned(),
            FilterType::Windowed => "no: the key was not added within the window".to_owned(),
            FilterType::Cascade => "no: the key is not a member".to_owned(),
            _ => format!("no: the key is certainly not in the filter{}", self.clear_bits()),
        };
        let absent = match self.filter.filter_type() {
            FilterType::Cascade => "a key of neither list",
            _ => "a key that was never added",
        };
        let rate = text::rate(self.filter.stats().estimated_fpr);
        format!("{answer}; {absent} gets a yes with probability {rate}")
    }

    /// Returns the number of clear bits of a filter of one part, as a reason; empty for other filters.
    fn clear_bits(&self) -> String {
        let probes = match &self.explanation.parts[..] {
            [part] => &part.probes[..],
            _ => &[],
        };
        match probes.iter().filter(|probe| probe.value == 0).count() {
            0 => String::new(),
            1 => "; one of its bits is clear".to_owned(),
            clear => format!("; {clear} of its bits are clear"),
        }
    }

    /// Formats a part: its numbers, and its bits or counters in columns.
    fn part(&self, part: &ExplainedPart) -> String {
        let mut lines = String::new();
        if !part.name.is_empty() {
            let answer = if part.contains { "yes" } else { "no" };
            lines.push_str(&format!("{}: {answer}\n", part.name));
        }
        for (name, number) in &part.numbers {
            let meaning = meaning(name);
            let number = match *name {
                "equation" => format!("{number:032b}"),
                // Their bits are compared.
                "fingerprint" | "result" => format!("{number:#x}"),
                _ => text::count(*number),
            };
            lines.push_str(format!("{name:<12} {number:<20}  {meaning}").trim_end());
            lines.push('\n');
        }
        if part.probes.is_empty() {
            return lines;
        }
        let counters =
            matches!(self.filter.filter_type(), FilterType::Counting | FilterType::CountingClassic);
        let value = if counters { "counter" } else { "bit" };
        lines.push_str(&format!("probe  {:>22} {:>20}  {value}\n", "position", "cache line"));
        for (number, probe) in (1..).zip(&part.probes) {
            let (position, line) = (text::count(probe.position), text::count(probe.position / 512));
            lines.push_str(&format!("{number:>5}  {position:>22} {line:>20}  {}\n", probe.value));
        }
        lines
    }

    fn json(&self) -> String {
        let filter = self.filter;
        let part = |part: &ExplainedPart| {
            let numbers: serde_json::Map<String, Value> =
                part.numbers.iter().map(|(name, n)| ((*name).to_owned(), (*n).into())).collect();
            let probes: Vec<_> = part
                .probes
                .iter()
                .map(|probe| json!({ "position": probe.position, "value": probe.value }))
                .collect();
            json!({
                "name": part.name,
                "contains": part.contains,
                "numbers": numbers,
                "probes": probes,
            })
        };
        let parts: Vec<_> = self.explanation.parts.iter().map(part).collect();
        let fpr = self.explanation.contains.then(|| filter.stats().estimated_fpr);
        let answer = json!({
            "key": String::from_utf8_lossy(self.key),
            "key_transform": transforms_text(&self.transforms),
            "type": filter.filter_type().name(),
            "hash_function": filter.hash_spec().name(),
            "seed": self.seed(),
            "hash": self.hash_text(),
            "contains": self.explanation.contains,
            "estimated_fpr": fpr,
            "parts": parts,
        });
        format!("{answer:#}\n")
    }
}

/// Returns what a number of a part means.
fn meaning(name: &str) -> &'static str {
    match name {
        "block" => "holds all bits of the key",
        "expired" => "the generation is no longer in the window",
        "slot" => "home slot: the upper part of the fingerprint",
        "remainder" => "the lower part of the fingerprint, which is stored",
        "copies" => "equal fingerprints in the filter",
        "shard" => "part of the layer",
        "row" => "first row of the equation",
        "bumped" => "the key continues in the next layer",
        "equation" => "rows that are added, the first one on the right",
        "bits" => "bits that are compared",
        "result" => "what the rows add up to; equal to the fingerprint if present",
        _ => "",
    }
}
