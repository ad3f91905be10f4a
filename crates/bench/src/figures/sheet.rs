//! The raw rows of the filter benches, read back from their CSV, and the paired ratio of two of them.
//!
//! Lines that begin with `#` tell machine, commit and command; then comes a header, whose columns are found by name.
//! The times of one suite stand in order of its rounds: what two contestants took in one round is compared first, and
//! the median of these ratios is the figure. A neighbour on the machine disturbs both of a round, or one round.

use crate::contest::LIMIT;
use crate::contest::rows::{HEADER, paired};

/// Operation of rows that tell how long a parallel build takes.
pub const BUILD: &str = "build";

/// One CSV file.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// The lines before the header, without `#`.
    pub notes: Vec<String>,
    /// The rows, in order.
    pub rows: Vec<Row>,
}

/// What one contestant took for one operation. A `-` stands where a column does not apply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// `own` or `rivals`: rows of one suite and size were measured in turns.
    pub suite: String,
    /// Keys in the filter.
    pub n: u64,
    /// Name of the contestant.
    pub filter: String,
    /// The false-positive rate asked for.
    pub target_rate: Option<f64>,
    /// The space it takes.
    pub bits_per_key: Option<f64>,
    /// The share of absent keys that were found.
    pub measured_rate: Option<f64>,
    /// How many absent keys that is of.
    pub absent_keys: Option<u64>,
    /// `hash`, `u64` or `bytes`.
    pub keys: String,
    /// `single` or `batch`.
    pub form: String,
    /// `portable`, `avx2`, `avx512` or `neon`.
    pub kernel: String,
    /// `insert`, `absent`, `present`, `mixed` or [`BUILD`].
    pub operation: String,
    /// Threads at work.
    pub threads: u32,
    /// Median of the rounds, ns per key.
    pub ns_median: f64,
    /// ns per key, round by round.
    pub ns_by_round: Vec<f64>,
}

/// Which row is meant. An empty text, or `None`, is any.
#[derive(Clone, Copy, Debug)]
pub struct Pick<'a> {
    /// Name of the contestant.
    pub filter: &'a str,
    /// Keys in the filter.
    pub n: u64,
    /// The rate asked for.
    pub rate: Option<f64>,
    /// Kind of keys.
    pub keys: &'a str,
    /// Single or batch.
    pub form: &'a str,
    /// Kernel.
    pub kernel: &'a str,
    /// Operation.
    pub operation: &'a str,
    /// Threads at work.
    pub threads: u32,
}

impl Pick<'_> {
    fn is(&self, row: &Row) -> bool {
        let same = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
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

impl Sheet {
    /// Reads the text of a CSV file.
    ///
    /// # Errors
    /// A sentence with the number of the line that is not understood.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut sheet = Self::default();
        let mut columns = None;
        for (at, line) in text.lines().enumerate() {
            if let Some(note) = line.strip_prefix('#') {
                sheet.notes.push(note.trim().to_owned());
                continue;
            }
            if line.trim().is_empty() {
                continue;
            }
            let fields = fields(line);
            let Some(columns) = &columns else {
                columns = Some(Columns::read(&fields)?);
                continue;
            };
            let row = columns.row(&fields).map_err(|e| format!("line {}: {e}", at + 1))?;
            sheet.rows.push(row);
        }
        columns.ok_or("there is no header")?;
        Ok(sheet)
    }

    /// The row meant; of several, the fastest. So a pick without a kernel takes the best kernel of the machine.
    pub fn pick(&self, suite: &str, pick: &Pick) -> Option<&Row> {
        let meant = self.rows.iter().filter(|row| row.suite == suite && pick.is(row));
        meant.min_by(|a, b| a.ns_median.total_cmp(&b.ns_median))
    }

    /// How many times as long the first row took as the second, round by round; both of one suite.
    pub fn ratio(&self, over: &Pick, under: &Pick) -> Option<f64> {
        ["rivals", "own"].iter().find_map(|suite| {
            let (over, under) = (self.pick(suite, over)?, self.pick(suite, under)?);
            paired(&under.ns_by_round, &over.ns_by_round)
        })
    }

    /// The limit of the machine at a size, by its name: of all distances that which has the least median.
    pub fn limit(&self, n: u64) -> Option<&str> {
        let meant = self.rows.iter().filter(|row| row.n == n && row.filter.starts_with(LIMIT));
        let best = meant.min_by(|a, b| a.ns_median.total_cmp(&b.ns_median));
        best.map(|row| row.filter.as_str())
    }

    /// The different sizes, ascending.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.rows.iter().map(|row| row.n).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// Where each column stands in a line.
struct Columns {
    places: [usize; HEADER.len()],
    count: usize,
}

impl Columns {
    fn read(header: &[String]) -> Result<Self, String> {
        let place = |name: &str| header.iter().position(|field| field == name);
        let mut places = [0; HEADER.len()];
        for (found, name) in places.iter_mut().zip(HEADER) {
            *found = place(name).ok_or_else(|| format!("the header has no column `{name}`"))?;
        }
        Ok(Self { places, count: header.len() })
    }

    fn row(&self, fields: &[String]) -> Result<Row, String> {
        if fields.len() != self.count {
            return Err(format!("{} fields, expected {}", fields.len(), self.count));
        }
        let [
            suite,
            n,
            filter,
            target,
            bits,
            rate,
            absent_keys,
            keys,
            form,
            kernel,
            operation,
            threads,
            ns,
            rounds,
        ] = self.places.map(|place| fields[place].as_str());
        Ok(Row {
            suite: suite.to_owned(),
            n: number("n", n)?,
            filter: filter.to_owned(),
            target_rate: perhaps("target_rate", target)?,
            bits_per_key: perhaps("bits_per_key", bits)?,
            measured_rate: perhaps("measured_rate", rate)?,
            absent_keys: perhaps("absent_keys", absent_keys)?,
            keys: keys.to_owned(),
            form: form.to_owned(),
            kernel: kernel.to_owned(),
            operation: operation.to_owned(),
            threads: number("threads", threads)?,
            ns_median: time("ns_median", ns)?,
            ns_by_round: rounds
                .split(';')
                .map(|round| time("ns_by_round", round))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("{name} is not a number: `{text}`"))
}

/// Times are divided by and drawn on log scales: anything but a positive number is an error here, not a NaN there.
fn time(name: &str, text: &str) -> Result<f64, String> {
    let value: f64 = number(name, text)?;
    let good = value.is_finite() && value > 0.0;
    good.then_some(value).ok_or_else(|| format!("{name} is not a time: `{text}`"))
}

fn perhaps<T: std::str::FromStr>(name: &str, text: &str) -> Result<Option<T>, String> {
    if matches!(text, "" | "-") { Ok(None) } else { number(name, text).map(Some) }
}

/// The fields of a line (RFC 4180, without line ends in fields).
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::fields;
    use crate::summary::csv_row;

    #[test]
    fn fields_read_back_as_they_were_written() {
        let row = ["a", "", "b,c", "d \"e\"", "f"];
        assert_eq!(fields(csv_row(&row).trim_end()), row);
    }
}
