//! The writer of the rows of a result.

use std::io;

use crate::keys::rows::RowId;

/// Writes rows of tables, which come in ascending order.
pub(crate) trait RowWriter: Send {
    /// Adds a row.
    fn add(&mut self, id: RowId) -> io::Result<()>;

    /// Writes the rows that were added, and the end of the file.
    fn finish(&mut self) -> io::Result<()>;
}
