//! How CSV records are written: the bytes between, around and within fields.

/// The bytes that separate, enclose and escape the parts of CSV records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// The byte between fields.
    pub separator: u8,
    /// The byte around fields that contain separators or line ends. `None`: fields have neither, so
    /// each line is a record.
    pub quote: Option<u8>,
    /// The byte after this one has no special meaning.
    pub escape: Option<u8>,
}

/// Which byte encloses fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Quoting {
    /// `"`, but none if tabs separate fields: TSV has no quotes.
    #[default]
    BySeparator,
    /// None: a quote is a byte like any other.
    None,
    /// This byte.
    Byte(u8),
}

impl Dialect {
    /// Commas and quotes, as in RFC 4180.
    pub(crate) const RFC: Self = Self { separator: b',', quote: Some(b'"'), escape: None };

    /// Returns the dialect of these settings. An escape that is the quote is none, since a quote is
    /// doubled anyway.
    pub(crate) fn new(separator: u8, quoting: Quoting, escape: Option<u8>) -> Self {
        let quote = match quoting {
            Quoting::BySeparator => (separator != b'\t').then_some(b'"'),
            Quoting::None => None,
            Quoting::Byte(quote) => Some(quote),
        };
        Self { separator, quote, escape: escape.filter(|_| escape != quote) }
    }

    /// Returns whether every LF ends a record.
    pub(crate) fn is_lines(self) -> bool {
        self.quote.is_none() && self.escape.is_none()
    }
}

/// Where in a field the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    FieldStart,
    Unquoted,
    Quoted,
    /// After a quote inside quotes, which closes the field unless another quote follows.
    AfterQuote,
    /// After an escape outside and inside quotes.
    Escaped,
    QuotedEscaped,
}

impl State {
    pub(super) fn after(self, byte: u8, dialect: Dialect) -> Self {
        let Dialect { separator, quote, escape } = dialect;
        let is = |wanted: Option<u8>| wanted == Some(byte);
        match self {
            Self::Escaped => Self::Unquoted,
            Self::QuotedEscaped => Self::Quoted,
            Self::Quoted if is(escape) => Self::QuotedEscaped,
            Self::Quoted if is(quote) => Self::AfterQuote,
            Self::FieldStart | Self::AfterQuote if is(quote) => Self::Quoted,
            Self::Quoted => Self::Quoted,
            _ if is(escape) => Self::Escaped,
            _ if byte == separator || byte == b'\n' => Self::FieldStart,
            _ => Self::Unquoted,
        }
    }

    /// Returns whether separators and line ends are bytes like any other.
    pub(super) fn is_inside(self) -> bool {
        matches!(self, Self::Quoted | Self::Escaped | Self::QuotedEscaped)
    }

    /// Returns whether a quote is open.
    pub(super) fn is_quoted(self) -> bool {
        matches!(self, Self::Quoted | Self::QuotedEscaped)
    }
}
