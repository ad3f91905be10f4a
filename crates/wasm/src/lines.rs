//! The lines of a shell, of Rust and of Python that make a planned filter.

use petal::FilterType;

use crate::plan::{MadeFrom, Plan};

/// Returns the command that builds the filter from a file of lines.
pub(crate) fn shell(plan: &Plan) -> String {
    let name = plan.filter_type.name();
    let mut command = format!("petal build -o {name}.petal");
    if plan.filter_type != FilterType::Bloom && plan.filter_type != FilterType::Windowed {
        command += &format!(" --type {name}");
    }
    match plan.filter_type {
        // The number of lines is that of the file.
        FilterType::Static => {}
        FilterType::Windowed => command += &format!(" --last {}", plan.capacity),
        _ => command += &format!(" -n {}", plan.capacity),
    }
    command += &match plan.made_from {
        MadeFrom::Fpr(fpr) => format!(" -p {fpr:?}"),
        MadeFrom::FprAndProbes(fpr, probes) => format!(" -p {fpr:?} -k {probes}"),
        MadeFrom::Bits(bits, probes) => format!(" --bits {bits} -k {probes}"),
    };
    command + " keys.txt"
}

/// Returns the statement of Rust.
pub(crate) fn rust(plan: &Plan) -> String {
    let class = class(plan.filter_type);
    let fields = match plan.made_from {
        MadeFrom::Fpr(fpr) => format!(".fpr({fpr:?})"),
        MadeFrom::FprAndProbes(fpr, probes) => format!(".fpr({fpr:?}).probes({probes})"),
        MadeFrom::Bits(bits, probes) => format!(".bits({bits}).probes({probes})"),
    };
    if plan.filter_type == FilterType::Static {
        return format!("let filter = petal::{class}::builder(){fields}.build(&keys)?;");
    }
    let capacity = plan.capacity;
    format!("let mut filter = petal::{class}::builder().capacity({capacity}){fields}.build()?;")
}

/// Returns the statement of Python.
pub(crate) fn python(plan: &Plan) -> String {
    let class = class(plan.filter_type);
    let fields = match plan.made_from {
        MadeFrom::Fpr(fpr) => format!("fpr={fpr:?}"),
        MadeFrom::FprAndProbes(fpr, probes) => format!("fpr={fpr:?}, probes={probes}"),
        MadeFrom::Bits(bits, probes) => format!("bits={bits}, probes={probes}"),
    };
    let keys = match plan.filter_type {
        FilterType::Static => "keys".to_owned(),
        _ => plan.capacity.to_string(),
    };
    format!("filter = petal.{class}({keys}, {fields})")
}

/// Returns the name of the type in Rust and in Python.
fn class(filter_type: FilterType) -> &'static str {
    match filter_type {
        FilterType::Classic => "ClassicBloomFilter",
        FilterType::Counting => "CountingBloomFilter",
        FilterType::CountingClassic => "ClassicCountingBloomFilter",
        FilterType::Quotient => "QuotientFilter",
        FilterType::Scalable => "ScalableBloomFilter",
        FilterType::Windowed => "WindowedBloomFilter",
        FilterType::Static => "StaticFilter",
        FilterType::Cascade => "FilterCascade",
        FilterType::Wide => "WideBloomFilter",
        _ => "BloomFilter",
    }
}
