//! Histograms in ASCII.

use std::fmt::Write as _;

use crate::text;

/// The width if standard output is not a terminal.
const DEFAULT_WIDTH: usize = 80;
/// The maximum width of a histogram.
const MAX_WIDTH: usize = 100;

/// Returns the columns of the terminal, or 80 if standard output is not a terminal.
pub(crate) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|&columns| columns > 0)
        .unwrap_or(DEFAULT_WIDTH)
}

/// Draws a bar for each row, without the empty rows at the start and the end. The longest bar fills
/// the columns; a row that is not empty has at least one character.
pub(crate) fn bars(rows: &[(String, u64)], columns: usize) -> String {
    let full = |(_, count): &(String, u64)| *count > 0;
    let (Some(first), Some(last)) = (rows.iter().position(full), rows.iter().rposition(full))
    else {
        return String::new();
    };
    let rows = &rows[first..=last];
    let max = rows.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let names = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let counts = text::count(max).len();
    // Two spaces before each of the three columns.
    let width = columns.min(MAX_WIDTH).saturating_sub(names + counts + 6).max(1);
    let mut text = String::new();
    for (name, count) in rows {
        let length = (*count as f64 / max as f64 * width as f64).round() as usize;
        let length = if *count > 0 { length.max(1) } else { 0 };
        let (bar, count) = ("#".repeat(length), text::count(*count));
        // Writing into a string does not fail.
        let _ = writeln!(text, "  {name:>names$}  {count:>counts$}  {bar}");
    }
    // Trailing spaces are removed.
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fit_the_columns_and_show_all_rows() {
        let counts = [0, 1, 50, 100_000, 0, 25_000, 0].into_iter().enumerate();
        let rows: Vec<_> = counts.map(|(at, count)| (format!("{at} %"), count)).collect();
        for columns in [0, 10, 40, 80, 1000] {
            let text = bars(&rows, columns);
            assert_eq!(text.lines().count(), 5, "empty rows at both ends are left out");
            for line in text.lines() {
                assert!(line.len() <= columns.clamp(18, MAX_WIDTH), "{columns}: {line}");
                assert_eq!(line.trim_end(), line);
            }
            let length = |line: usize| text.lines().nth(line).unwrap().matches('#').count();
            assert_eq!((length(0), length(3)), (1, 0));
            assert!(length(2) >= length(4) && length(2) >= 1);
        }
        assert_eq!(bars(&[("x".into(), 3)], 20), "  x  3  ############\n");
        assert_eq!(bars(&[], 80), "");
        assert_eq!(bars(&[("x".into(), 0)], 80), "");
    }
}
