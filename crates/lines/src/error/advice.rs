//! What to do about an error: the setting that is wrong, and the ways to avoid the error.
//!
//! The sections are those of [`ErrorKind`].

use std::io;

use petal::FilterType;

use super::Error;
use super::kind::{Advice, ErrorKind, Setting, is_disk_full};
use crate::numbers::shown_size;

impl Error {
    /// Returns the setting that is wrong, if one is.
    #[must_use]
    pub fn setting(&self) -> Option<Setting> {
        Some(match self.kind() {
            ErrorKind::MemoryLimitTooLow { .. } => Setting::MemoryLimit,
            ErrorKind::UnknownInputSize => Setting::Fpr,
            ErrorKind::WorkDir { .. }
            | ErrorKind::WorkFile { .. }
            | ErrorKind::UnfinishedJob { .. }
            | ErrorKind::MemoryLimitBelowJob { .. } => Setting::WorkDir,
            ErrorKind::NotForType { setting, .. }
            | ErrorKind::ConflictingSettings { setting, .. } => *setting,
            ErrorKind::MissingSetting { .. } | ErrorKind::NotBuiltFromLines { .. } => {
                Setting::FilterType
            }
            ErrorKind::FprTooLow { .. } | ErrorKind::UnattainableFpr { .. } => Setting::Fpr,
            ErrorKind::MissingFpr { .. } => Setting::MemoryLimit,
            ErrorKind::MaxCapacityTooLow { .. } => Setting::MaxCapacity,
            ErrorKind::UncountableInput => Setting::Capacity,
            _ => return None,
        })
    }

    /// Returns what to do about the error: any one of the returned ways is enough.
    #[must_use]
    pub fn advice(&self) -> Vec<Advice> {
        use Advice::{Change, Enable, Lower, Omit, Raise, RebuildWithHigher, Specify, UseType};
        let other = |text: &str| Advice::Other(text.to_owned());
        match self.kind() {
            // Inputs.
            ErrorKind::DirectoryInput { .. } => vec![other("name the files in it instead")],
            ErrorKind::InputChanged { .. } => {
                vec![other("run again when no other program writes to it")]
            }
            ErrorKind::StreamTwice { .. } => vec![other("save it to a file first")],
            ErrorKind::NotLines { conversion, .. } => {
                vec![Advice::Other(conversion.clone()), Enable(Setting::Text)]
            }
            // Tables.
            ErrorKind::TableWithoutColumns { .. } if !cfg!(feature = "parquet") => {
                vec![Advice::BuildWithTables, Enable(Setting::Text)]
            }
            ErrorKind::TableWithoutColumns { .. } => {
                vec![Specify(Setting::Columns), Enable(Setting::Text)]
            }
            ErrorKind::UnreadableTable { .. } => {
                vec![other("write the file again, or remove it from the inputs")]
            }
            ErrorKind::UnsupportedTable { .. } => {
                vec![other("convert the column to a type that other programs have")]
            }
            ErrorKind::UnusableColumn { rows: true, .. } => vec![Enable(Setting::KeysOnly)],
            ErrorKind::UnusableColumn { .. } => vec![Change(Setting::Columns)],
            ErrorKind::TableMemory { needed_limit, .. } => {
                vec![raise_limit_to(*needed_limit)]
            }
            ErrorKind::DifferentTables { .. } => {
                vec![Enable(Setting::KeysOnly), other("run one job for each")]
            }
            ErrorKind::RowsNotTaken { .. } => {
                vec![Specify(Setting::Output), Enable(Setting::KeysOnly)]
            }
            ErrorKind::LogBesideRows => {
                vec![Raise(Setting::MemoryLimit), Enable(Setting::KeysOnly)]
            }
            ErrorKind::NotATable { .. } => vec![Omit(Setting::KeysOnly)],
            // Compressed inputs.
            ErrorKind::ZstdWindow { window, needed_limit, .. } => {
                let raise = match needed_limit {
                    Some(limit) => Some(raise_limit_to(*limit)),
                    None => window.is_none().then_some(Raise(Setting::MemoryLimit)),
                };
                raise.into_iter().chain([other("decompress it first")]).collect()
            }
            ErrorKind::DecompressionMemory { needed_limit, .. } => {
                let raise = match needed_limit {
                    Some(limit) => raise_limit_to(*limit),
                    None => Raise(Setting::MemoryLimit),
                };
                vec![raise, other("decompress it first")]
            }
            // Lines and records.
            ErrorKind::LineTooLong { .. } => {
                vec![Raise(Setting::MemoryLimit), Advice::CheckDelimiter]
            }
            ErrorKind::OpenQuotes { limit: None, .. } => {
                vec![other("close the quote"), Change(Setting::Separator), Change(Setting::Quote)]
            }
            ErrorKind::OpenQuotes { .. } => {
                vec![other("close the quote"), Change(Setting::Quote), Raise(Setting::MemoryLimit)]
            }
            ErrorKind::InvalidHeader { repeated: true, .. } => {
                vec![other("name the column by its number")]
            }
            ErrorKind::InvalidHeader { .. } => {
                vec![Change(Setting::Columns), Change(Setting::Separator)]
            }
            ErrorKind::AmbiguousSeparator { .. } => vec![Specify(Setting::Separator)],
            // Inputs and operations that a mode does not support.
            ErrorKind::NotAFile { .. } => vec![other("save it to a file first")],
            ErrorKind::NoApproximateMode => vec![other("run an exact job")],
            ErrorKind::UnknownInputSize | ErrorKind::UncountableInput => {
                vec![Specify(Setting::Capacity)]
            }
            // Memory.
            ErrorKind::MemoryLimitTooLow { .. } => vec![Raise(Setting::MemoryLimit)],
            ErrorKind::FilterTooLarge { alternative, .. } => {
                vec![Raise(Setting::MemoryLimit), alternative.clone()]
            }
            ErrorKind::TooManyBits { .. } => {
                vec![Raise(Setting::MemoryLimit), Lower(Setting::Bits)]
            }
            ErrorKind::AllowListTooLong { .. } => vec![Raise(Setting::MemoryLimit)],
            ErrorKind::LinesTooLarge { .. } => vec![other("give fewer lines")],
            ErrorKind::TooManyLines { .. } => vec![UseType(&[FilterType::Bloom])],
            ErrorKind::FilterOutgrown { .. } => {
                vec![Raise(Setting::MemoryLimit), RebuildWithHigher(Setting::Fpr)]
            }
            ErrorKind::Alloc { .. } => vec![Lower(Setting::MemoryLimit)],
            // Files that a job writes.
            ErrorKind::TempFile { source, .. } if is_disk_full(source) => vec![
                other("free some space"),
                Change(Setting::TempDir),
                Raise(Setting::MemoryLimit),
            ],
            ErrorKind::TempFile { .. } => vec![Change(Setting::TempDir)],
            ErrorKind::WorkFile { source, .. } if is_disk_full(source) => {
                vec![other("free some space and run again"), Enable(Setting::Resume)]
            }
            ErrorKind::WorkFile { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof => {
                vec![other("remove the directory and run again")]
            }
            ErrorKind::WorkFile { .. } => vec![Change(Setting::WorkDir)],
            ErrorKind::UnfinishedJob { .. } => {
                vec![Enable(Setting::Resume), other("remove the directory")]
            }
            ErrorKind::MemoryLimitBelowJob { minimum, .. } => {
                vec![raise_limit_to(*minimum)]
            }
            ErrorKind::WriteOutput { source, .. } if is_disk_full(source) => {
                vec![other("free some space"), Change(Setting::Output)]
            }
            ErrorKind::Damaged { .. } => {
                vec![other("restore it"), other("remove it and its filter to start over")]
            }
            // The specification of a filter.
            ErrorKind::NotForType { setting, types: [], .. } => vec![Omit(*setting)],
            ErrorKind::NotForType { setting, types, .. } => vec![Omit(*setting), UseType(types)],
            ErrorKind::MissingSetting { any_of, .. } => {
                any_of.iter().copied().map(Specify).collect()
            }
            ErrorKind::ConflictingSettings { conflicts, .. } => {
                conflicts.iter().copied().map(Omit).collect()
            }
            ErrorKind::FprTooLow { .. } => {
                vec![Raise(Setting::Fpr), UseType(&[FilterType::Bloom])]
            }
            ErrorKind::MissingFpr { .. } => vec![Specify(Setting::Fpr)],
            ErrorKind::MaxCapacityTooLow { .. } => vec![Raise(Setting::MaxCapacity)],
            ErrorKind::UnattainableFpr { .. } => vec![Raise(Setting::Fpr)],
            ErrorKind::Contradiction { .. } => {
                vec![other("remove them from one side"), Advice::FindCommonLines]
            }
            // Filters.
            ErrorKind::FilterFull => vec![other("build a larger one")],
            ErrorKind::FullAt { advice, .. } => advice.clone(),
            // The system, and the caller.
            ErrorKind::NoRandomness => vec![other("try again")],
            _ => Vec::new(),
        }
    }
}

/// Advice of a limit as it is printed, so that the limit that a person enters is enough.
fn raise_limit_to(bytes: u64) -> Advice {
    Advice::RaiseMemoryLimitTo(shown_size(bytes))
}
