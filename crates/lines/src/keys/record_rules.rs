//! Which records of an input are compared.

use std::fmt;

/// Which records of an input are compared: others are no part of it, in any pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordRules {
    /// Number of lines at the start that are neither a header nor records.
    pub skip_lines: u64,
    /// Lines that begin with these bytes where a record or the header would begin are neither.
    pub comment: Option<Vec<u8>>,
    /// Leave out records without a key, which otherwise are errors.
    pub skip_bad: bool,
    /// Keys with a value that is `null` or missing.
    pub nulls: Alike,
    /// Keys without bytes, or of several values that all have none.
    pub empty: Alike,
}

/// How keys without a value compare with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alike {
    /// As equal keys, like any others.
    #[default]
    One,
    /// Each differs from all other keys, as in SQL.
    Distinct,
    /// Their records are left out.
    Drop,
}

/// What the rules see in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// A key like any other.
    Plain,
    /// A key with a value that is `null`, if the rules treat it differently.
    Null,
    /// An empty key, if the rules treat it differently.
    Empty,
}

impl RecordRules {
    /// Returns how keys of this kind compare with each other.
    pub(crate) fn alike(&self, kind: KeyKind) -> Alike {
        match kind {
            KeyKind::Plain => Alike::One,
            KeyKind::Null => self.nulls,
            KeyKind::Empty => self.empty,
        }
    }

    /// Returns whether some keys are distinct from all others.
    #[must_use]
    pub fn makes_distinct(&self) -> bool {
        [self.nulls, self.empty].contains(&Alike::Distinct)
    }
}

/// The text of rules, for journals: empty for the default.
impl fmt::Display for RecordRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return Ok(());
        }
        let Self { skip_lines, comment, skip_bad, nulls, empty } = self;
        let comment = comment.as_deref().map(<[u8]>::escape_ascii);
        write!(f, ",rules {skip_lines} {skip_bad} {nulls:?} {empty:?}")?;
        comment.map_or(Ok(()), |comment| write!(f, " {comment}"))
    }
}
