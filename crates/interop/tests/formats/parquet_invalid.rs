//! Parquet files built byte by byte: what programs seldom write, and what only hostile ones do.

use std::io::Cursor;

use petal_interop::{ForeignFilter, Format, ParquetAnswer, ParquetFile, ParquetKeys, Result};

/// A file of one row group with a column `a.b`, whose filter of one block is full.
#[derive(Clone)]
struct Made {
    /// Type of the values, and fields of the schema after the name.
    physical: u8,
    length_of_values: Option<u8>,
    annotation: Vec<u8>,
    /// Header of the filter, its offset if not the true one, and its length if stated.
    header: Vec<u8>,
    offset: Option<i64>,
    length: Option<i64>,
    /// Fields of the column chunk before and after its metadata.
    before: Vec<u8>,
    behind: Vec<u8>,
}

const BYTES: u8 = 6;
/// 32 bytes; BLOCK, XXHASH, UNCOMPRESSED.
const HEADER: &[u8] = b"\x15\x40\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0";

fn zigzag(number: i64) -> Vec<u8> {
    let (mut rest, mut bytes) = (((number << 1) ^ (number >> 63)).cast_unsigned(), Vec::new());
    while rest > 0x7f {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

impl Made {
    fn of(physical: u8, annotation: &[u8]) -> Self {
        Self {
            physical,
            length_of_values: None,
            annotation: annotation.to_vec(),
            header: HEADER.to_vec(),
            offset: None,
            length: None,
            before: Vec::new(),
            behind: Vec::new(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let physical = self.physical * 2;
        let mut footer = b"\x15\x02\x19\x3c\x48\x04root\x15\x02\0\x48\x01a\x15\x02\0".to_vec();
        footer.extend([0x15, physical]);
        match self.length_of_values {
            Some(length) => {
                footer.push(0x15);
                footer.extend(zigzag(length.into()));
                footer.extend([0x28, 1, b'b']);
            }
            None => footer.extend([0x38, 1, b'b']),
        }
        footer.extend(&self.annotation);
        // The end of the schema; a row group, a column in it.
        footer.extend(b"\0\x16\x0e\x19\x1c\x19\x1c");
        footer.extend(&self.before);
        // Metadata is field 3 in either encoding.
        footer.extend([0x0c, 6, 0x15, physical, 0x29, 0x28, 1, b'a', 1, b'b']);
        footer.extend([0x06, 28]);
        footer.extend(zigzag(self.offset.unwrap_or(4)));
        if let Some(length) = self.length {
            footer.push(0x15);
            footer.extend(zigzag(length));
        }
        footer.push(0);
        footer.extend(&self.behind);
        footer.extend(b"\0\x26\x0e\0\0");
        let length = (footer.len() as u32).to_le_bytes();
        [b"PAR1", &self.header[..], &[0xff; 32], &footer, &length, b"PAR1"].concat()
    }

    fn query(&self, key: &str) -> Result<ParquetAnswer> {
        self.ask_for("a.b", key)
    }

    fn ask_for(&self, column: &str, key: &str) -> Result<ParquetAnswer> {
        let mut parquet_keys = ParquetKeys::new();
        parquet_keys.push(key.as_bytes());
        let mut file = ParquetFile::open(Cursor::new(self.bytes()))?;
        let groups = file.row_groups(column)?;
        assert_eq!((groups.len(), groups[0].rows), (1, 7));
        file.query(&groups[0], &parquet_keys)
    }
}

#[test]
fn nested_column_is_found_by_its_path() {
    let made = Made::of(BYTES, b"");
    assert_eq!(made.query("key").unwrap(), ParquetAnswer::Maybe);
    for column in ["a", "b", "a.", "a.b.", "a.bb", "", ".", "root.a.b"] {
        let error = made.ask_for(column, "key").unwrap_err();
        assert_eq!(error.to_string(), format!("it has no column '{column}', but a.b"));
    }
}

#[test]
fn column_names_print_on_one_line() {
    let mut bytes = Made::of(BYTES, b"").bytes();
    let at = bytes.windows(3).position(|bytes| bytes == [0x38, 1, b'b']).unwrap();
    bytes[at + 2] = b'\n';
    let error = ParquetFile::open(Cursor::new(bytes)).unwrap().row_groups("x").unwrap_err();
    assert_eq!(error.to_string(), "it has no column 'x', but a.\\n");
}

#[test]
fn column_types_determine_valid_keys() {
    // Converted types UINT_32 and UINT_64, and unsigned logical types.
    let old: [&[u8]; 2] = [b"\x25\x1a", b"\x25\x1c"];
    let new: &[u8] = b"\x6c\xac\x13\x20\x12\0\0";
    let signed: &[u8] = b"\x6c\xac\x13\x20\x11\0\0";
    for (physical, annotation, good, bad) in [
        (1, &b""[..], "-2147483648", "2147483648"),
        (1, signed, "-2147483648", "2147483648"),
        (1, old[0], "4294967295", "-1"),
        (1, new, "4294967295", "-1"),
        (2, b"", "-9223372036854775808", "9223372036854775808"),
        (2, old[1], "18446744073709551615", "-1"),
        (2, new, "18446744073709551615", "-1"),
    ] {
        let made = Made::of(physical, annotation);
        assert_eq!(made.query(good).unwrap(), ParquetAnswer::Maybe, "{physical}: {good}");
        for bad in [bad, "", "x", " 1", "1.0"] {
            assert!(made.query(bad).unwrap_err().is_key(), "{physical}: {bad}");
        }
    }
    for (physical, name) in [(0, "BOOLEAN"), (3, "INT96"), (4, "FLOAT"), (5, "DOUBLE")] {
        let error = Made::of(physical, b"").query("1").unwrap_err();
        assert!(error.is_refused() && error.to_string().contains(name), "{error}");
    }
    assert!(Made::of(8, b"").query("1").unwrap_err().is_malformed());
}

#[test]
fn logical_types_determine_valid_keys() {
    // Converted types with scale and precision; logical types.
    let (decimal, new_decimal): (&[u8], &[u8]) =
        (b"\x25\x0a\x15\x04\x15\x12", b"\x6c\x5c\x15\x04\x15\x12\0\0");
    let fixed = |length: u8, annotation: &[u8]| {
        let mut made = Made::of(7, annotation);
        made.length_of_values = Some(length);
        made
    };
    for (made, good, bad) in [
        (Made::of(1, decimal), "997", "9.971"),
        (Made::of(2, new_decimal), "997.00", "1e3"),
        (Made::of(6, decimal), "-0.01", "x"),
        (fixed(5, new_decimal), "997.0", "99999999999"),
        (Made::of(1, b"\x25\x0c"), "2026-11-23", "20780"),
        (Made::of(1, b"\x6c\x6c\0\0"), "2026-11-23", "2026-11-31"),
        (Made::of(1, b"\x25\x0e"), "15:04:05.25", "15:04"),
        (Made::of(2, b"\x25\x14"), "2026-11-23T15:04:05.000001Z", "2026-11-23T15:04:05"),
        // A timestamp without a zone, in nanoseconds.
        (Made::of(2, b"\x6c\x8c\x12\x1c\x3c\0\0\0\0"), "2026-11-23T15:04:05", "2026-11-23"),
        (fixed(16, b"\x6c\xec\0\0"), "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "sixteen bytes .."),
        (fixed(4, b""), "four", "f"),
    ] {
        assert_eq!(made.query(good).unwrap(), ParquetAnswer::Maybe, "{good}");
        assert!(made.query(bad).unwrap_err().is_key(), "{bad}");
    }
    for (made, name) in [
        (fixed(12, b"\x25\x2a"), "INTERVAL, stored as FIXED_LEN_BYTE_ARRAY"),
        (fixed(2, b"\x6c\xfc\0\0"), "FLOAT16"),
        (Made::of(1, b"\x6c\xbc\0\0"), "UNKNOWN"),
        (Made::of(2, b"\x25\x0c"), "DATE, stored as INT64"),
        (Made::of(6, b"\x6c\x6c\0\0"), "DATE"),
        (fixed(33, decimal), "DECIMAL(9, 2)"),
        (Made::of(1, b"\x25\x0a"), "DECIMAL(0, 0)"),
        (Made::of(1, b"\x25\x0a\x15\x14\x15\x12"), "DECIMAL(9, 10)"),
        (Made::of(1, b"\x0c\x14\x2c\x02\0\0"), "(unknown)"),
    ] {
        let error = made.query("1").unwrap_err();
        assert!(error.is_refused() && error.to_string().contains(name), "{name}: {error}");
    }
}

#[test]
fn wrong_filter_locations_are_errors() {
    let made = Made::of(BYTES, b"");
    let filter = HEADER.len() as i64 + 32;
    for length in [filter, filter - 1, 32, 1, 0, -1, filter + 1, i64::from(i32::MAX)] {
        let stated = Made { length: Some(length), ..made.clone() };
        assert_eq!(stated.query("key").is_ok(), length == filter, "{length}");
    }
    let body = filter + 4;
    for offset in [i64::MIN, -1, 0, 3, 5, body - 1, body, body + 1, 1 << 40, i64::MAX] {
        let error = Made { offset: Some(offset), ..made.clone() }.query("key").unwrap_err();
        assert!(error.is_malformed(), "{offset}: {error}");
    }
}

#[test]
fn invalid_filter_headers_are_errors() {
    let with =
        |header: &[u8]| Made { header: header.to_vec(), ..Made::of(BYTES, b"") }.query("key");
    let bytes = |bytes: i64| [&[0x15], &zigzag(bytes)[..], &HEADER[2..]].concat();
    assert!(with(&bytes(32)).is_ok());
    for length in [0, -32, 16, 31, 33, 64, 128 << 20, (128 << 20) + 32, i32::MAX.into()] {
        assert!(with(&bytes(length)).unwrap_err().is_malformed(), "{length}");
    }
    // Another algorithm, hash, compression; none.
    for (at, is) in [(3, 0x2c), (7, 0x2c), (11, 0x2c), (3, 0), (0, 0)] {
        let mut header = HEADER.to_vec();
        header[at] = is;
        assert!(with(&header).unwrap_err().is_malformed(), "{at}");
    }
}

#[test]
fn external_and_encrypted_columns_are_errors() {
    let made = Made::of(BYTES, b"");
    let elsewhere = Made { before: b"\x18\x01f".to_vec(), ..made.clone() };
    assert!(elsewhere.query("key").unwrap_err().to_string().ends_with("is in another file"));
    // Field 8 after field 3: the encryption.
    let encrypted = Made { behind: b"\x5c\x1c\0\0".to_vec(), ..made };
    assert!(encrypted.query("key").unwrap_err().to_string().ends_with("is encrypted"));
}

/// A filter larger than a window: a single key, whose block is read alone, and many keys.
#[test]
fn large_filters_are_read_in_blocks_or_windows() {
    let mut filter = ForeignFilter::with_fpr(Format::Parquet, 200_000, 0.01).unwrap();
    let member = |at: u32| format!("member {at}");
    (0..200_000).for_each(|at| _ = filter.insert(member(at).as_bytes()).unwrap());
    assert!(filter.as_bytes().len() > 4 * (64 << 10));
    let made = Made { header: filter.as_bytes().to_vec(), ..Made::of(BYTES, b"") };
    let mut file = ParquetFile::open(Cursor::new(made.bytes())).unwrap();
    let group = file.row_groups("a.b").unwrap()[0];
    let mut absent = Vec::new();
    for at in 0..20_000 {
        let key = if at % 2 == 0 { member(at) } else { format!("absent {at}") };
        let mut parquet_keys = ParquetKeys::new();
        parquet_keys.push(key.as_bytes());
        let expect = filter.contains(key.as_bytes()).unwrap();
        assert_eq!(
            file.query(&group, &parquet_keys).unwrap() == ParquetAnswer::Maybe,
            expect,
            "{key}"
        );
        if !expect {
            absent.push(key);
        }
    }
    let mut many = ParquetKeys::new();
    absent.iter().for_each(|key| many.push(key.as_bytes()));
    assert_eq!(file.query(&group, &many).unwrap(), ParquetAnswer::No);
    // Also at the end of a window.
    for at in 0..20_000 {
        let mut some = ParquetKeys::new();
        some.push(member(at).as_bytes());
        absent[..100].iter().for_each(|key| some.push(key.as_bytes()));
        assert_eq!(file.query(&group, &some).unwrap(), ParquetAnswer::Maybe, "{at}");
    }
}
