//! The types of columns, and the bytes that a key has as a value of one.
//!
//! A key is the text that `petal --column` prints for a value:
//!
//! | logical type | text | stored as |
//! |---|---|---|
//! | none, STRING, ENUM, JSON, BSON | the bytes unchanged | BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY |
//! | none, INTEGER | `-42` | INT32, INT64 |
//! | DECIMAL | `997`, `-12.30` | INT32, INT64, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY |
//! | DATE | `2026-11-23` | INT32 |
//! | TIME | `15:04:05.25` | INT32, INT64 |
//! | TIMESTAMP | `2026-11-23T15:04:05.25`, with `Z` if it is an instant | INT64 |
//! | UUID | `f81d4fae-7dec-11d0-a765-00a0c91e6bf6` | FIXED_LEN_BYTE_ARRAY |
//!
//! Keys that are equal as values are one key: `997` and `997.00`. A text that no value of the column
//! has is an error, as is the key of null, the byte ff: a filter says nothing about nulls. Source: the
//! document "Parquet logical type definitions" of Apache Parquet.

use xxhash_rust::xxh64::xxh64;

/// How the values of a column are written as text, and how they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnType {
    pub(super) text: Text,
    pub(super) stored: Stored,
}

/// The text of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    Bytes,
    Integer,
    Unsigned,
    /// The number of digits after the point, and of all digits.
    Decimal {
        scale: u8,
        precision: u8,
    },
    Date,
    /// The number of digits of a fraction of a second.
    Time(u8),
    Timestamp {
        digits: u8,
        /// True if its text ends in `Z`.
        instant: bool,
    },
    Uuid,
}

impl Text {
    /// Returns the name that Parquet gives the type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bytes => "STRING",
            Self::Integer | Self::Unsigned => "INTEGER",
            Self::Decimal { .. } => "DECIMAL",
            Self::Date => "DATE",
            Self::Time(_) => "TIME",
            Self::Timestamp { .. } => "TIMESTAMP",
            Self::Uuid => "UUID",
        }
    }
}

/// The physical type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    Int32,
    Int64,
    Bytes,
    /// Byte arrays of this length.
    Fixed(usize),
}

/// The key of null.
pub(super) const NULL: &[u8] = b"\xff";

/// The largest decimals: 256 bits, 76 digits.
pub(super) const MAX_DECIMAL_BYTES: usize = 32;
pub(super) const MAX_PRECISION: u8 = 76;

impl ColumnType {
    /// Describes a valid key.
    pub(super) fn expected(self, key: &[u8]) -> &'static str {
        if key == NULL {
            return "a value: a Bloom filter says nothing about nulls";
        }
        match (self.text, self.stored) {
            (Text::Bytes, Stored::Fixed(_)) => "just as many bytes as the column's values have",
            (Text::Bytes, _) => "any bytes",
            (Text::Integer, Stored::Int32) => "a whole number of 32 bits, in decimal",
            (Text::Integer, _) => "a whole number of 64 bits, in decimal",
            (Text::Unsigned, Stored::Int32) => {
                "a whole number of 32 bits without a sign, in decimal"
            }
            (Text::Unsigned, _) => "a whole number of 64 bits without a sign, in decimal",
            (Text::Decimal { .. }, _) => {
                "a number that the column's type has, such as 12.30, with no more digits after the \
                 point"
            }
            (Text::Date, _) => "a date such as 2026-11-23",
            (Text::Time(_), _) => {
                "a time such as 15:04:05, with no more digits of the second than the column has"
            }
            (Text::Timestamp { instant: true, .. }, _) => {
                "a time such as 2026-11-23T15:04:05Z, with no more digits of the second than the \
                 column has"
            }
            (Text::Timestamp { .. }, _) => {
                "a time without a zone such as 2026-11-23T15:04:05, with no more digits of the \
                 second than the column has"
            }
            (Text::Uuid, _) => "a UUID such as f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        }
    }

    /// Appends the hashes that a key may have in the column; `None` if it cannot be a value.
    pub(super) fn append_hashes(self, key: &[u8], hashes: &mut Vec<u64>) -> Option<()> {
        if key == NULL {
            return None;
        }
        let mut push = |bytes: &[u8]| hashes.push(xxh64(bytes, 0));
        match (self.text, self.stored) {
            (Text::Bytes, Stored::Fixed(length)) if key.len() != length => return None,
            (Text::Bytes, _) => push(key),
            (Text::Uuid, _) => push(&uuid(key)?),
            (Text::Decimal { scale, precision }, stored) => match stored {
                Stored::Int32 => push(&reversed(decimal::<4>(key, scale)?)),
                Stored::Int64 => push(&reversed(decimal::<8>(key, scale)?)),
                Stored::Fixed(length) => push(fitted(&decimal(key, scale)?, length)?),
                // The shortest form is usual, but not required: every one that the precision allows.
                Stored::Bytes => {
                    let bytes = decimal(key, scale)?;
                    // The bits of the largest number and its sign: log2(10) is less than 3402 / 1024.
                    let longest = (usize::from(precision) * 3402 / 1024 + 2).div_ceil(8);
                    let fits = |length: &usize| fitted(&bytes, *length).is_some();
                    let shortest = (1..=longest).find(fits)?;
                    (shortest..=longest).filter_map(|length| fitted(&bytes, length)).for_each(push);
                }
            },
            (text, stored) => {
                let text_of_key = str::from_utf8(key).ok()?;
                let number: i128 = match text {
                    Text::Date => days(text_of_key)?.into(),
                    Text::Time(digits) => ticks(text_of_key, digits)?,
                    Text::Timestamp { digits, instant } => {
                        let text = match instant {
                            true => text_of_key.strip_suffix('Z')?,
                            false => text_of_key,
                        };
                        let (date, time) = text.split_once('T')?;
                        let day = 86_400 * 10_i128.pow(digits.into());
                        i128::from(days(date)?) * day + ticks(time, digits)?
                    }
                    _ => text_of_key.parse().ok()?,
                };
                match (stored, text) {
                    (Stored::Int32, Text::Unsigned) => {
                        push(&u32::try_from(number).ok()?.to_le_bytes());
                    }
                    (Stored::Int32, _) => push(&i32::try_from(number).ok()?.to_le_bytes()),
                    (_, Text::Unsigned) => push(&u64::try_from(number).ok()?.to_le_bytes()),
                    _ => push(&i64::try_from(number).ok()?.to_le_bytes()),
                }
            }
        }
        Some(())
    }
}

fn reversed<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.reverse();
    bytes
}

/// Returns a decimal number in units of 10^-`scale`, as a big-endian two's complement.
fn decimal<const N: usize>(key: &[u8], scale: u8) -> Option<[u8; N]> {
    let (negative, digits) = match key {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &digits[..0]),
    };
    let scale = usize::from(scale);
    let (kept, rest) = fraction.split_at(fraction.len().min(scale));
    if whole.is_empty() || point.is_some() && fraction.is_empty() || rest.iter().any(|b| *b != b'0')
    {
        return None;
    }
    let zeros = std::iter::repeat_n(&b'0', scale - kept.len());
    let mut bytes = [0; N];
    for digit in whole.iter().chain(kept).chain(zeros) {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        let mut carry = u16::from(digit);
        for byte in bytes.iter_mut().rev() {
            let product = u16::from(*byte) * 10 + carry;
            (*byte, carry) = (product as u8, product >> 8);
        }
        // The highest bit is the sign.
        if carry != 0 || bytes[0] > 0x7f {
            return None;
        }
    }
    if negative {
        let mut carry = true;
        for byte in bytes.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    Some(bytes)
}

/// Returns the last bytes of a big-endian two's complement if they are the same number.
fn fitted(bytes: &[u8; MAX_DECIMAL_BYTES], length: usize) -> Option<&[u8]> {
    let (sign, rest) = bytes.split_at(bytes.len().checked_sub(length)?);
    let extension = if *rest.first()? > 0x7f { 0xff } else { 0 };
    sign.iter().all(|byte| *byte == extension).then_some(rest)
}

/// Returns the day of `2026-11-23`, counted from 1970-01-01 in the Gregorian calendar. Source: Howard
/// Hinnant's `days_from_civil`.
fn days(date: &str) -> Option<i64> {
    let (negative, date) = match date.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, date),
    };
    let mut parts = date.split('-');
    let year: i64 = digits(parts.next()?, 4..=9)?.into();
    let (month, day) = (digits(parts.next()?, 2..=2)?, digits(parts.next()?, 2..=2)?);
    let year = if negative { -year } else { year };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if parts.next().is_some() || !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March, so that a leap day is the last.
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = i64::from((153 * ((month + 9) % 12) + 2) / 5 + day - 1);
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Returns the time of a day, `15:04:05.25`, in units of 10^-`precision` seconds.
fn ticks(time: &str, precision: u8) -> Option<i128> {
    let (time, fraction) = match time.split_once('.') {
        Some((time, fraction)) if !fraction.is_empty() => (time, fraction),
        Some(_) => return None,
        None => (time, ""),
    };
    let mut parts = time.split(':').map(|part| digits(part, 2..=2));
    let [hour, minute, second] = [(); 3].map(|()| parts.next().flatten());
    let (hour, minute, second) = (hour?, minute?, second?);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let precision = usize::from(precision);
    let (kept, rest) = fraction.split_at_checked(fraction.len().min(precision))?;
    if rest.bytes().any(|byte| byte != b'0') {
        return None;
    }
    let kept = i128::from(if kept.is_empty() { 0 } else { digits(kept, 1..=9)? });
    let unit = |digits: usize| 10_i128.pow(digits as u32);
    let seconds = i128::from((hour * 60 + minute) * 60 + second);
    Some(seconds * unit(precision) + kept * unit(precision - fraction.len().min(precision)))
}

/// Parses a number of that many digits, without a sign.
fn digits(text: &str, count: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| all_digits && count.contains(&text.len()))
}

/// Parses a UUID, with hyphens or without.
fn uuid(key: &[u8]) -> Option<[u8; 16]> {
    let has_hyphens = key.len() == 36 && [8, 13, 18, 23].iter().all(|at| key[*at] == b'-');
    if key.len() != 32 && !has_hyphens {
        return None;
    }
    let mut nibbles = key.iter().enumerate().filter_map(|(at, byte)| match byte {
        b'-' if has_hyphens && matches!(at, 8 | 13 | 18 | 23) => None,
        byte => Some(char::from(*byte).to_digit(16)),
    });
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = (nibbles.next()?? << 4 | nibbles.next()??) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(text: Text, stored: Stored, key: &str) -> Option<Vec<u64>> {
        let mut hashes = Vec::new();
        ColumnType { text, stored }.append_hashes(key.as_bytes(), &mut hashes).map(|()| hashes)
    }

    fn hashes_of(values: &[&[u8]]) -> Option<Vec<u64>> {
        Some(values.iter().map(|bytes| xxh64(bytes, 0)).collect())
    }

    fn big_endian(number: i128, length: usize) -> Vec<u8> {
        number.to_le_bytes()[..length].iter().rev().copied().collect()
    }

    #[test]
    fn integers_are_hashed_as_stored() {
        for (text, stored, key, bytes) in [
            (Text::Bytes, Stored::Bytes, "", &[][..]),
            (Text::Bytes, Stored::Fixed(2), "ab", b"ab"),
            (Text::Integer, Stored::Int32, "-2", &(-2_i32).to_le_bytes()),
            (Text::Unsigned, Stored::Int32, "4294967294", &(-2_i32).to_le_bytes()),
            (Text::Integer, Stored::Int64, "-2", &(-2_i64).to_le_bytes()),
            (Text::Unsigned, Stored::Int64, "18446744073709551614", &(-2_i64).to_le_bytes()),
        ] {
            assert_eq!(hashes(text, stored, key), hashes_of(&[bytes]), "{key}");
        }
        for (text, stored, key) in [
            (Text::Bytes, Stored::Fixed(2), "abc"),
            (Text::Integer, Stored::Int32, "2147483648"),
            (Text::Unsigned, Stored::Int32, "-1"),
            (Text::Integer, Stored::Int64, "9223372036854775808"),
            (Text::Unsigned, Stored::Int64, "-1"),
        ] {
            assert_eq!(hashes(text, stored, key), None, "{key}");
        }
    }

    #[test]
    fn decimals_are_hashed_as_their_units() {
        let money = Text::Decimal { scale: 2, precision: 9 };
        let int64 = |number: i64| hashes_of(&[&number.to_le_bytes()]);
        for (key, units) in [
            ("997", 99_700),
            ("997.0", 99_700),
            ("997.000", 99_700),
            ("+997.00", 99_700),
            ("0997", 99_700),
            ("-0.01", -1),
            ("-0", 0),
            ("-12.30", -1230),
        ] {
            assert_eq!(hashes(money, Stored::Int64, key), int64(units), "{key}");
            let bytes = (units as i32).to_le_bytes();
            assert_eq!(hashes(money, Stored::Int32, key), hashes_of(&[&bytes]), "{key}");
            let bytes = big_endian(units.into(), 5);
            assert_eq!(hashes(money, Stored::Fixed(5), key), hashes_of(&[&bytes]), "{key}");
        }
        for key in ["", "-", ".5", "5.", "1e3", "1.005", " 1", "0x1", "1.2.3", "--1", "99999999999"]
        {
            assert_eq!(hashes(money, Stored::Int32, key), None, "{key}");
            assert_eq!(hashes(money, Stored::Fixed(4), key), None, "{key}");
        }
        // 10^38, and the lowest number of 17 bytes.
        let wide = Text::Decimal { scale: 0, precision: 39 };
        let ten = format!("1{}", "0".repeat(38));
        let bytes = [vec![0], big_endian(10_i128.pow(38), 16)].concat();
        assert_eq!(hashes(wide, Stored::Fixed(17), &ten), hashes_of(&[&bytes]));
        assert_eq!(hashes(wide, Stored::Fixed(16), &ten), hashes_of(&[&bytes[1..]]));
        assert_eq!(hashes(wide, Stored::Fixed(15), &ten), None);
        // Of four digits, the shortest form and the longer ones.
        let short = Text::Decimal { scale: 0, precision: 6 };
        let forms: [&[u8]; 3] = [&[200], &[0xff, 200], &[0xff, 0xff, 200]];
        assert_eq!(hashes(short, Stored::Bytes, "-56"), hashes_of(&forms));
        assert_eq!(hashes(short, Stored::Bytes, "200"), hashes_of(&[&[0, 200], &[0, 0, 200]]));
        assert_eq!(hashes(short, Stored::Bytes, "99999999"), None);
    }

    #[test]
    fn decimals_of_every_precision_have_hashes() {
        for precision in 1..=76 {
            let text = Text::Decimal { scale: 0, precision };
            let largest = "9".repeat(precision.into());
            for key in [&largest, &format!("-{largest}")] {
                let found = hashes(text, Stored::Bytes, key);
                assert!(found.is_some_and(|hashes| !hashes.is_empty()), "{key}");
            }
        }
    }

    #[test]
    fn dates_and_times_are_hashed_in_the_unit_of_the_column() {
        let int32 = |number: i32| hashes_of(&[&number.to_le_bytes()]);
        for (key, day) in [
            ("1970-01-01", 0),
            ("2026-11-23", 20_780),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("0000-03-01", -719_468),
            ("-0001-01-01", -719_893),
            ("10000-01-01", 2_932_897),
        ] {
            assert_eq!(hashes(Text::Date, Stored::Int32, key), int32(day), "{key}");
        }
        let time = |digits, key| hashes(Text::Time(digits), Stored::Int32, key);
        assert_eq!(time(3, "15:04:05.25"), int32(54_245_250));
        assert_eq!(time(3, "00:00:00.250000"), int32(250));
        let stamp =
            |digits, instant, key| hashes(Text::Timestamp { digits, instant }, Stored::Int64, key);
        for (digits, unit) in [(3, 1_000), (6, 1_000_000), (9, 1_000_000_000)] {
            let ticks = 1_795_446_245 * unit + unit / 4;
            let expected = hashes_of(&[&i64::to_le_bytes(ticks)]);
            assert_eq!(stamp(digits, false, "2026-11-23T15:04:05.25"), expected);
            assert_eq!(stamp(digits, true, "2026-11-23T15:04:05.250Z"), expected);
            assert_eq!(stamp(digits, true, "2026-11-23T15:04:05.25"), None);
            assert_eq!(stamp(digits, false, "2026-11-23T15:04:05.25Z"), None);
            assert_eq!(stamp(digits, false, "2026-11-23 15:04:05"), None);
        }
        assert_eq!(stamp(9, false, "9999-01-01T00:00:00"), None);
        assert_eq!(stamp(3, false, "2026-11-23T15:04:05.0001"), None);
        for key in ["2026-02-29", "1900-02-29", "2026-13-01", "2026-1-01", "26-01-01", "20780", ""]
        {
            assert_eq!(hashes(Text::Date, Stored::Int32, key), None, "{key}");
        }
        for key in ["24:00:00", "15:04", "15:04:60", "15:04:05.", "1:04:05", "15:04:05.+1", "7"] {
            assert_eq!(time(3, key), None, "{key}");
        }
    }

    #[test]
    fn uuids_are_hashed_as_bytes() {
        let number = 0xf81d_4fae_7dec_11d0_a765_00a0_c91e_6bf6_u128;
        let bytes = big_endian(number.cast_signed(), 16);
        let uuid = |key: &str| hashes(Text::Uuid, Stored::Fixed(16), key);
        for key in [
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6",
            "f81d4fae7dec11d0a76500a0c91e6bf6",
        ] {
            assert_eq!(uuid(key), hashes_of(&[&bytes]), "{key}");
        }
        for key in
            ["", "f81d4fae-7dec-11d0-a765-00a0c91e6bf", "f81d4fae7dec-11d0-a765-00a0c91e6bf6-"]
        {
            assert_eq!(uuid(key), None, "{key}");
        }
        assert_eq!(uuid(&"-".repeat(36)), None);
        assert_eq!(uuid(&"0".repeat(36)), None);
    }

    #[test]
    fn null_is_no_key() {
        for (text, stored) in [(Text::Bytes, Stored::Bytes), (Text::Bytes, Stored::Fixed(1))] {
            let column = ColumnType { text, stored };
            assert_eq!(column.append_hashes(NULL, &mut Vec::new()), None);
            assert!(column.expected(NULL).contains("nulls"));
        }
    }
}
