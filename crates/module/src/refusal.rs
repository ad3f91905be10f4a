//! Why something was not done: what objects of every layout answer instead.

/// Bytes that no machine can give to one filter: addresses of a process have 47 bits.
pub(crate) const MOST_BYTES: u64 = 1 << 47;

/// Why something was not put in, not made, or not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It does not grow, and holds what it was made for.
    Full,
    /// It has as many layers as it may have, and is full.
    Layers,
    /// It would take more memory than a key may have.
    Limit,
    /// It would take more memory than any machine has.
    TooLarge,
    /// RedisBloom's layout has no layer as large.
    LargeLayer,
    /// Hashes of 64 bits cannot keep the rate for so many keys.
    Rate,
    /// The server's memory is used up.
    Memory,
    /// It is of a type that cannot do this.
    Type,
    /// No program writes such bytes: what is wrong with them.
    Malformed(String),
    /// A chunk is for no place that there is.
    NoRow,
    /// A chunk is longer than the row it is for.
    TooLong,
    /// Anything else that a filter says of itself.
    Other(String),
}

impl From<petal::Error> for Refusal {
    fn from(error: petal::Error) -> Self {
        if error.is_alloc() {
            Self::Memory
        } else if error.is_full() {
            Self::Full
        } else if error.is_unsupported() {
            Self::Type
        } else if error.is_unattainable() {
            Self::Rate
        } else {
            Self::Other(error.to_string())
        }
    }
}

impl From<petal_interop::Error> for Refusal {
    fn from(error: petal_interop::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl Refusal {
    /// Bytes that are wrong.
    pub(crate) fn malformed<T>(what: &str) -> Result<T, Self> {
        Err(Self::Malformed(what.to_owned()))
    }

    /// As the server's log has it.
    pub(crate) fn told(self) -> String {
        match self {
            Self::Malformed(what) | Self::Other(what) => what,
            Self::Memory => "there is no memory for it".to_owned(),
            refusal => format!("{refusal:?}"),
        }
    }
}
