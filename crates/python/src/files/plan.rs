//! `plan`: what a job, or a filter, will take.

use std::path::PathBuf;

use petal::{ByteSize, FilterSpec, FilterType};
use petal_lines::{Counting, FilterSpec as LineFilterSpec, Mode, SetJob, Settings, format_size};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use super::filters::filter_type;
use super::job::run;
use super::set_operations::operation;
use super::{JobOptions, Memory, sources};
use crate::error::{Exception, IntoPyErr};

/// Estimates a set operation, by name, on files. Returns JSON, as `petal plan --json` prints it.
#[pyfunction]
#[pyo3(name = "_plan_job")]
pub(super) fn plan_job(
    py: Python<'_>,
    name: &str,
    files: (Vec<PathBuf>, Vec<PathBuf>),
    at_least: Option<u8>,
    count: bool,
    full_scan: Option<bool>,
    options: JobOptions,
) -> PyResult<String> {
    let (op, mode) = (operation(name, at_least), Mode::Exact { strategy: None });
    let job = SetJob { op, first: sources(files.0)?, others: sources(files.1)?, mode };
    let settings = options.settings(&[&job.first[..], &job.others].concat())?;
    let counting = match full_scan {
        None => Counting::Auto,
        Some(true) => Counting::FullScan,
        Some(false) => Counting::Sample,
    };
    run(py, options.progress, Vec::new(), |reporter| {
        let settings = Settings { progress: reporter, ..settings };
        let estimate = job.estimate(&settings, !count, counting).map_err(IntoPyErr::into_py_err)?;
        let mut value = json!(estimate);
        value["memory_limit_bytes"] = settings.memory_limit.into();
        value["jobs"] = settings.jobs.into();
        Ok(value.to_string())
    })
}

/// The arguments for a filter that is planned.
#[derive(FromPyObject)]
#[pyo3(crate = "crate::files::plain", from_item_all)]
pub(super) struct PlanArgs {
    r#type: String,
    capacity: Option<u64>,
    fpr: Option<f64>,
    size: Option<Memory>,
    bits: Option<u64>,
    probes: Option<u32>,
    least_space: bool,
}

/// Plans a filter. Returns its figures by name, as `petal plan --json` prints them.
#[pyfunction]
#[pyo3(name = "_plan_filter")]
pub(super) fn plan_filter<'py>(py: Python<'py>, args: PlanArgs) -> PyResult<Bound<'py, PyDict>> {
    let PlanArgs { capacity, fpr, bits, probes, least_space, .. } = args;
    let filter_type = filter_type(&args.r#type)?;
    let settings = LineFilterSpec { bits, probes, least_space, ..LineFilterSpec::default() };
    settings.check_settings_of_type(filter_type).map_err(IntoPyErr::into_py_err)?;
    let size = args.size.as_ref().map(|size| size.bytes_of("size=")).transpose()?;
    let is_alone = size.is_none() && bits.is_none() && probes.is_none();
    let fpr = fpr.or(capacity.filter(|_| is_alone).map(|_| LineFilterSpec::DEFAULT_FPR));
    let is_bloom = matches!(
        filter_type,
        FilterType::Bloom
            | FilterType::Classic
            | FilterType::Counting
            | FilterType::CountingClassic
    );
    // Memory beside them is a limit.
    let is_sized = bits.is_some() || capacity.is_some() && fpr.is_some();
    let spec = FilterSpec {
        capacity,
        fpr,
        memory: size.filter(|_| !is_sized).map(ByteSize::bytes),
        bits,
        probes,
        least_space,
        lowest_fpr: is_bloom.then_some(FilterSpec::USEFUL_FPR),
        ..FilterSpec::new(filter_type)
    };
    let plan = spec.plan().map_err(IntoPyErr::into_py_err)?;
    if let Some(size) = size.filter(|size| plan.size_bytes() > *size) {
        return Err(Exception::MemoryLimit.new_err(format_args!(
            "size=: the filter takes {}, more than {}; raise size= or fpr=",
            format_size(plan.size_bytes()),
            format_size(size),
        )));
    }
    let keys = plan.best_capacity();
    let figures = PyDict::new(py);
    figures.set_item("type", filter_type.name())?;
    figures.set_item("capacity", keys)?;
    figures.set_item("fpr", plan.expected_fpr(keys))?;
    figures.set_item("fpr_at_double_capacity", plan.fpr_at_double_capacity())?;
    figures.set_item("size_bytes", plan.size_bytes())?;
    figures.set_item("file_bytes", plan.file_bytes())?;
    figures.set_item("bits", plan.bits())?;
    figures.set_item("bits_per_key", plan.bits_per_key())?;
    figures.set_item("probes", plan.probes())?;
    Ok(figures)
}
