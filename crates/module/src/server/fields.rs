//! Typed fields of a value in an RDB file.

/// Writes fields in sequence.
pub(crate) trait FieldWriter {
    fn unsigned(&mut self, number: u64);
    fn double(&mut self, number: f64);
    fn bytes(&mut self, bytes: &[u8]);
}

/// Reads fields in sequence. `None` at the end, on a read error, or if the next field has another
/// type.
pub(crate) trait FieldReader {
    fn unsigned(&mut self) -> Option<u64>;
    fn double(&mut self) -> Option<f64>;
    fn bytes(&mut self) -> Option<Box<[u8]>>;
}
