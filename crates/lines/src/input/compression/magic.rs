//! Detection of a compression format from the first bytes of an input.

use super::Codec;

/// The compression format according to the first bytes of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::input) enum Magic {
    Is(Codec),
    No,
    /// More bytes are needed.
    Maybe,
}

/// Returns whether later bytes confirm a format; `None` if more bytes are needed.
type Confirm = fn(&[u8]) -> Option<bool>;

/// A format, its first bytes with masks, and the confirmation.
type Signature = (Codec, &'static [(u8, u8)], Confirm);

/// First bytes with their masks: RFC 1952 with its only method, deflate; RFC 8878; skippable frames,
/// with which files of `pzstd` begin; and the format descriptions of the other programs.
const MAGICS: [Signature; 8] = [
    (Codec::Gzip, &[(0x1f, 0xff), (0x8b, 0xff), (8, 0xff)], certain),
    (Codec::Zstd, &[(0x28, 0xff), (0xb5, 0xff), (0x2f, 0xff), (0xfd, 0xff)], certain),
    (Codec::Skippable, &[(0x50, 0xf0), (0x2a, 0xff), (0x4d, 0xff), (0x18, 0xff)], certain),
    (
        Codec::Xz,
        &[(0xfd, 0xff), (0x37, 0xff), (0x7a, 0xff), (0x58, 0xff), (0x5a, 0xff), (0x00, 0xff)],
        certain,
    ),
    // The header's version is 1.
    (Codec::Lz4, &[(4, 0xff), (0x22, 0xff), (0x4d, 0xff), (0x18, 0xff), (0x40, 0xc0)], certain),
    // A legacy frame.
    (Codec::Lz4, &[(0x02, 0xff), (0x21, 0xff), (0x4c, 0xff), (0x18, 0xff)], certain),
    // A digit for the block size, then the number of a block, all of it printable text.
    (
        Codec::Bzip2,
        &[
            (b'B', 0xff),
            (b'Z', 0xff),
            (b'h', 0xff),
            (0x30, 0xf0),
            (0x31, 0xff),
            (0x41, 0xff),
            (0x59, 0xff),
            (0x26, 0xff),
            (0x53, 0xff),
            (0x59, 0xff),
        ],
        has_bzip2_block,
    ),
    // An empty file: the number of the end of the stream.
    (
        Codec::Bzip2,
        &[
            (b'B', 0xff),
            (b'Z', 0xff),
            (b'h', 0xff),
            (0x30, 0xf0),
            (0x17, 0xff),
            (0x72, 0xff),
            (0x45, 0xff),
        ],
        certain,
    ),
];

/// Returns whether bytes begin with a pattern, or are the beginning of one.
fn matches(pattern: &[(u8, u8)], begin: &[u8]) -> bool {
    begin.iter().zip(pattern).all(|(byte, (value, mask))| byte & mask == *value)
}

fn certain(_: &[u8]) -> Option<bool> {
    Some(true)
}

/// A bzip2 block has after its number a checksum of 4 bytes, a bit that is 0 (1 in obsolete versions)
/// and a 24-bit number below 900,000. The byte after the checksum is therefore a control byte below
/// 7, which text does not have.
fn has_bzip2_block(begin: &[u8]) -> Option<bool> {
    const AFTER_CHECKSUM: usize = 14;
    begin.get(AFTER_CHECKSUM).map(|byte| *byte < 7)
}

/// Magic numbers that are complete before `of` is sure of them.
const COMPLETE: [(Codec, usize); 2] = [(Codec::Lz4, 4), (Codec::Bzip2, 10)];

impl Magic {
    /// Detects the codec of an input that consists of these bytes. An input that ends after a
    /// complete magic number is a truncated file, not text.
    pub(in crate::input) fn of_whole(input: &[u8]) -> Self {
        let begins =
            |codec| MAGICS.iter().any(|(of, pattern, _)| *of == codec && matches(pattern, input));
        match Self::of(input) {
            Self::Maybe => {
                let cut =
                    |&&(codec, length): &&(Codec, usize)| input.len() >= length && begins(codec);
                COMPLETE.iter().find(cut).map_or(Self::No, |(codec, _)| Self::Is(*codec))
            }
            sure => sure,
        }
    }

    /// Detects the codec of an input that begins with these bytes.
    pub(in crate::input) fn of(begin: &[u8]) -> Self {
        let mut magic = Self::No;
        for (codec, pattern, confirm) in MAGICS {
            if !matches(pattern, begin) {
                continue;
            }
            match (begin.len() >= pattern.len()).then(|| confirm(begin)).flatten() {
                Some(true) => return Self::Is(codec),
                Some(false) => {}
                None => magic = Self::Maybe,
            }
        }
        magic
    }
}
