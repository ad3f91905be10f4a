//! The formats of tables.

#![cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "tables are refused"))]

/// A format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    Parquet,
    /// Arrow IPC with a footer, which is also Feather version 2.
    ArrowFile,
    /// Arrow IPC without a footer.
    ArrowStream,
}

impl TableKind {
    /// Recognizes a format by the first bytes of a file.
    pub(crate) fn of(begin: &[u8]) -> Option<Self> {
        match begin {
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', 0, 0, ..] => Some(Self::ArrowFile),
            // A continuation marker, a length below 64 KiB, and the offset of a flatbuffer's root.
            [0xff, 0xff, 0xff, 0xff, _, _, 0, 0, _, 0, 0, 0, ..] => Some(Self::ArrowStream),
            _ => None,
        }
    }

    /// Returns the format of a file, as a predicate.
    pub(crate) fn predicate(self) -> &'static str {
        match self {
            Self::Parquet => "a Parquet file",
            Self::ArrowFile => "an Arrow file",
            Self::ArrowStream => "an Arrow stream",
        }
    }

    /// Returns the name of the format.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Parquet => "Parquet",
            Self::ArrowFile | Self::ArrowStream => "Arrow IPC",
        }
    }
}
