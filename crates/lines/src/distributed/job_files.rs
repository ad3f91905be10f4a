//! The types of files that tasks exchange.

use crate::setops::Side;
use crate::temp::SectionKind;

impl Side {
    /// Survivors of this side.
    pub(super) fn survivors(self) -> SectionKind {
        match self {
            Self::First => SectionKind::First,
            Self::Other => SectionKind::Other,
        }
    }

    /// Hashes of this side.
    pub(super) fn hashes(self) -> SectionKind {
        match self {
            Self::First => SectionKind::FirstKeys,
            Self::Other => SectionKind::OtherKeys,
        }
    }

    /// Bits for these hashes.
    pub(super) fn bits(self) -> SectionKind {
        match self {
            Self::First => SectionKind::FirstBits,
            Self::Other => SectionKind::OtherBits,
        }
    }
}
