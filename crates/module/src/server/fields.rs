//! Typed fields of a value in an RDB file.

use crate::error::FilterError;

/// Writes fields in sequence.
pub(crate) trait FieldWriter {
    fn unsigned(&mut self, number: u64);
    fn double(&mut self, number: f64);
    fn bytes(&mut self, bytes: &[u8]);
}

/// Reads fields in sequence. The value is [truncated](FilterError::truncated) at the end, on a read
/// error, or if the next field has another type.
pub(crate) trait FieldReader {
    fn unsigned(&mut self) -> Result<u64, FilterError>;
    fn double(&mut self) -> Result<f64, FilterError>;
    fn bytes(&mut self) -> Result<Box<[u8]>, FilterError>;
}
