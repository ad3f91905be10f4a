//! Changes to keys that make different spellings equal.

use std::fmt;
use std::str::FromStr;

/// A change to a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transform {
    /// Removes a CR at the end.
    StripCr,
}

impl Transform {
    /// Appends the changed key to `to`.
    pub(super) fn append(&self, key: &[u8], to: &mut Vec<u8>) {
        match self {
            Self::StripCr => to.extend_from_slice(key.strip_suffix(b"\r").unwrap_or(key)),
        }
    }
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StripCr => "strip-cr",
        })
    }
}

impl FromStr for Transform {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "strip-cr" => Ok(Self::StripCr),
            _ => Err("unknown transform; expected strip-cr".to_owned()),
        }
    }
}
