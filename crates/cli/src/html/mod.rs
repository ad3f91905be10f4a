//! HTML pages of plans, filters and jobs.
//!
//! A page is one file: its charts are SVG elements, its styles are inside, and it needs no script and
//! no network. It has a dark and a light palette and a print style.
//!
//! | file | contents |
//! |---|---|
//! | `page` | the frame of a page: text, tables, figures |
//! | `escape` | escaping of texts |
//! | `palette` | the colors, and the styles that replace them in dark mode |
//! | `chart` | charts by plotters: lines, rows of bars, histograms |
//! | `axis` | units and ticks of axes |
//! | `rate_curve` | the figure of the false-positive rate by the number of keys |
//! | `plan`, `info`, `estimate`, `job` | one page each |
//! | `job_report` | the JSON report that `job` shows, read and checked |
//!
//! Invariant: every text in a page is escaped by [`escape`] or by plotters.

mod axis;
mod chart;
mod escape;
pub(crate) mod estimate;
pub(crate) mod info;
pub(crate) mod job;
mod job_report;
mod page;
mod palette;
pub(crate) mod plan;
mod rate_curve;

pub(crate) use job_report::JobReport;
pub(crate) use page::Page;
pub(crate) use rate_curve::RateCurve;
