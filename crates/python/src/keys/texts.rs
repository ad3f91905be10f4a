//! The texts of dates, times and decimal numbers that are numbers in a column: those of Python's
//! objects of the same value.
//!
//! Source: the conversion of days to dates counts years from March, as in Howard Hinnant's "chrono-Compatible
//! Low-Level Date Algorithms".

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Largest exponent of ten, and smallest negative one, of a number in plain notation.
const PLAIN: i64 = 40;

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

/// 1 January of the year 1 and 31 December 9999, in days since 1970: the dates that Python has.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;

/// Returns the text of `number * 10^exponent`, equal for equal numbers: `-0.5`, `100`, and `1.5E+99` if
/// the exponent is large. `number` is an integer in decimal digits.
pub(crate) fn decimal(number: &str, exponent: i64) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let exponent = exponent + (digits.len() - significant.len()) as i64;
    format!("{sign}{}", notation(significant, exponent))
}

/// Returns the number `digits * 10^exponent`.
fn notation(digits: &str, exponent: i64) -> String {
    let leading = exponent + digits.len() as i64 - 1;
    if !(-PLAIN..=PLAIN).contains(&leading) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{first}{point}{rest}E{leading:+}");
    }
    if exponent >= 0 {
        return format!("{digits}{}", "0".repeat(exponent as usize));
    }
    if leading < 0 {
        return format!("0.{}{digits}", "0".repeat(-leading as usize - 1));
    }
    let (whole, rest) = digits.split_at(leading as usize + 1);
    format!("{whole}.{rest}")
}

/// Returns the text of a date in ISO 8601.
///
/// # Errors
/// `ValueError` if its year is not from 1 to 9999.
pub(crate) fn date(days_since_1970: i64) -> PyResult<String> {
    if !(FIRST_DAY..=LAST_DAY).contains(&days_since_1970) {
        return Err(PyValueError::new_err(
            "keys: a date or a time outside the years 1 to 9999 is not a key; use its number",
        ));
    }
    // Days since 1 March of the year 0, so that a leap day is the last one of its year.
    let days = days_since_1970 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + i64::from(month <= 2);
    Ok(format!("{year:04}-{month:02}-{day:02}"))
}

/// Returns the text of a time in ISO 8601, with 0, 6 or 9 digits of its second; `ticks` are counted from
/// 1970. A time in UTC ends with `+00:00`.
///
/// # Errors
/// `ValueError` if its year is not from 1 to 9999.
pub(crate) fn time(ticks: i64, ticks_per_second: i64, in_utc: bool) -> PyResult<String> {
    let seconds = ticks.div_euclid(ticks_per_second);
    let nanoseconds = ticks.rem_euclid(ticks_per_second) * (1_000_000_000 / ticks_per_second);
    let date = date(seconds.div_euclid(SECONDS_PER_DAY))?;
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = match nanoseconds {
        0 => String::new(),
        whole if whole % 1000 == 0 => format!(".{:06}", whole / 1000),
        nanoseconds => format!(".{nanoseconds:09}"),
    };
    let zone = if in_utc { "+00:00" } else { "" };
    Ok(format!("{date}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}"))
}
