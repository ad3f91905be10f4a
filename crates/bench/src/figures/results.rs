//! The rows of a result file of the filter benchmarks.
//!
//! Lines that begin with `#` have machine, commit and command. The columns of the header are found by name.

use crate::harness::RANDOM_READS;
use crate::harness::rows::{HEADER, Row, paired};
use crate::stats::csv_fields;

/// The operation of rows of parallel builds.
pub const BUILD: &str = "build";

/// A result file.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The lines before the header, without `#`.
    pub notes: Vec<String>,
    /// The rows, in order.
    pub rows: Vec<Row>,
}

/// Selects a row. An empty text, or `None`, matches any.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Name of the filter.
    pub filter: &'a str,
    /// Keys in the filter.
    pub n: u64,
    /// Target rate.
    pub rate: Option<f64>,
    /// Kind of keys.
    pub keys: &'a str,
    /// Single or batch.
    pub form: &'a str,
    /// Kernel.
    pub kernel: &'a str,
    /// Operation.
    pub operation: &'a str,
    /// Number of threads.
    pub threads: u32,
}

impl Query<'_> {
    fn matches(&self, row: &Row) -> bool {
        let same = |expected: &str, found: &str| expected.is_empty() || expected == found;
        self.filter == row.filter
            && self.n == row.n
            && (self.rate.is_none() || self.rate == row.target_rate)
            && same(self.keys, &row.keys)
            && same(self.form, &row.form)
            && same(self.kernel, &row.kernel)
            && same(self.operation, &row.operation)
            && self.threads == row.threads
    }
}

impl Results {
    /// Parses a CSV file.
    ///
    /// # Errors
    /// A sentence with the number of the invalid line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut results = Self::default();
        let mut columns = None;
        for (at, line) in text.lines().enumerate() {
            if let Some(note) = line.strip_prefix('#') {
                results.notes.push(note.trim().to_owned());
                continue;
            }
            if line.trim().is_empty() {
                continue;
            }
            let fields = csv_fields(line);
            let Some(columns) = &columns else {
                columns = Some(Columns::find(&fields)?);
                continue;
            };
            let row = columns.row(&fields).map_err(|e| format!("line {}: {e}", at + 1))?;
            results.rows.push(row);
        }
        columns.ok_or("there is no header")?;
        Ok(results)
    }

    /// Returns the matching row; the fastest if there are several, so a query without a kernel selects the best one.
    pub fn find(&self, suite: &str, query: &Query) -> Option<&Row> {
        let matching = self.rows.iter().filter(|row| row.suite == suite && query.matches(row));
        matching.min_by(|a, b| a.ns_median.total_cmp(&b.ns_median))
    }

    /// Returns the time of `numerator` divided by that of `denominator`, paired by round, of rows of the same suite.
    pub fn ratio(&self, numerator: &Query, denominator: &Query) -> Option<f64> {
        ["rivals", "own"].iter().find_map(|suite| {
            let (over, under) = (self.find(suite, numerator)?, self.find(suite, denominator)?);
            paired(&under.ns_by_round, &over.ns_by_round)
        })
    }

    /// Returns the name of the random reads with the best prefetch distance: the limit of the machine at this size.
    pub fn best_random_reads(&self, n: u64) -> Option<&str> {
        let reads =
            self.rows.iter().filter(|row| row.n == n && row.filter.starts_with(RANDOM_READS));
        let best = reads.min_by(|a, b| a.ns_median.total_cmp(&b.ns_median));
        best.map(|row| row.filter.as_str())
    }

    /// Returns the distinct numbers of keys, ascending.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.rows.iter().map(|row| row.n).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Returns the distinct names of filters, in the order of their first rows.
    pub fn filters(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.filter.as_str()) {
                names.push(&row.filter);
            }
        }
        names
    }
}

/// The position of each column of [`HEADER`] in a line.
struct Columns {
    positions: [usize; HEADER.len()],
    count: usize,
}

impl Columns {
    fn find(header: &[String]) -> Result<Self, String> {
        let mut positions = [0; HEADER.len()];
        for (found, name) in positions.iter_mut().zip(HEADER) {
            let position = header.iter().position(|field| field == name);
            *found = position.ok_or_else(|| format!("the header has no column `{name}`"))?;
        }
        Ok(Self { positions, count: header.len() })
    }

    fn row(&self, fields: &[String]) -> Result<Row, String> {
        if fields.len() != self.count {
            return Err(format!("{} fields, expected {}", fields.len(), self.count));
        }
        Row::parse(self.positions.map(|position| fields[position].as_str()))
    }
}
