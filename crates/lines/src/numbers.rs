//! Numbers as text.

/// Formats bytes with a suitable unit: `1.5 GiB`, `700 bytes`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
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

/// Returns the lowest size from `bytes` on that [`format_size`] prints without rounding.
pub(crate) fn shown_size(bytes: u64) -> u64 {
    let unit = 1_u128 << (bytes.max(1).ilog2() / 10 * 10).min(40);
    if unit == 1 {
        return bytes;
    }
    let tenths = (u128::from(bytes) * 10).div_ceil(unit);
    u64::try_from((tenths * unit).div_ceil(10)).unwrap_or(bytes)
}

/// Formats a number with thousands separators: `5,000,000`.
#[must_use]
pub fn format_count(number: u64) -> String {
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

/// Formats a number of keys: `1 key`, `5,000 keys`.
#[must_use]
pub fn format_keys(number: u64) -> String {
    format!("{} {}", format_count(number), if number == 1 { "key" } else { "keys" })
}

/// Formats a rate in per cent or scientific notation: `1 %`, `0.034 %`, `1.2e-7`.
#[must_use]
pub fn format_rate(rate: f64) -> String {
    if rate >= 1e-5 || rate == 0.0 {
        format!("{} %", format_number(rate * 100.0))
    } else {
        format!("{rate:.2e}")
    }
}

/// Formats a number with three significant digits, without trailing zeros.
#[must_use]
pub fn format_number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_sizes_are_not_rounded() {
        for bytes in [0, 1, 700, 1024, 1025, 2360 << 20, (1 << 30) - 1, 1 << 30, u64::MAX] {
            let shown = shown_size(bytes);
            assert!(shown >= bytes && shown - bytes <= bytes / 10, "{bytes} {shown}");
        }
        assert_eq!(format_size(shown_size(2360 << 20)), "2.4 GiB");
        assert_eq!(shown_size(2360 << 20), (12_u64 << 30).div_ceil(5));
        assert_eq!([8 << 20, 15 << 20, 2 << 30].map(shown_size), [8 << 20, 15 << 20, 2 << 30]);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(format_size(1536 << 20), "1.5 GiB");
        assert_eq!(format_size(700), "700 bytes");
        assert_eq!(format_count(5_000_000), "5,000,000");
        assert_eq!([0, 999, 1000].map(format_count), ["0", "999", "1,000"]);
        assert_eq!([0, 1, 1000].map(format_keys), ["0 keys", "1 key", "1,000 keys"]);
        assert_eq!(format_rate(0.01), "1 %");
        assert_eq!(format_rate(0.000_345_6), "0.0346 %");
        assert_eq!(format_rate(1.23e-7), "1.23e-7");
        assert_eq!(format_number(1234.0), "1234");
    }
}
