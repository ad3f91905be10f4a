//! Numbers as people write and read them.

pub(crate) use petal_lines::readable_size as size;

/// Parses a number of keys: `5000000000`, `5_000_000_000`, `5e9`.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let expected = || format!("'{text}' is no number of keys; write 5000000 or 5e6");
    let plain = text.replace('_', "");
    if let Ok(count) = plain.parse::<u64>() {
        return if count > 0 { Ok(count) } else { Err(expected()) };
    }
    let count: f64 = plain.parse().map_err(|_| expected())?;
    if count.fract() != 0.0 || !(1.0..1e18).contains(&count) {
        return Err(expected());
    }
    Ok(count as u64)
}

/// Parses a false-positive rate: `0.01`, `1%`, `1e-6`, `1/1000`.
pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    let expected =
        || format!("'{text}' is no rate between 0 and 1; write 0.01, 1%, 1e-6 or 1/1000");
    let number = |text: &str| text.parse::<f64>().map_err(|_| expected());
    let rate = if let Some(percent) = text.strip_suffix('%') {
        number(percent)? / 100.0
    } else if let Some((one, many)) = text.split_once('/') {
        number(one)? / number(many)?
    } else {
        number(text)?
    };
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err(expected()) }
}

/// Parses a span of time into whole seconds: `30s`, `15m`, `12h`, `7d`, `2w`.
pub(crate) fn parse_duration(text: &str) -> Result<u64, String> {
    let expected =
        || format!("'{text}' is no span of time; write a number and a unit: 30s, 15m, 12h, 7d, 2w");
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

/// A span of time as it can be parsed: `7d`, `90m`.
pub(crate) fn span(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("m", 60)];
    let whole = units.into_iter().find(|(_, unit)| seconds > 0 && seconds.is_multiple_of(*unit));
    let (name, unit) = whole.unwrap_or(("s", 1));
    format!("{}{name}", seconds / unit)
}

/// A count with its thousands apart: `5,000,000`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many keys: `1 key`, `5,000 keys`.
pub(crate) fn keys(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "key" } else { "keys" })
}

/// A rate as a person would say it: `1 %`, `0.034 %`, `1.2e-7`.
pub(crate) fn rate(rate: f64) -> String {
    if rate >= 1e-5 || rate == 0.0 {
        format!("{} %", significant(rate * 100.0))
    } else {
        format!("{rate:.2e}")
    }
}

/// Three significant digits, without trailing zeros.
pub(crate) fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size(1536 << 20), "1.5 GiB");
        assert_eq!(size(700), "700 bytes");
    }

    #[test]
    fn spans_of_time() {
        for (text, seconds) in
            [("30s", 30), ("15m", 900), ("12h", 43_200), ("7d", 604_800), ("1.5h", 5400)]
        {
            assert_eq!(parse_duration(text), Ok(seconds), "{text}");
        }
        for text in ["30s", "15m", "12h", "7d", "90m", "61s"] {
            assert_eq!(span(parse_duration(text).unwrap()), text);
        }
        for bad in ["", "d", "7", "7 d", "0s", "-1d", "7D", "7mo", "nans", "1e300w", "0.1s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_and_rates() {
        assert_eq!(parse_count("5e9"), Ok(5_000_000_000));
        assert_eq!(parse_count("5_000"), Ok(5000));
        for bad in ["0", "-5", "1.5", "", "x", "1e30", "nan"] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
        assert_eq!(count(5_000_000), "5,000,000");
        assert_eq!((count(0), count(999), count(1000)), ("0".into(), "999".into(), "1,000".into()));
        assert_eq!(
            (keys(0), keys(1), keys(1000)),
            ("0 keys".into(), "1 key".into(), "1,000 keys".into())
        );
        for (text, value) in [("0.01", 0.01), ("1%", 0.01), ("1/1000", 0.001), ("1e-6", 1e-6)] {
            assert_eq!(parse_rate(text), Ok(value));
        }
        for bad in ["0", "1", "100%", "-1%", "1/0", "x", "", "nan", "2"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
        assert_eq!(rate(0.01), "1 %");
        assert_eq!(rate(0.000_345_6), "0.0346 %");
        assert_eq!(rate(1.23e-7), "1.23e-7");
        assert_eq!(significant(1234.0), "1234");
    }
}
