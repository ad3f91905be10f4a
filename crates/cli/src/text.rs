//! Formats and parses numbers.

use std::borrow::Cow;

pub(crate) use petal_lines::{
    format_count as count, format_keys as keys, format_number as significant, format_rate as rate,
    format_size as size,
};

/// Escapes what could control a terminal or hide a part of a line: control characters and marks
/// that change the direction of text. Names of files may contain them.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    let hides = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| match hides(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Formats an estimated number: three significant digits below 1,000, and thousands separators from
/// there.
pub(crate) fn amount(value: f64) -> String {
    if value < 999.5 { significant(value) } else { count(value.round() as u64) }
}

/// Writes the numbers in a text with thousands separators.
pub(crate) fn grouped(text: &str) -> String {
    let mut grouped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let length = rest[start..].find(|c: char| !c.is_ascii_digit());
        let end = length.map_or(rest.len(), |length| start + length);
        grouped.push_str(&rest[..start]);
        match rest[start..end].parse() {
            Ok(number) => grouped.push_str(&count(number)),
            Err(_) => grouped.push_str(&rest[start..end]),
        }
        rest = &rest[end..];
    }
    grouped + rest
}

/// Parses a whole number above 0: `5000000000`, `5,000,000,000`, `5_000_000_000`, `5e9`.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    parse_whole(text, "5000000, 5,000,000, 5e6 or 5M")
}

/// Parses how often a line occurs, or how many lines to print: as [`parse_count`], but the examples in
/// messages are small.
pub(crate) fn parse_number_of_lines(text: &str) -> Result<u64, String> {
    parse_whole(text, "1, 10 or 1,000")
}

/// Parses a number of parts, at least 1: `3`, `10`.
pub(crate) fn parse_number_of_parts(text: &str) -> Result<u64, String> {
    parse_whole(text, "1 or 10")
}

/// Parses a whole number above 0, which may end in k, M, G or T: a power of 1,000. The message for other texts
/// has these examples.
fn parse_whole(text: &str, examples: &str) -> Result<u64, String> {
    let expected = || format!("'{text}' is not a whole number above 0; write {examples}");
    let exponent = match text.bytes().last() {
        Some(b'k' | b'K') => "e3",
        Some(b'm' | b'M') => "e6",
        Some(b'g' | b'G') => "e9",
        Some(b't' | b'T') => "e12",
        _ => "",
    };
    let number = if exponent.is_empty() { text } else { &text[..text.len() - 1] };
    let digits = match number.contains(',') {
        true if !is_grouped(number) => return Err(expected()),
        true => number.replace(',', ""),
        false => number.replace('_', ""),
    };
    let plain = digits + exponent;
    if let Ok(count) = plain.parse::<u64>() {
        return if count > 0 { Ok(count) } else { Err(expected()) };
    }
    let count: f64 = plain.parse().map_err(|_| expected())?;
    if count >= TOO_LARGE {
        return Err(format!("'{text}' is more than the maximum, {}", self::count(u64::MAX)));
    }
    if count.fract() != 0.0 || count.is_nan() || count < 1.0 {
        return Err(expected());
    }
    Ok(count as u64)
}

/// 2^64, the first number that `u64` does not have.
const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;

/// Parses a seed: any number of 64 bits.
pub(crate) fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!("'{text}' is not a whole number from 0 to {}; write e.g. 42", count(u64::MAX))
    })
}

/// Returns true for digits in groups of three, as [`count`] formats them: `5,000`, not `5,00`.
fn is_grouped(text: &str) -> bool {
    let all_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    text.split(',').enumerate().all(|(at, group)| {
        let length = if at == 0 { 1..=3 } else { 3..=3 };
        length.contains(&group.len()) && all_digits(group)
    })
}

/// Parses a divisor: a number as [`parse_count`] reads it, at least 2.
pub(crate) fn parse_factor(text: &str) -> Result<u64, String> {
    match parse_count(text) {
        Ok(factor) if factor > 1 => Ok(factor),
        _ => Err(format!("'{text}' is not a factor; write a whole number from 2, e.g. 4")),
    }
}

/// Parses a false-positive rate: `0.01`, `1%`, `1e-6`, `1/1000`.
pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    let expected =
        || format!("'{text}' is not a rate between 0 and 1; write 0.01, 1%, 1e-6 or 1/1000");
    parse_ratio(text).filter(|rate| *rate > 0.0 && *rate < 1.0).ok_or_else(expected)
}

/// Parses a share above 0, at most all: `0.8`, `80%`, `4/5`.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let expected = || format!("'{text}' is not a share above 0 and at most 1; write 0.8 or 80%");
    parse_ratio(text).filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(expected)
}

/// Parses a number, a percentage or a fraction.
fn parse_ratio(text: &str) -> Option<f64> {
    let number = |text: &str| text.parse::<f64>().ok();
    Some(if let Some(percent) = text.strip_suffix('%') {
        number(percent)? / 100.0
    } else if let Some((one, many)) = text.split_once('/') {
        number(one)? / number(many)?
    } else {
        number(text)?
    })
}

/// Parses a duration into whole seconds: `30s`, `15m`, `12h`, `7d`, `2w`.
pub(crate) fn parse_duration(text: &str) -> Result<u64, String> {
    let expected =
        || format!("'{text}' is not a duration; write a number and a unit: 30s, 15m, 12h, 7d, 2w");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "" => return Err(format!("'{text}' has no unit; write {text}h or {text}d")),
        _ => return Err(expected()),
    };
    let seconds = digits.parse::<f64>().map_err(|_| expected())? * f64::from(unit);
    if !(1.0..1e15).contains(&seconds) {
        return Err(expected());
    }
    Ok(seconds.round() as u64)
}

/// Formats a duration as [`parse_duration`] reads it: `7d`, `90m`.
pub(crate) fn duration(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("m", 60)];
    let whole = units.into_iter().find(|(_, unit)| seconds > 0 && seconds.is_multiple_of(*unit));
    let (name, unit) = whole.unwrap_or(("s", 1));
    format!("{}{name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_formatted() {
        for (text, seconds) in
            [("30s", 30), ("15m", 900), ("12h", 43_200), ("7d", 604_800), ("1.5h", 5400)]
        {
            assert_eq!(parse_duration(text), Ok(seconds), "{text}");
        }
        for text in ["30s", "15m", "12h", "7d", "90m", "61s"] {
            assert_eq!(duration(parse_duration(text).unwrap()), text);
        }
        for bad in ["", "d", "7", "7 d", "0s", "-1d", "7D", "7mo", "nans", "1e300w", "0.1s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_in_texts_are_grouped() {
        for (text, with) in [
            ("19728 blocks of 512 bits, 8 probes", "19,728 blocks of 512 bits, 8 probes"),
            ("1000000", "1,000,000"),
            ("none", "none"),
            ("", ""),
        ] {
            assert_eq!(grouped(text), with);
        }
    }

    #[test]
    fn large_amounts_have_separators() {
        for (value, text) in
            [(0.0, "0"), (0.1234, "0.123"), (12.34, "12.3"), (999.4, "999"), (155_283.4, "155,283")]
        {
            assert_eq!(amount(value), text);
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert!(matches!(escaped("f\u{fc}r alle"), Cow::Borrowed(_)));
        assert_eq!(escaped("a\u{1b}[31m\nb\u{202e}c"), "a\\u{1b}[31m\\nb\\u{202e}c");
    }

    #[test]
    fn counts_and_rates_are_parsed() {
        assert_eq!(parse_count("5e9"), Ok(5_000_000_000));
        assert_eq!(parse_count("5_000"), Ok(5000));
        for grouped in ["5,000,000", "5_000_000", "5000_000"] {
            assert_eq!(parse_count(grouped), Ok(5_000_000), "{grouped}");
        }
        assert_eq!(parse_count(&count(u64::MAX)), Ok(u64::MAX));
        assert_eq!((parse_factor("1,024"), parse_factor("1").is_err()), (Ok(1024), true));
        for bad in ["5,00", "5,0000", ",000", "5,", "5,000e3", "5,000_000", "5000,000", "0,000"] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
        for (short, count) in
            [("1k", 1000), ("2.3M", 2_300_000), ("5G", 5_000_000_000), ("1,000T", 1e15 as u64)]
        {
            assert_eq!(
                (parse_count(short), parse_count(&short.to_lowercase())),
                (Ok(count), Ok(count))
            );
        }
        for bad in ["0", "-5", "1.5", "", "x", "nan", "-inf", "M", "0M", "1e6M", "1MM", "0.0001k"] {
            let message = parse_count(bad).unwrap_err();
            assert!(message.ends_with("above 0; write 5000000, 5,000,000, 5e6 or 5M"));
        }
        assert_eq!(parse_count("1e18"), Ok(1_000_000_000_000_000_000));
        assert_eq!(parse_count("1.8e19"), Ok(18_000_000_000_000_000_000));
        for large in ["18446744073709551616", "2e19", "1e30", "inf"] {
            let message = format!("'{large}' is more than the maximum, 18,446,744,073,709,551,615");
            assert_eq!(parse_count(large), Err(message));
        }
        let small = "'0' is not a whole number above 0; write 1, 10 or 1,000";
        assert_eq!(parse_number_of_lines("0"), Err(small.to_owned()));
        assert_eq!(parse_seed("42"), Ok(42));
        for bad in ["-1", "x", "18446744073709551616", "1.5", ""] {
            assert!(parse_seed(bad).unwrap_err().contains("a whole number from 0 to"), "{bad}");
        }
        for (text, value) in [("0.01", 0.01), ("1%", 0.01), ("1/1000", 0.001), ("1e-6", 1e-6)] {
            assert_eq!(parse_rate(text), Ok(value));
        }
        for bad in ["0", "1", "100%", "-1%", "1/0", "x", "", "nan", "2"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
        for (text, value) in [("0.8", 0.8), ("80%", 0.8), ("4/5", 0.8), ("1", 1.0), ("100%", 1.0)] {
            assert_eq!(parse_share(text), Ok(value));
        }
        for bad in ["0", "101%", "-1%", "1/0", "x", "", "nan", "2"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
    }
}
