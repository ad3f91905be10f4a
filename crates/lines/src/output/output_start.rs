//! What an output of records begins with: the byte order mark and the header of the first input, and
//! how the other inputs differ from it.

use crate::input::{Input, MARK};
use crate::keys::{Dialect, EndScan, field_values};
use crate::progress::{Note, Progress};

/// What precedes the records of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputStart {
    /// Whether the first input begins with a byte order mark.
    pub(crate) mark: bool,
    /// The header of the first input that has one, without its LF.
    pub(crate) header: Option<Vec<u8>>,
    /// The byte between the fields of the first input; `None` unless it is CSV.
    pub(crate) separator: Option<u8>,
}

impl OutputStart {
    /// Returns the start of the output of these inputs. Reports inputs whose records have other fields
    /// than those before them in the output. `before`: what the output begins with already.
    pub(crate) fn of(inputs: &[Input], before: Option<&[u8]>, progress: &dyn Progress) -> Self {
        note_separators(inputs, progress);
        let mut headers = inputs.iter().filter_map(|input| {
            let names = field_values(input.header()?, input.csv_dialect()?);
            Some((input, names))
        });
        let separator_of = |input: &Input| Some(input.csv_dialect()?.separator);
        let separator = inputs.first().and_then(separator_of);
        let Some((first, names)) = headers.next() else {
            let mark = inputs.first().is_some_and(Input::has_mark);
            return Self { mark, header: None, separator };
        };
        let mut others = headers.filter(|(_, other)| *other != names);
        if let Some((input, _)) = others.next() {
            let more = others.count() as u64;
            progress.note(Note::OtherHeader { input: input.name(), more, first: first.name() });
        }
        if let (Some(before), Some(dialect)) = (before, first.csv_dialect())
            && field_values(first_record(before, dialect), dialect) != names
        {
            progress.note(Note::OtherOutputHeader { input: first.name() });
        }
        let header = first.header().map(<[u8]>::to_vec);
        Self { mark: first.has_mark(), header, separator: separator_of(first) }
    }

    /// Returns the byte order mark, if any, and the header, if any.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mark = if self.mark { MARK } else { &[] };
        [mark, self.header.as_deref().unwrap_or_default()].concat()
    }
}

/// Reports inputs whose fields are separated by another byte than those of the first one.
fn note_separators(inputs: &[Input], progress: &dyn Progress) {
    let mut separators =
        inputs.iter().filter_map(|input| Some((input, input.csv_dialect()?.separator)));
    let Some((first, first_separator)) = separators.next() else { return };
    let mut others = separators.filter(|(_, other)| *other != first_separator);
    if let Some((input, separator)) = others.next() {
        progress.note(Note::OtherSeparator {
            input: input.name(),
            more: others.count() as u64,
            separator,
            first: first.name(),
            first_separator,
        });
    }
}

/// Returns the first record of a text, without a byte order mark and its LF.
fn first_record(text: &[u8], dialect: Dialect) -> &[u8] {
    let text = text.strip_prefix(MARK).unwrap_or(text);
    let end = EndScan::new(dialect).first(text).unwrap_or(text.len());
    &text[..end]
}
