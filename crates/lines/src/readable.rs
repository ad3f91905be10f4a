//! Numbers as people read them.

/// Bytes in the unit a person would choose: `1.5 GiB`, `700 bytes`.
#[must_use]
pub fn readable_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value.fract() == 0.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A count with its thousands apart: `5,000,000`.
#[must_use]
pub fn readable_count(number: u64) -> String {
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
#[must_use]
pub fn readable_keys(number: u64) -> String {
    format!("{} {}", readable_count(number), if number == 1 { "key" } else { "keys" })
}

/// A rate as a person would say it: `1 %`, `0.034 %`, `1.2e-7`.
#[must_use]
pub fn readable_rate(rate: f64) -> String {
    if rate >= 1e-5 || rate == 0.0 {
        format!("{} %", readable_number(rate * 100.0))
    } else {
        format!("{rate:.2e}")
    }
}

/// Three significant digits, without trailing zeros.
#[must_use]
pub fn readable_number(value: f64) -> String {
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
    fn numbers_are_readable() {
        assert_eq!(readable_size(1536 << 20), "1.5 GiB");
        assert_eq!(readable_size(700), "700 bytes");
        assert_eq!(readable_count(5_000_000), "5,000,000");
        assert_eq!([0, 999, 1000].map(readable_count), ["0", "999", "1,000"]);
        assert_eq!([0, 1, 1000].map(readable_keys), ["0 keys", "1 key", "1,000 keys"]);
        assert_eq!(readable_rate(0.01), "1 %");
        assert_eq!(readable_rate(0.000_345_6), "0.0346 %");
        assert_eq!(readable_rate(1.23e-7), "1.23e-7");
        assert_eq!(readable_number(1234.0), "1234");
    }
}
