//! Words of a command as numbers and options.

/// A whole number, written as the server itself writes it: `+1`, `01` and `-0` are none.
pub(super) fn integer(word: &[u8]) -> Option<i64> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let is_plain = word == b"0" || matches!(digits.first(), Some(b'1'..=b'9'));
    std::str::from_utf8(word).ok().filter(|_| is_plain)?.parse().ok()
}

/// A number, as the server takes them: what is too large is none, but `inf` is one.
pub(super) fn number(word: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    let is_said = number.is_finite() || word.iter().any(|byte| matches!(byte, b'i' | b'I'));
    Some(number).filter(|number| !number.is_nan() && is_said)
}

/// Whether a word is an option, however it is written.
pub(super) fn is(word: &[u8], option: &str) -> bool {
    word.eq_ignore_ascii_case(option.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_the_server_takes() {
        for (word, number) in [("0", 0), ("7", 7), ("-12", -12), ("9223372036854775807", i64::MAX)]
        {
            assert_eq!(integer(word.as_bytes()), Some(number));
        }
        for word in
            ["", "-", "+1", "01", "-0", "-01", " 1", "1 ", "1.5", "0x1", "9223372036854775808"]
        {
            assert_eq!(integer(word.as_bytes()), None, "{word}");
        }
        for (word, value) in [("0.5", 0.5), ("1e-3", 0.001), (".25", 0.25), ("inf", f64::INFINITY)]
        {
            assert_eq!(number(word.as_bytes()), Some(value));
        }
        for word in ["", "nan", "-NaN", "1e400", "-1e400", "0.5x", " 0.5", "0,5"] {
            assert_eq!(number(word.as_bytes()), None, "{word}");
        }
    }
}
