//! Parses options by the specification of their command, and numbers.
//!
//! Arguments from clients are parsed strictly. Arguments from a master or an append-only file may
//! come from RedisBloom, which is more lenient; they are parsed as RedisBloom parses them, because
//! rejecting such a command would lose the key.

use std::ops::RangeInclusive;

use crate::bindings::Call;
use crate::bindings::command_spec::Arg;

/// An option among the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOption<'a> {
    /// A token without a value, or the token before the items.
    Flag(&'static str),
    /// A token and the argument after it, if there is one.
    Value(&'static str, Option<&'a [u8]>),
    /// An argument that the specification does not have.
    Unknown(&'a [u8]),
}

/// Iterates over the options of a call, in order.
pub(super) struct CallOptions<I, F> {
    spec: &'static [Arg],
    args: I,
    spell: F,
}

impl<'a, I: ExactSizeIterator<Item = &'a [u8]>, F: Fn(&[u8]) -> Vec<u8>> CallOptions<I, F> {
    /// Parses arguments by a specification. `spell` returns a token as it is in the specification.
    pub(super) fn new(spec: &'static [Arg], args: I, spell: F) -> Self {
        Self { spec, args, spell }
    }

    /// Returns the number of arguments that have not been parsed.
    pub(super) fn rest(&self) -> usize {
        self.args.len()
    }
}

impl<'a, I: Iterator<Item = &'a [u8]>, F: Fn(&[u8]) -> Vec<u8>> Iterator for CallOptions<I, F> {
    type Item = CallOption<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let given = self.args.next()?;
        Some(match find_token(self.spec, &(self.spell)(given)) {
            None => CallOption::Unknown(given),
            Some((token, arg)) if arg.takes_value() && !arg.multiple => {
                CallOption::Value(token, self.args.next())
            }
            Some((token, _)) => CallOption::Flag(token),
        })
    }
}

/// Returns the argument with a token, also among alternatives.
fn find_token(spec: &'static [Arg], given: &[u8]) -> Option<(&'static str, &'static Arg)> {
    spec.iter().find_map(|arg| match arg.token {
        Some(token) if token.to_bytes() == given => Some((token.to_str().ok()?, arg)),
        Some(_) => None,
        None => find_token(arg.parts, given),
    })
}

/// Returns whether a specification has a token, in any case.
pub(super) fn is_token(spec: &'static [Arg], given: &[u8]) -> bool {
    find_token(spec, &given.to_ascii_uppercase()).is_some()
}

/// How strictly arguments are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// For clients.
    Strict,
    /// For replayed commands.
    Lenient,
}

impl Strictness {
    pub(super) fn of(call: &Call<'_>) -> Self {
        if call.is_replay() { Self::Lenient } else { Self::Strict }
    }

    /// Returns whether unknown options are ignored.
    pub(super) fn ignores_unknown(self) -> bool {
        self == Self::Lenient
    }

    /// Parses a number; RedisBloom also accepts hexadecimal ones.
    pub(super) fn number(self, arg: &[u8]) -> Option<f64> {
        match self {
            Self::Strict => number(arg),
            Self::Lenient => number(arg).or_else(|| hexadecimal(arg)),
        }
    }

    /// Returns the option of `BF.INSERT` or `CF.INSERT` in upper case. RedisBloom checks only the
    /// first letters.
    pub(super) fn option(self, arg: &[u8], of_bloom: bool) -> Vec<u8> {
        let arg = arg.to_ascii_uppercase();
        let option: &[u8] = match (self, arg.as_slice()) {
            (Self::Strict, _) => return arg,
            (_, [b'I', ..]) => b"ITEMS",
            (_, [b'C', ..]) => b"CAPACITY",
            (_, [b'N', ..]) if !of_bloom => b"NOCREATE",
            (_, [b'N', _, b'C', ..]) => b"NOCREATE",
            (_, [b'N', ..]) => b"NONSCALING",
            (_, [b'E', b'R', ..]) if of_bloom => b"ERROR",
            (_, [b'E', ..]) if of_bloom => b"EXPANSION",
            _ => return arg,
        };
        option.to_vec()
    }
}

/// Parses a hexadecimal float such as `0x1.8p-3`; `None` for more than 30 digits.
fn hexadecimal(arg: &[u8]) -> Option<f64> {
    const MAX_DIGITS: usize = 30;
    const MAX_EXPONENT: u32 = 1000;
    let arg = std::str::from_utf8(arg).ok()?.to_ascii_lowercase();
    let (negative, digits) = match arg.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, arg.strip_prefix('+').unwrap_or(&arg)),
    };
    let digits = digits.strip_prefix("0x")?;
    let (digits, exponent) = match digits.split_once('p') {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = [integer, fraction].concat();
    if digits.len() > MAX_DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mantissa = u128::from_str_radix(&digits, 16).ok()? as f64;
    let exponent = exponent.checked_sub(4 * fraction.len() as i32)?;
    let number = mantissa
        * 2f64.powi(Some(exponent).filter(|exponent| exponent.unsigned_abs() <= MAX_EXPONENT)?);
    Some(if negative { -number } else { number })
}

/// Parses an integer as the server does: `+1`, `01` and `-0` are invalid.
pub(super) fn integer(arg: &[u8]) -> Option<i64> {
    let digits = arg.strip_prefix(b"-").unwrap_or(arg);
    let is_plain = arg == b"0" || matches!(digits.first(), Some(b'1'..=b'9'));
    std::str::from_utf8(arg).ok().filter(|_| is_plain)?.parse().ok()
}

/// Converts an integer above 0.
pub(super) fn positive(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|number| *number > 0)
}

/// Parses an integer within a range.
pub(super) fn integer_within<T: TryFrom<i64> + PartialOrd>(
    arg: &[u8],
    range: &RangeInclusive<T>,
) -> Option<T> {
    integer(arg).and_then(|number| T::try_from(number).ok()).filter(|it| range.contains(it))
}

/// Parses a number as the server does: overflow and underflow are invalid, but `inf` is valid.
pub(super) fn number(arg: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(arg).ok()?.parse().ok()?;
    let overflows = number.is_infinite() && !arg.iter().any(|byte| matches!(byte, b'i' | b'I'));
    let mut mantissa = arg.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    let underflows = number == 0.0 && mantissa.any(|byte| matches!(byte, b'1'..=b'9'));
    Some(number).filter(|number| !number.is_nan() && !overflows && !underflows)
}

/// Returns whether an argument is an option, in any case.
pub(super) fn is_option(arg: &[u8], option: &str) -> bool {
    arg.eq_ignore_ascii_case(option.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::command_spec::ArgKind;

    #[test]
    fn options_are_found_by_the_specification() {
        const SPEC: &[Arg] = &[
            Arg::KEY,
            Arg::one_of(
                c"growth",
                &[Arg::token(c"none", c"NONE"), Arg::new(c"n", ArgKind::Integer).after(c"BY")],
            ),
            Arg::ITEMS.after(c"ITEMS"),
        ];
        let args = [&b"none"[..], b"By", b"NONE", b"key", b"items", b"by"];
        let options = CallOptions::new(SPEC, args.into_iter(), <[u8]>::to_ascii_uppercase);
        let expected = [
            CallOption::Flag("NONE"),
            CallOption::Value("BY", Some(b"NONE")),
            CallOption::Unknown(b"key"),
            CallOption::Flag("ITEMS"),
            CallOption::Value("BY", None),
        ];
        assert!(options.eq(expected));
    }

    #[test]
    fn replayed_options_are_parsed_as_in_redisbloom() {
        let option = |arg: &str, of_bloom| {
            let name = Strictness::Lenient.option(arg.as_bytes(), of_bloom);
            String::from_utf8(name).unwrap()
        };
        for (arg, bloom, cuckoo) in [
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
            assert_eq!((option(arg, true).as_str(), option(arg, false).as_str()), (bloom, cuckoo));
        }
        assert_eq!(Strictness::Strict.option(b"err", true), b"ERR");
        assert_eq!(Strictness::Strict.number(b"0x1p-3"), None);
        for (arg, value) in [
            ("0x1p-3", 0.125),
            ("0X.8P0", 0.5),
            ("0x.8", 0.5),
            ("+0x1.999999999999ap-4", 0.1),
            ("-0x10", -16.0),
            ("0x8p+1", 16.0),
            ("1e-3", 0.001),
        ] {
            assert_eq!(Strictness::Lenient.number(arg.as_bytes()), Some(value), "{arg}");
        }
        for arg in [
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
            assert_eq!(Strictness::Lenient.number(arg.as_bytes()), None, "{arg}");
        }
    }

    #[test]
    fn numbers_are_parsed_as_by_the_server() {
        for (arg, number) in [("0", 0), ("7", 7), ("-12", -12), ("9223372036854775807", i64::MAX)] {
            assert_eq!(integer(arg.as_bytes()), Some(number));
        }
        for arg in
            ["", "-", "+1", "01", "-0", "-01", " 1", "1 ", "1.5", "0x1", "9223372036854775808"]
        {
            assert_eq!(integer(arg.as_bytes()), None, "{arg}");
        }
        for (arg, value) in [
            ("0.5", 0.5),
            ("1e-3", 0.001),
            (".25", 0.25),
            ("inf", f64::INFINITY),
            ("0", 0.0),
            ("0.0e-400", 0.0),
            ("5e-324", 5e-324),
        ] {
            assert_eq!(number(arg.as_bytes()), Some(value), "{arg}");
        }
        let invalid =
            ["", "nan", "-NaN", "1e400", "-1e400", "1e-400", "-.1E-400", "0.5x", " 0.5", "0,5"];
        for arg in invalid {
            assert_eq!(number(arg.as_bytes()), None, "{arg}");
        }
    }
}
