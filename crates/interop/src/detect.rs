//! Which format a file is of: by its first bytes and by whether its length is what they say.

use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats;
use crate::scheme::Scheme;

/// Files that are known and are no filters that can be read, by their first bytes.
const KNOWN: [(&[u8], &str); 9] = [
    (b"\x89PETAL\r\n", "a petal file and no other program's; if it was packed, unpack it"),
    (b"PAR1", "a whole Parquet file; petal probe asks the filters in it"),
    (b"PARE", "a Parquet file with an encrypted footer, which cannot be read without its key"),
    (b"ORC", "an ORC file, whose filters petal does not read"),
    (b"{\"m\":", "the JSON of Go's bloom; write the filter with its WriteTo"),
    (b"\x1f\x8b", "packed twice; unpack it once"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd; unpack it first"),
    (b"MBITARRAY", "a filter of pybloomfiltermmap3, which petal does not read"),
    (
        b"\xac\xed\x00\x05",
        "a Java object written by ObjectOutputStream; write the filter with its own writeTo",
    ),
];

/// The format that a file is of, if it is just one.
pub(crate) fn detect(file: &[u8]) -> Result<(Format, Box<dyn Scheme>)> {
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| file.starts_with(magic)) {
        return Err(Error::known(what));
    }
    let told = Format::ALL.into_iter().filter(|format| format.is_told_by_its_bytes());
    let mut found: Vec<_> =
        told.filter_map(|format| Some((format, formats::open(format, file).ok()?))).collect();
    if found.len() > 1 {
        return Err(Error::ambiguous(found.into_iter().map(|(format, _)| format).collect()));
    }
    found.pop().ok_or_else(|| Error::unknown(beginning(file) + &nearly(file)))
}

/// What a file would be if it were longer or shorter.
fn nearly(file: &[u8]) -> String {
    let told = Format::ALL.into_iter().filter(|format| format.is_told_by_its_bytes());
    let cut = told.filter_map(|format| formats::open(format, file).err()?.nearly());
    let cut: Vec<_> = cut.collect();
    if cut.is_empty() { String::new() } else { format!("; perhaps {}", cut.join(", or ")) }
}

/// The first bytes, to be shown.
fn beginning(file: &[u8]) -> String {
    let start = &file[..file.len().min(8)];
    let is_text = start.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r'));
    match start {
        [] => return "no bytes at all".to_owned(),
        text if is_text => return format!("the text {:?}", String::from_utf8_lossy(text)),
        _ => {}
    }
    let start: Vec<_> = start.iter().map(|byte| format!("{byte:02x}")).collect();
    let untold: Vec<_> = Format::ALL
        .into_iter()
        .filter(|format| !format.is_told_by_its_bytes())
        .map(Format::name)
        .collect();
    format!(
        "{} bytes that begin with {}; name the format of a damaged file, or of one without a mark \
         ({}), with --format",
        file.len(),
        start.join(" "),
        untold.join(", ")
    )
}
