//! Why a filter rejected an operation, whatever its type and layout.

use std::fmt;

/// The largest filter that fits in the address space of a process, which is 47 bits wide.
pub(crate) const MAX_BYTES: u64 = 1 << 47;

/// The reason why an item was not inserted, or a filter not created, changed or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FilterError {
    /// The filter does not grow and holds as many items as its capacity.
    Full,
    /// The filter is full and has the maximum number of layers.
    MaxLayers,
    /// The filter has [`MAX_COPIES`](crate::filters::MAX_COPIES) copies of the item.
    TooManyCopies,
    /// The filter would exceed the memory limit of a key.
    MemoryLimit,
    /// The filter of a file or of `RESTORE` takes more bytes than the memory limit of a key.
    OverLimit { bytes: u64, limit: u64 },
    /// The filter would be larger than [`MAX_BYTES`].
    TooLarge,
    /// The layer would be larger than RedisBloom's layout allows.
    LayerTooLarge,
    /// 64-bit hashes cannot keep the false-positive rate for this capacity.
    FprUnattainable,
    /// Half the false-positive rate is 0: too small for RedisBloom's layout.
    FprTooSmall,
    /// The growth factor is above the maximum of petal's layout.
    ExpansionTooLarge,
    /// The allocation failed.
    OutOfMemory,
    /// The type of the filter does not support the operation.
    Unsupported,
    /// The serialized data are invalid; the string says how.
    Malformed(String),
    /// The offset of a chunk is in no layer.
    BadOffset,
    /// A chunk extends beyond the end of its layer.
    ChunkTooLong,
    /// Any other error of the core library.
    Other(String),
}

impl From<petal::Error> for FilterError {
    fn from(error: petal::Error) -> Self {
        if error.is_alloc() {
            Self::OutOfMemory
        } else if error.is_full() {
            Self::Full
        } else if error.is_unsupported() {
            Self::Unsupported
        } else if error.is_unattainable() {
            Self::FprUnattainable
        } else {
            Self::Other(error.to_string())
        }
    }
}

impl From<petal_interop::Error> for FilterError {
    fn from(error: petal_interop::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl FilterError {
    /// Returns a [`Malformed`](Self::Malformed) error.
    pub(crate) fn malformed<T>(reason: &str) -> Result<T, Self> {
        Err(Self::Malformed(reason.to_owned()))
    }

    /// Returns the error for a missing field or chunk.
    pub(crate) fn truncated() -> Self {
        Self::Malformed("the value is truncated".to_owned())
    }
}

/// The text for the server's log.
impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OverLimit { bytes, limit } => {
                return write!(
                    f,
                    "the filter takes {bytes} bytes, more than the setting memory-limit, {limit}"
                );
            }
            Self::Malformed(reason) | Self::Other(reason) => reason,
            Self::Full => "the filter is full",
            Self::MaxLayers => "the filter has the maximum number of layers",
            Self::TooManyCopies => "the filter has the maximum number of copies of the item",
            Self::MemoryLimit => "the filter exceeds the memory limit",
            Self::TooLarge => "the filter is too large for the address space",
            Self::LayerTooLarge => "a layer is too large for RedisBloom's layout",
            Self::FprUnattainable => {
                "64-bit hashes cannot keep this false-positive rate at this capacity"
            }
            Self::FprTooSmall => "the false-positive rate is too small",
            Self::ExpansionTooLarge => "the expansion is above the maximum",
            Self::OutOfMemory => "out of memory",
            Self::Unsupported => "the filter's type does not support this",
            Self::BadOffset => "the offset is in no layer",
            Self::ChunkTooLong => "the chunk extends beyond its layer",
        })
    }
}
