//! Compresses bytes like `gzip` and `zstd`.

use std::io::Write as _;

use petal_testkit::rng::Rng;

/// The ways to store lines in a file: not compressed, or as one or several members or frames.
pub(crate) const FORMS: [&str; 5] = ["plain", "gz", "zst", "gz in members", "zst in frames"];

/// Returns one gzip member.
pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns one zstd frame with a checksum, as the program `zstd` writes it. Its window is 512 KiB,
/// which fits the minimum of memory.
pub(crate) fn zst(bytes: &[u8]) -> Vec<u8> {
    zst_of(bytes, 19, true)
}

/// Returns one zstd frame with a window of `2^window` bytes.
pub(crate) fn zst_of(bytes: &[u8], window: u32, checksum: bool) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(window).unwrap();
    encoder.include_checksum(checksum).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns the bytes in one of the [`FORMS`]. Members may end in the middle of a line.
pub(crate) fn compress(form: &str, bytes: &[u8], seed: u64) -> Vec<u8> {
    let (one, two) = bytes.split_at(Rng::new(seed).below(bytes.len() + 1));
    match form {
        "gz" => gz(bytes),
        "zst" => zst(bytes),
        "gz in members" => [gz(one), gz(b""), gz(two)].concat(),
        "zst in frames" => [zst(one), zst(two)].concat(),
        _ => bytes.to_vec(),
    }
}
