//! Compressed bytes, as `gzip` and `zstd` make them.

use std::io::Write as _;

use petal_testkit::rng::Rng;

/// Every way to hold the same lines in a file.
pub(crate) const FORMS: [&str; 5] = ["plain", "gz", "zst", "gz in members", "zst in frames"];

/// One gzip member.
pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// One zstd frame with a checksum, as the program `zstd` makes it; its window is 512 KiB, which the
/// least cap takes.
pub(crate) fn zst(bytes: &[u8]) -> Vec<u8> {
    zst_of(bytes, 19, true)
}

/// One zstd frame with a window of so many bits.
pub(crate) fn zst_of(bytes: &[u8], window: u32, checksum: bool) -> Vec<u8> {
    let mut packer = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    packer.window_log(window).unwrap();
    packer.include_checksum(checksum).unwrap();
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// The bytes in one of the [`FORMS`]; members end anywhere, in the middle of lines too.
pub(crate) fn packed(form: &str, bytes: &[u8], seed: u64) -> Vec<u8> {
    let (one, two) = bytes.split_at(Rng::new(seed).below(bytes.len() + 1));
    match form {
        "gz" => gz(bytes),
        "zst" => zst(bytes),
        "gz in members" => [gz(one), gz(b""), gz(two)].concat(),
        "zst in frames" => [zst(one), zst(two)].concat(),
        _ => bytes.to_vec(),
    }
}
