//! Fields of the server's files, one after the other, as objects write and read them.

/// Fields that are written one after the other.
pub(crate) trait Save {
    /// A whole number.
    fn unsigned(&mut self, number: u64);
    /// A number.
    fn double(&mut self, number: f64);
    /// Bytes, and how many.
    fn bytes(&mut self, bytes: &[u8]);
}

/// Fields that are read one after the other; none if there are no more, or one of another type.
pub(crate) trait Load {
    /// A whole number.
    fn unsigned(&mut self) -> Option<u64>;
    /// A number.
    fn double(&mut self) -> Option<f64>;
    /// Bytes, as many as are there.
    fn bytes(&mut self) -> Option<Box<[u8]>>;
}
