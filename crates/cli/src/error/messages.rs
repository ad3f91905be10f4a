//! The texts of the libraries' errors, with the flags of this program.

use petal_interop::ErrorKind as ForeignError;
use petal_lines::{Advice, Setting};

use crate::text;

/// Returns the message for an error of another program's filter.
pub(crate) fn foreign(error: &petal_interop::Error) -> String {
    match error.kind() {
        ForeignError::AmbiguousFormat { .. } | ForeignError::UnknownFormat { .. } => {
            format!("{error} with --format")
        }
        ForeignError::WholeParquet => {
            "is a whole Parquet file; query the filters in it with petal probe".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Returns the message for an error of the file engine.
pub(crate) fn lines(error: &petal_lines::Error) -> String {
    if let Some(error) = error.filter_error() {
        return error.to_string();
    }
    let text = error.text(flag, advice_text);
    if error.setting() == Some(Setting::WorkDir) { format!("--work-dir {text}") } else { text }
}

/// Returns the flag of a setting.
fn flag(setting: Setting) -> &'static str {
    match setting {
        Setting::MemoryLimit => "-m",
        Setting::Size => "--size",
        Setting::Fpr => "-p",
        Setting::Capacity => "-n",
        Setting::MaxCapacity => "--max-capacity",
        Setting::FilterType => "--type",
        Setting::Bits => "--bits",
        Setting::Probes => "-k",
        Setting::LeastSpace => "--least-space",
        Setting::CounterWidth => "--width",
        Setting::Growing => "--growing",
        Setting::Window => "--window",
        Setting::Last => "--last",
        Setting::NotIn => "--not-in",
        Setting::Output => "-o",
        Setting::TempDir => "-T",
        Setting::WorkDir => "--work-dir",
        Setting::Resume => "--resume",
        Setting::NullDelimiter => "-z",
        Setting::Text => "--text",
        Setting::Separator => "--separator",
        Setting::Quote => "--quote",
        Setting::Columns => "--column",
        Setting::KeysOnly => "--keys-only",
        Setting::KeyTransform => "--key-transform",
        Setting::Sums => "--sums",
        Setting::Counts => "--counts",
        Setting::BadRecords => "--bad-records",
        Setting::Nulls => "--nulls",
        Setting::Empty => "--empty",
        Setting::SkipLines => "--skip-lines",
        Setting::Comment => "--comment",
        Setting::Unit => "--unit",
        Setting::JsonKey => "--json-key",
    }
}

fn advice_text(advice: &Advice) -> String {
    match advice {
        Advice::Specify(Setting::Window) => "specify --window, e.g. 7d".to_owned(),
        Advice::Specify(Setting::Last) => "--last, e.g. 1e6".to_owned(),
        Advice::AcceptFpr(fpr) => format!("accept {} with -p", text::rate(*fpr)),
        Advice::FindCommonLines => "find them with `petal common`".to_owned(),
        other => other.text("use", flag),
    }
}
