//! Compresses bytes like `gzip`, `zstd`, `xz`, `bzip2` and `lz4`.

use std::io::Write as _;

use petal_testkit::rng::Rng;

/// The ways to store lines in a file: not compressed, or as one or several members or frames.
pub(crate) const FORMS: [&str; 8] = [
    "plain",
    "gz",
    "zst",
    "gz in members",
    "zst in frames",
    "xz in streams",
    "bz2 in streams",
    "lz4 in frames",
];

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

/// Returns one xz stream with a dictionary of 256 KiB.
pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut options = lzma_rust2::XzOptions::with_preset(0);
    options.lzma_options.dict_size = 256 << 10;
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// Returns one bzip2 stream in blocks of 100 kB.
pub(crate) fn bz2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns one lz4 frame in blocks of 64 KiB, with a checksum.
pub(crate) fn lz4(bytes: &[u8]) -> Vec<u8> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let info = FrameInfo::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Linked)
        .content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
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
        "xz in streams" => [xz(one), xz(two)].concat(),
        "bz2 in streams" => [bz2(one), bz2(two)].concat(),
        "lz4 in frames" => [lz4(one), lz4(two)].concat(),
        _ => bytes.to_vec(),
    }
}
