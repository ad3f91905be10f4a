//! The texts of the libraries' errors, with the flags of this program.

use petal_interop::ErrorKind as ForeignError;
use petal_lines::{Advice, ErrorKind as LinesError, Setting, type_names};

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
    if let LinesError::Filter(error) = error.kind() {
        return error.to_string();
    }
    let subject = match error.setting() {
        // The problem begins with the directory.
        Some(Setting::WorkDir) => "--work-dir ".to_owned(),
        Some(setting) => format!("{}: ", flag(setting)),
        None => String::new(),
    };
    let advice: Vec<_> = error.advice().iter().map(advice_text).collect();
    let separator = if advice.is_empty() { "" } else { "; " };
    format!("{subject}{}{separator}{}", error.problem(), advice.join(", or "))
}

/// Returns the flag of a setting.
fn flag(setting: Setting) -> &'static str {
    match setting {
        Setting::MemoryLimit => "-m",
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
        _ => "a setting",
    }
}

fn advice_text(advice: &Advice) -> String {
    match advice {
        Advice::Raise(setting) => format!("raise {}", flag(*setting)),
        Advice::RaiseMemoryLimitTo(bytes) => format!("raise -m to {}", text::size(*bytes)),
        Advice::Lower(setting) => format!("lower {}", flag(*setting)),
        Advice::Specify(Setting::Window) => "specify --window, e.g. 7d".to_owned(),
        Advice::Specify(Setting::Last) => "--last, e.g. 1e6".to_owned(),
        Advice::Specify(setting) => format!("specify {}", flag(*setting)),
        Advice::Change(setting) => format!("change {}", flag(*setting)),
        Advice::Omit(setting) => format!("leave out {}", flag(*setting)),
        Advice::Enable(setting) => format!("use {}", flag(*setting)),
        Advice::AcceptFpr(fpr) => format!("accept {} with -p", text::rate(*fpr)),
        Advice::OmitFpr(fpr) => format!("leave out -p to get {}", text::rate(*fpr)),
        Advice::UseType(types) => format!("use --type {}", type_names(types)),
        Advice::RebuildWithHigher(setting) => {
            format!("build it again with a higher {}", flag(*setting))
        }
        Advice::RebuildWith(setting) => format!("build it again with {}", flag(*setting)),
        Advice::CheckDelimiter => "use -z if lines end in NUL".to_owned(),
        Advice::FindCommonLines => "find them with `petal common`".to_owned(),
        other => other.to_string(),
    }
}
