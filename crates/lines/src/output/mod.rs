//! Outputs: printed lines and rows, and what precedes them.

mod appended;
mod compressed;
mod output_start;
mod printer;
mod row_output;

pub use appended::AppendedTo;
pub use compressed::{CompressedWriter, Compression};
pub(crate) use output_start::OutputStart;
pub use printer::Outputs;
pub(crate) use printer::{Printer, Span};
pub(crate) use row_output::{KeyLine, RowFormat, RowOutputs};
