//! A plot of a few lines, in plain characters: on a terminal, in a pipe and in a mail it is the
//! same picture.

use std::fmt::Write as _;

/// Where nobody tells how wide a line may be.
const WIDTH: usize = 80;
/// Wider than that, bars are no easier to compare.
const MOST: usize = 100;

/// Columns of the terminal that standard output is; 80 where it is none.
pub(crate) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(WIDTH)
}

/// A bar for each row, from the first to the last that is not empty, drawn to the longest of them
/// within so many columns. A row that is not empty has a mark at least.
pub(crate) fn bars(rows: &[(String, u64)], columns: usize) -> String {
    let full = |(_, count): &(String, u64)| *count > 0;
    let (Some(first), Some(last)) = (rows.iter().position(full), rows.iter().rposition(full))
    else {
        return String::new();
    };
    let rows = &rows[first..=last];
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let names = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let counts = crate::text::count(most).len();
    // Two blanks before each of the three columns but the first.
    let room = columns.min(MOST).saturating_sub(names + counts + 6).max(1);
    let mut text = String::new();
    for (name, count) in rows {
        let marks = (*count as f64 / most as f64 * room as f64).round() as usize;
        let marks = if *count > 0 { marks.max(1) } else { 0 };
        let (bar, count) = ("#".repeat(marks), crate::text::count(*count));
        // Writing into a string does not fail.
        let _ = writeln!(text, "  {name:>names$}  {count:>counts$}  {bar}");
    }
    // No line ends in blanks.
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fit_their_columns_and_show_what_is_there() {
        let counts = [0, 1, 50, 100_000, 0, 25_000, 0].into_iter().enumerate();
        let rows: Vec<_> = counts.map(|(at, count)| (format!("{at} %"), count)).collect();
        for columns in [0, 10, 40, 80, 1000] {
            let text = bars(&rows, columns);
            assert_eq!(text.lines().count(), 5, "from the first to the last that is not empty");
            for line in text.lines() {
                assert!(line.len() <= columns.clamp(18, MOST), "{columns}: {line}");
                assert_eq!(line.trim_end(), line);
            }
            let marks = |line: usize| text.lines().nth(line).unwrap().matches('#').count();
            assert_eq!((marks(0), marks(3)), (1, 0));
            assert!(marks(2) >= marks(4) && marks(2) >= 1);
        }
        assert_eq!(bars(&[("x".into(), 3)], 20), "  x  3  ############\n");
        assert_eq!(bars(&[], 80), "");
        assert_eq!(bars(&[("x".into(), 0)], 80), "");
    }
}
