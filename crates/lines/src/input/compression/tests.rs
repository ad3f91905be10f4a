use super::*;
use crate::error::{Advice, Error, ErrorKind};
use std::io::Write as _;

#[test]
fn format_is_detected_from_the_fewest_bytes() {
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 1];
    assert_eq!(Magic::of(&zstd), Magic::Is(Codec::Zstd));
    assert_eq!(Magic::of(&zstd[..3]), Magic::Maybe);
    assert_eq!(Magic::of(&[0x1f, 0x8b, 8, 0]), Magic::Is(Codec::Gzip));
    assert_eq!(Magic::of(&[0x53, 0x2a, 0x4d, 0x18]), Magic::Is(Codec::Skippable));
    assert_eq!(Magic::of(b"\x02\x21\x4c\x18"), Magic::Is(Codec::Lz4));
    assert_eq!(Magic::of(b""), Magic::Maybe);
    assert_eq!(Magic::of(b"\xfd7zXZ"), Magic::Maybe);
    assert_eq!(Magic::of(b"\xfd7zXZ\0"), Magic::Is(Codec::Xz));
    assert_eq!(Magic::of(b"\x04\x22\x4d\x18\x64"), Magic::Is(Codec::Lz4));
    assert_eq!(Magic::of(b"BZh91AY&SY\x5a\x55\xc4\x1e"), Magic::Maybe);
    assert_eq!(Magic::of(b"BZh91AY&SY\x5a\x55\xc4\x1e\0"), Magic::Is(Codec::Bzip2));
    assert_eq!(Magic::of(b"BZh91AY&SYNC and so on"), Magic::No);
    assert_eq!(Magic::of(b"BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0"), Magic::Is(Codec::Bzip2));
    for text in [&b"(a"[..], b"Pa", b"http", b"\n", b"\x1f\x8b\x07"] {
        assert_eq!(Magic::of(text), Magic::No, "{text:?}");
    }
}

#[test]
fn input_that_ends_after_a_magic_number_is_compressed() {
    let bzip2 = b"BZh91AY&SY\x5a\x55\xc4\x1e";
    for length in 10..=14 {
        assert_eq!(Magic::of(&bzip2[..length]), Magic::Maybe);
        assert_eq!(Magic::of_whole(&bzip2[..length]), Magic::Is(Codec::Bzip2));
    }
    assert_eq!(Magic::of_whole(&bzip2[..9]), Magic::No);
    assert_eq!(Magic::of_whole(b"BZh9"), Magic::No);
    assert_eq!(Magic::of_whole(b"BZh9\x17\x72"), Magic::No);
    assert_eq!(Magic::of_whole(b"BZh91AY&SYNC and so on"), Magic::No);
    assert_eq!(Magic::of_whole(b"\x04\x22\x4d\x18"), Magic::Is(Codec::Lz4));
    assert_eq!(Magic::of_whole(b"\x04\x22\x4d"), Magic::No);
    assert_eq!(Magic::of_whole(b""), Magic::No);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn xz(bytes: &[u8], dictionary: u32) -> Vec<u8> {
    let mut options = lzma_rust2::XzOptions::with_preset(1);
    options.lzma_options.dict_size = dictionary;
    let mut packer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut packer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn lz4(bytes: &[u8], linked: bool) -> Vec<u8> {
    let info = lz4_flex::frame::FrameInfo::new()
        .content_checksum(true)
        .block_size(lz4_flex::frame::BlockSize::Max64KB)
        .block_mode(match linked {
            true => lz4_flex::frame::BlockMode::Linked,
            false => lz4_flex::frame::BlockMode::Independent,
        });
    let mut packer = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// Returns what is in compressed data.
pub(crate) fn decompressed(packed: &[u8]) -> io::Result<Vec<u8>> {
    let Magic::Is(codec) = Magic::of(packed) else { return Err(io::ErrorKind::InvalidData.into()) };
    read(codec, packed.to_vec(), memory(64 << 20))
}

fn read(codec: Codec, packed: Vec<u8>, memory: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    decode(codec, io::Cursor::new(packed), memory)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn all_members_are_read_and_truncation_is_an_error() {
    let text: Vec<u8> = (0..60_000u32).flat_map(|i| format!("{}\n", i * i).into_bytes()).collect();
    let (one, two) = text.split_at(200_001);
    let memory = memory(64 << 20);
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    for (codec, first, second) in [
        (Codec::Gzip, gzip(one), gzip(two)),
        (Codec::Zstd, zstd(one), zstd(two)),
        (Codec::Xz, xz(one, 1 << 16), xz(two, 1 << 18)),
        (Codec::Bzip2, bzip2(one), bzip2(two)),
        (Codec::Lz4, lz4(one, true), lz4(two, true)),
        (Codec::Lz4, lz4(one, false), lz4(two, false)),
    ] {
        assert_eq!(Magic::of(&first), Magic::Is(codec));
        let both = [&first[..], &second].concat();
        assert!(read(codec, both.clone(), memory).unwrap() == text);
        let mut some = Vec::new();
        let show = |bytes: &[u8]| some.extend_from_slice(bytes);
        let went = sample(codec, &both[..], 300_000, memory, show).unwrap();
        assert!(went.0 == 300_000 && went.1 <= both.len() as u64);
        assert!(some == text[..300_000]);
        let all = sample(codec, &both[..], u64::MAX, memory, |_| ()).unwrap();
        assert_eq!(all, (text.len() as u64, both.len() as u64));
        for cut in (1..both.len()).step_by(both.len() / 97) {
            if cut != first.len() {
                let error = read(codec, both[..cut].to_vec(), memory).unwrap_err();
                // The beginning of a second xz stream is no known beginning.
                let known = if codec == Codec::Xz { "xz data" } else { "cut short" };
                assert!(error.to_string().contains(known), "{codec:?} {cut}: {error}");
            }
        }
        let mut broken = both;
        let middle = broken.len() / 3;
        broken[middle..middle + 40].fill(0x55);
        assert!(read(codec, broken, memory).is_err());
    }
}

#[test]
fn window_that_does_not_fit_is_an_error() {
    let mut packer = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    packer.window_log(24).unwrap();
    packer.write_all(&vec![b'x'; 1 << 20]).unwrap();
    let packed = packer.finish().unwrap();
    assert!(read(Codec::Zstd, packed.clone(), memory(256 << 20)).is_ok());
    let error = read(Codec::Zstd, packed.clone(), memory(64 << 20)).unwrap_err();
    let error = Error::read("a.zst", error);
    assert_eq!(
        error.to_string(),
        "a.zst: cannot read: its zstd window is 16 MiB, more than the 8 MiB that fit an eighth of \
         the memory limit; raise memory_limit to 128 MiB, or decompress it first"
    );
    // Only the decoder sees the window of a later frame.
    for first in [zstd::encode_all(&b"first"[..], 3).unwrap(), skippable(b"metadata")] {
        let Magic::Is(codec) = Magic::of(&first) else { panic!("{first:?}") };
        let error = read(codec, [first, packed.clone()].concat(), memory(64 << 20)).unwrap_err();
        let error = Error::read("a.zst", error).to_string();
        assert!(error.contains(" the 8 MiB that fit an eighth"), "{error}");
    }
}

#[test]
fn decoder_memory_that_does_not_fit_is_an_error() {
    let text = b"line\n".repeat(1 << 18);
    let large_blocks = lz4_flex::frame::FrameInfo::new()
        .block_size(lz4_flex::frame::BlockSize::Max4MB)
        .block_mode(lz4_flex::frame::BlockMode::Linked);
    let mut lz4 = lz4_flex::frame::FrameEncoder::with_frame_info(large_blocks, Vec::new());
    lz4.write_all(&text).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    bzip2.write_all(&text).unwrap();
    for (codec, packed, limit) in [
        (Codec::Xz, xz(&text, 1 << 23), 65 << 20),
        (Codec::Bzip2, bzip2.finish().unwrap(), 29 << 20),
        (Codec::Lz4, lz4.finish().unwrap(), 97 << 20),
    ] {
        assert!(read(codec, packed.clone(), memory(limit)).unwrap() == text);
        let error = read(codec, packed.clone(), memory(limit - (1 << 20))).unwrap_err();
        let error = Error::read("a", error);
        assert_eq!((error.kind(), error.subject()), (ErrorKind::Input, Some("a")), "{error}");
        assert_eq!(error.advice().first(), Some(&Advice::RaiseMemoryLimitTo(limit)), "{error}");
        // In a later member, the limit is unknown, or a few MiB are used nevertheless.
        let small = match codec {
            Codec::Xz => xz(b"first\n", 1 << 16),
            _ => continue,
        };
        let error = read(codec, [small, packed].concat(), memory(8 << 20)).unwrap_err();
        let error = Error::read("a", error);
        assert!(error.to_string().contains(" data needs more than the "), "{error}");
    }
}

fn skippable(bytes: &[u8]) -> Vec<u8> {
    [&b"\x5a\x2a\x4d\x18"[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

/// A frame in the legacy format of lz4.
fn lz4_legacy(blocks: &[&[u8]]) -> Vec<u8> {
    let mut frame = b"\x02\x21\x4c\x18".to_vec();
    for block in blocks {
        let packed = lz4_flex::block::compress(block);
        frame.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        frame.extend_from_slice(&packed);
    }
    frame
}

/// `lz4 -dc` and `zstd -dc` read all of these.
#[test]
fn skippable_and_legacy_frames_are_read_wherever_they_are() {
    let memory = memory(256 << 20);
    let long = b"line\n".repeat(300_000);
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    let (skip, large) = (skippable(b"metadata"), skippable(&vec![7; 300_000]));
    let (normal, legacy) = (lz4(b"two\n", false), lz4_legacy(&[b"three\n", &long, b"four\n"]));
    let of_legacy = [b"three\n", &long[..], b"four\n"].concat();
    let cases: [(Vec<Vec<u8>>, Vec<u8>); 9] = [
        (vec![skip.clone(), normal.clone()], b"two\n".to_vec()),
        (vec![skip.clone(), large.clone(), zstd(b"one\n")], b"one\n".to_vec()),
        (vec![normal.clone(), skip.clone(), normal.clone()], b"two\ntwo\n".to_vec()),
        (vec![legacy.clone()], of_legacy.clone()),
        (vec![normal.clone(), legacy.clone()], [&b"two\n"[..], &of_legacy].concat()),
        (vec![legacy.clone(), normal.clone()], [&of_legacy[..], b"two\n"].concat()),
        (vec![legacy.clone(), legacy.clone()], [&of_legacy[..], &of_legacy].concat()),
        (vec![large, legacy.clone(), skip.clone()], of_legacy),
        (vec![skip.clone(), skip.clone()], vec![]),
    ];
    for (number, (frames, expected)) in cases.into_iter().enumerate() {
        let file = frames.concat();
        let Magic::Is(codec) = Magic::of(&file) else { panic!("{number}") };
        assert!(read(codec, file.clone(), memory).unwrap() == expected, "{number}");
        // The end of a legacy frame is the end of the file or the next frame.
        let ends = file.len() - 1;
        if number != 3 && number != 6 {
            let error = read(codec, file[..ends].to_vec(), memory).unwrap_err().to_string();
            assert!(error.contains("cut short"), "{number}: {error}");
        }
    }
    let other = [&skip[..], b"text\n"].concat();
    let error = read(Codec::Skippable, other, memory).unwrap_err().to_string();
    assert!(error.contains("no frame with data"), "{error}");
    let error = read(Codec::Lz4, legacy[..legacy.len() - 1].to_vec(), memory).unwrap_err();
    assert!(error.to_string().contains("cut short"), "{error}");
    // A block may need 8 MiB.
    let block = vec![0; 8 << 20];
    let legacy = lz4_legacy(&[&block]);
    assert!(read(Codec::Lz4, legacy.clone(), memory).unwrap() == block);
    let error = Error::read("a", read(Codec::Lz4, legacy, super::memory(64 << 20)).unwrap_err());
    assert!(error.to_string().contains("decompressing its lz4 data needs "), "{error}");
}

#[test]
fn zeros_after_the_last_gzip_member_are_ignored_and_other_bytes_are_not() {
    let memory = memory(64 << 20);
    let both = [gzip(b"one\n"), gzip(b"two\n")].concat();
    for zeros in [1, 7, 512, 3 * BLOCK] {
        let padded = [&both[..], &vec![0; zeros]].concat();
        assert_eq!(read(Codec::Gzip, padded.clone(), memory).unwrap(), b"one\ntwo\n");
        for more in [&b"x"[..], &gzip(b"three\n")] {
            let error = read(Codec::Gzip, [&padded, more].concat(), memory).unwrap_err();
            assert!(error.to_string().starts_with(TRAILING), "{zeros}: {error}");
        }
    }
    for more in [&b"x"[..], b"\n", b"text after the data\n"] {
        let error = read(Codec::Gzip, [&both[..], more].concat(), memory).unwrap_err();
        assert!(error.to_string().starts_with(TRAILING), "{error}");
    }
    let error = read(Codec::Gzip, [&both[..], b"\x1f\x8b"].concat(), memory).unwrap_err();
    assert!(error.to_string().contains("cut short"), "{error}");
}
