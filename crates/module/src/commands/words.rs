//! Words of a command as numbers and options.
//!
//! Clients are read strictly. What a master or an append-only file brings has been accepted, perhaps
//! by RedisBloom, which reads more loosely: such words are taken as RedisBloom takes them, for a
//! command that is refused here would be a key that is missing.

use crate::ffi::Call;

/// How loosely words are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// A client's.
    Strict,
    /// What has been accepted.
    Accepted,
}

impl Reading {
    pub(super) fn of(call: &Call<'_>) -> Self {
        if call.is_replayed() { Self::Accepted } else { Self::Strict }
    }

    /// Whether words that are no option of a command are passed over.
    pub(super) fn passes_over(self) -> bool {
        self == Self::Accepted
    }

    /// A number, which RedisBloom also takes as hexadecimal.
    pub(super) fn number(self, word: &[u8]) -> Option<f64> {
        match self {
            Self::Strict => number(word),
            Self::Accepted => number(word).or_else(|| hexadecimal(word)),
        }
    }

    /// The option of `INSERT` that a word is, in capitals: of those that RedisBloom tells apart by
    /// one letter, others may follow.
    pub(super) fn option(self, word: &[u8], of_bloom: bool) -> Vec<u8> {
        let word = word.to_ascii_uppercase();
        let option: &[u8] = match (self, word.as_slice()) {
            (Self::Strict, _) => return word,
            (_, [b'I', ..]) => b"ITEMS",
            (_, [b'C', ..]) => b"CAPACITY",
            (_, [b'N', ..]) if !of_bloom => b"NOCREATE",
            (_, [b'N', _, b'C', ..]) => b"NOCREATE",
            (_, [b'N', ..]) => b"NONSCALING",
            (_, [b'E', b'R', ..]) if of_bloom => b"ERROR",
            (_, [b'E', ..]) if of_bloom => b"EXPANSION",
            _ => return word,
        };
        option.to_vec()
    }
}

/// A number such as `0x1.8p-3`, as C reads it. Of more digits than any program writes there is none.
fn hexadecimal(word: &[u8]) -> Option<f64> {
    const MOST_DIGITS: usize = 30;
    const MOST_POWER: u32 = 1000;
    let word = std::str::from_utf8(word).ok()?.to_ascii_lowercase();
    let (negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word.strip_prefix('+').unwrap_or(&word)),
    };
    let digits = digits.strip_prefix("0x")?;
    let (digits, power) = match digits.split_once('p') {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all = [whole, part].concat();
    if all.len() > MOST_DIGITS || !all.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mantissa = u128::from_str_radix(&all, 16).ok()? as f64;
    let power = power.checked_sub(4 * part.len() as i32)?;
    let number =
        mantissa * 2f64.powi(Some(power).filter(|power| power.unsigned_abs() <= MOST_POWER)?);
    Some(if negative { -number } else { number })
}

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
    fn what_has_been_accepted_is_read_as_redisbloom_does() {
        let read = |word: &str, of_bloom| {
            let option = Reading::Accepted.option(word.as_bytes(), of_bloom);
            String::from_utf8(option).unwrap()
        };
        for (word, bloom, cuckoo) in [
            ("items", "ITEMS", "ITEMS"),
            ("IT", "ITEMS", "ITEMS"),
            ("CAP", "CAPACITY", "CAPACITY"),
            ("CRAZY", "CAPACITY", "CAPACITY"),
            ("err", "ERROR", "ERR"),
            ("E", "EXPANSION", "E"),
            ("EXR", "EXPANSION", "EXR"),
            ("EZ", "EXPANSION", "EZ"),
            ("NOPE", "NONSCALING", "NOCREATE"),
            ("N", "NONSCALING", "NOCREATE"),
            ("noc", "NOCREATE", "NOCREATE"),
            ("NXC", "NOCREATE", "NOCREATE"),
            ("seed", "SEED", "SEED"),
            ("", "", ""),
        ] {
            assert_eq!((read(word, true).as_str(), read(word, false).as_str()), (bloom, cuckoo));
        }
        assert_eq!(Reading::Strict.option(b"err", true), b"ERR");
        assert_eq!(Reading::Strict.number(b"0x1p-3"), None);
        for (word, value) in [
            ("0x1p-3", 0.125),
            ("0X.8P0", 0.5),
            ("0x.8", 0.5),
            ("+0x1.999999999999ap-4", 0.1),
            ("-0x10", -16.0),
            ("0x8p+1", 16.0),
            ("1e-3", 0.001),
        ] {
            assert_eq!(Reading::Accepted.number(word.as_bytes()), Some(value), "{word}");
        }
        for word in [
            "",
            "0x",
            "0x.",
            "0xp1",
            "0x1p",
            "0x1p9999",
            "0x1p-2147483648",
            "0x+1",
            "0x1.1.1",
            "0x-1",
            "0x8p-4x",
            "0x0000000000000000000000000000001p-3",
        ] {
            assert_eq!(Reading::Accepted.number(word.as_bytes()), None, "{word}");
        }
    }

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
