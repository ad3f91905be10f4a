//! The lines of a shell, of Rust and of Python that make a planned filter.

use petal::{FilterType, Plan};
use serde_json::{Value, json};

/// Returns the three lines.
pub(crate) fn lines(plan: &Plan) -> Value {
    json!({ "shell": shell(plan), "rust": rust(plan), "python": python(plan) })
}

/// Returns the command that builds the filter from a file of lines.
fn shell(plan: &Plan) -> String {
    let name = plan.filter_type().name();
    let mut command = format!("petal build -o {name}.petal");
    if plan.filter_type() != FilterType::Bloom && plan.filter_type() != FilterType::Windowed {
        command += &format!(" --type {name}");
    }
    match plan.filter_type() {
        // The number of lines is that of the file.
        FilterType::Static | FilterType::StaticFuse => {}
        FilterType::Windowed => command += &format!(" --last {}", plan.best_capacity()),
        _ => command += &format!(" -n {}", plan.best_capacity()),
    }
    for (name, value) in sized_by(plan) {
        let flag = match name {
            "fpr" => "-p",
            "probes" => "-k",
            _ => "--bits",
        };
        command += &format!(" {flag} {value}");
    }
    command + " keys.txt"
}

/// Returns what sizes the filter beside its capacity, by name: its rate, or bits and probes.
fn sized_by(plan: &Plan) -> Vec<(&'static str, String)> {
    let spec = plan.spec();
    let bits = spec.bits.map(|bits| ("bits", bits.to_string()));
    let fpr = spec.fpr.filter(|_| bits.is_none()).map(|fpr| ("fpr", format!("{fpr:?}")));
    let probes = spec.probes.map(|probes| ("probes", probes.to_string()));
    [bits, fpr, probes].into_iter().flatten().collect()
}

/// Returns the statement of Rust.
fn rust(plan: &Plan) -> String {
    let class = class(plan.filter_type());
    let fields: String =
        sized_by(plan).iter().map(|(name, value)| format!(".{name}({value})")).collect();
    let fuse = match plan.filter_type() {
        FilterType::Static => "",
        FilterType::StaticFuse => ".fuse(true)",
        _ => {
            let capacity = plan.best_capacity();
            return format!(
                "let mut filter = petal::{class}::builder().capacity({capacity}){fields}.build()?;"
            );
        }
    };
    format!("let filter = petal::{class}::builder(){fields}{fuse}.build(&keys)?;")
}

/// Returns the statement of Python.
fn python(plan: &Plan) -> String {
    let class = class(plan.filter_type());
    let fields: Vec<String> =
        sized_by(plan).iter().map(|(name, value)| format!("{name}={value}")).collect();
    let fields = fields.join(", ");
    let keys = match plan.filter_type() {
        FilterType::Static | FilterType::StaticFuse => "keys".to_owned(),
        _ => plan.best_capacity().to_string(),
    };
    let fuse = if plan.filter_type() == FilterType::StaticFuse { ", fuse=True" } else { "" };
    format!("filter = petal.{class}({keys}, {fields}{fuse})")
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
        FilterType::Static | FilterType::StaticFuse => "StaticFilter",
        FilterType::Cascade => "FilterCascade",
        FilterType::VectorQuotient => "VectorQuotientFilter",
        _ => "BloomFilter",
    }
}

#[cfg(test)]
mod tests {
    use petal::Membership as _;
    use serde_json::json;

    use crate::plan::plan;

    /// Compares the printed line with code that is compiled, and the sizes of both.
    macro_rules! assert_line {
        ($request:expr, let mut filter = $code:expr) => {{
            let plan = plan(&$request).unwrap();
            let printed: String = super::rust(&plan).split_whitespace().collect();
            let compiled: String = stringify!($code).split_whitespace().collect();
            assert_eq!(printed, format!("letmutfilter={compiled}?;"));
            assert_eq!($code.unwrap().size_bytes(), plan.size_bytes(), "{printed}");
        }};
    }

    #[test]
    fn lines_of_rust_compile_and_make_the_filter() {
        assert_line!(
            json!({ "capacity": 5000, "fpr": 0.01 }),
            let mut filter = petal::BloomFilter::builder().capacity(5000).fpr(0.01).build()
        );
        assert_line!(
            json!({ "type": "classic", "capacity": 5000, "memory": 8192, "probes": 9 }),
            let mut filter =
                petal::ClassicBloomFilter::builder().capacity(5000).bits(65536).probes(9).build()
        );
        assert_line!(
            json!({ "type": "counting", "capacity": 5000, "fpr": 1e-6, "probes": 12 }),
            let mut filter =
                petal::CountingBloomFilter::builder().capacity(5000).fpr(1e-6).probes(12).build()
        );
        assert_line!(
            json!({ "type": "counting-classic", "capacity": 5000, "fpr": 0.01 }),
            let mut filter =
                petal::ClassicCountingBloomFilter::builder().capacity(5000).fpr(0.01).build()
        );
        assert_line!(
            json!({ "type": "quotient", "capacity": 5000, "fpr": 0.01 }),
            let mut filter = petal::QuotientFilter::builder().capacity(5000).fpr(0.01).build()
        );
        assert_line!(
            json!({ "type": "vector-quotient", "capacity": 5000, "fpr": 0.01 }),
            let mut filter =
                petal::VectorQuotientFilter::builder().capacity(5000).fpr(0.01).build()
        );
        assert_line!(
            json!({ "type": "scalable", "capacity": 5000, "fpr": 0.01 }),
            let mut filter = petal::ScalableBloomFilter::builder().capacity(5000).fpr(0.01).build()
        );
        assert_line!(
            json!({ "type": "windowed", "capacity": 5000, "fpr": 0.01 }),
            let mut filter = petal::WindowedBloomFilter::builder().capacity(5000).fpr(0.01).build()
        );
        let keys: Vec<u64> = (0..200_000).collect();
        for (name, fuse, method) in [("static", false, ""), ("static-fuse", true, ".fuse(true)")] {
            let request = json!({ "type": name, "capacity": keys.len(), "fpr": 0.01 });
            let plan = plan(&request).unwrap();
            let filter = petal::StaticFilter::builder().fpr(0.01).fuse(fuse).build(&keys).unwrap();
            assert_eq!(
                super::rust(&plan),
                format!(
                    "let filter = petal::StaticFilter::builder().fpr(0.01){method}.build(&keys)?;"
                )
            );
            let ratio = filter.size_bytes() as f64 / plan.size_bytes() as f64;
            assert!((0.95..1.05).contains(&ratio), "{name}: {ratio}");
        }
    }
}
