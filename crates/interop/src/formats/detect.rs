//! Detection of a file's format, by its first bytes and its length.

use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats;
use crate::formats::format_impl::FormatImpl;

/// The first bytes of a whole Parquet file.
const PARQUET: &[u8] = b"PAR1";

/// Known files that cannot be read as filters, by their first bytes.
const KNOWN: [(&[u8], &str); 8] = [
    (&petal::MAGIC, "a petal file and no other program's; if it was compressed, decompress it"),
    (b"PARE", "a Parquet file with an encrypted footer, which cannot be read without its key"),
    (b"ORC", "an ORC file, whose filters petal does not read"),
    (b"{\"m\":", "the JSON of Go's bloom; write the filter with its WriteTo"),
    (b"\x1f\x8b", "compressed twice; decompress it once"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first"),
    (b"MBITARRAY", "a filter of pybloomfiltermmap3, which petal does not read"),
    (
        b"\xac\xed\x00\x05",
        "a Java object written by ObjectOutputStream; write the filter with its own writeTo",
    ),
];

/// Returns the format of a file, if it is unique.
pub(crate) fn detect(file: &[u8]) -> Result<(Format, Box<dyn FormatImpl>)> {
    if file.starts_with(PARQUET) {
        return Err(Error::whole_parquet());
    }
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| file.starts_with(magic)) {
        return Err(Error::known(what));
    }
    let candidates = Format::ALL.into_iter().filter(|format| format.is_recognizable());
    let mut found: Vec<_> =
        candidates.filter_map(|format| Some((format, formats::open(format, file).ok()?))).collect();
    if found.len() > 1 {
        return Err(Error::ambiguous(found.into_iter().map(|(format, _)| format).collect()));
    }
    found.pop().ok_or_else(|| Error::unknown(beginning(file) + &nearly(file)))
}

/// Returns the format that a file would have if it were longer or shorter.
fn nearly(file: &[u8]) -> String {
    let candidates = Format::ALL.into_iter().filter(|format| format.is_recognizable());
    let cut = candidates.filter_map(|format| formats::open(format, file).err()?.nearly());
    let cut: Vec<_> = cut.collect();
    if cut.is_empty() { String::new() } else { format!("; perhaps {}", cut.join(", or ")) }
}

/// Returns the first bytes, printable.
fn beginning(file: &[u8]) -> String {
    let start = &file[..file.len().min(8)];
    let is_text = start.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r'));
    match start {
        [] => return "no bytes at all".to_owned(),
        text if is_text => return format!("the text {:?}", String::from_utf8_lossy(text)),
        _ => {}
    }
    let start: Vec<_> = start.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} bytes that begin with {}", file.len(), start.join(" "))
}
