//! Errors as values of C: a code, an offset and a message.

use std::ffi::c_char;
use std::fmt::Display;

use petal::ErrorKind;

/// What went wrong.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::enum_variant_names, reason = "constants of C share one namespace")]
pub enum PetalCode {
    /// Nothing.
    PetalOk = 0,
    /// An argument is out of range or missing, or the specification of a filter cannot be read.
    PetalInvalid = 1,
    /// The bytes are no filter file of a known format.
    PetalForeign = 2,
    /// The file has a version or type that this library does not support.
    PetalVersion = 3,
    /// The file is damaged; `offset` says where.
    PetalDamaged = 4,
    /// The secret of the filter is missing or wrong.
    PetalSecret = 5,
    /// Reading or writing a file failed.
    PetalIo = 6,
    /// Memory is missing.
    PetalMemory = 7,
    /// The filter takes no more keys.
    PetalFull = 8,
    /// Filters of this type cannot do this.
    PetalUnsupported = 9,
    /// Two filters differ and cannot be combined.
    PetalIncompatible = 10,
    /// The same keys are members and non-members of a cascade.
    PetalContradiction = 11,
    /// A fault of the library.
    PetalInternal = 12,
}

/// Bytes of a message, with the zero byte.
pub const PETAL_MESSAGE: usize = 256;

/// An error: its code, where it is, and a line of text that says what to do.
#[repr(C)]
pub struct PetalError {
    /// A value of `petal_code`.
    pub code: i32,
    /// The offset of the damage in the file; 0 for other errors.
    pub offset: u64,
    /// The message, cut to its space.
    pub message: [c_char; PETAL_MESSAGE],
}

/// An error on its way to C.
pub(crate) struct Failure {
    code: PetalCode,
    offset: u64,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: PetalCode, text: impl Display) -> Self {
        Self { code, offset: 0, text: text.to_string() }
    }

    pub(crate) fn write_to(&self, error: &mut PetalError) {
        error.code = self.code as i32;
        error.offset = self.offset;
        error.message = [0; PETAL_MESSAGE];
        // A message that is too long ends with whole characters.
        let mut end = self.text.len().min(PETAL_MESSAGE - 1);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        for (to, from) in error.message.iter_mut().zip(&self.text.as_bytes()[..end]) {
            *to = *from as c_char;
        }
    }
}

impl From<petal::Error> for Failure {
    fn from(error: petal::Error) -> Self {
        let text = error.to_string();
        let (code, offset) = match error.kind() {
            ErrorKind::NotPetal { .. } => (PetalCode::PetalForeign, 0),
            ErrorKind::UnsupportedVersion { .. } => (PetalCode::PetalVersion, 8),
            ErrorKind::WrongLength { expected, found } => {
                (PetalCode::PetalDamaged, *expected.min(found))
            }
            ErrorKind::Corrupt { offset, .. } => (PetalCode::PetalDamaged, *offset),
            ErrorKind::SecretMissing | ErrorKind::WrongSecret => (PetalCode::PetalSecret, 0),
            ErrorKind::Contradiction { .. } => (PetalCode::PetalContradiction, 0),
            ErrorKind::Unsupported { .. } => (PetalCode::PetalUnsupported, 0),
            ErrorKind::Incompatible { .. } => (PetalCode::PetalIncompatible, 0),
            ErrorKind::Full { .. } => (PetalCode::PetalFull, 0),
            ErrorKind::Alloc { .. } | ErrorKind::NoMemory { .. } => (PetalCode::PetalMemory, 0),
            ErrorKind::Io(_) => (PetalCode::PetalIo, 0),
            _ => (PetalCode::PetalInvalid, 0),
        };
        Self { code, offset, text }
    }
}

impl From<petal_interop::Error> for Failure {
    fn from(error: petal_interop::Error) -> Self {
        let code = match &error {
            error if error.is_unknown() => PetalCode::PetalForeign,
            error if error.is_malformed() => PetalCode::PetalDamaged,
            error if error.is_full() => PetalCode::PetalFull,
            error if error.is_too_large() => PetalCode::PetalMemory,
            error if error.is_io() => PetalCode::PetalIo,
            _ => PetalCode::PetalInvalid,
        };
        Self::new(code, error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        petal::Error::from(error).into()
    }
}
