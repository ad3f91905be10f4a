//! The strategy [`Strategy::Partition`](crate::setops::Strategy::Partition): every line becomes a
//! record.

use super::phases::Phases;
use super::records::Side;
use crate::error::Result;
use crate::fingerprint::Table;
use crate::input::Input;
use crate::temp::{SpillWriter, write_out};

impl Phases<'_> {
    /// Writes records of all lines. `prior`: fingerprints of lines of the first input that have been
    /// printed.
    pub(super) fn write_all_records(
        &mut self,
        others: &[Input],
        prior: Option<Table>,
    ) -> Result<()> {
        if let Some(table) = prior {
            // The table uses all memory, so write its records to disk through a small buffer.
            let scheme = &self.state.scheme;
            let mut spill = SpillWriter::new(self.spill_file, scheme.partitions(), 0);
            for (fingerprint, _) in table.iter() {
                spill.push(scheme.of(fingerprint), &fingerprint.to_bytes())?;
            }
            let mut streams = spill.finish();
            write_out(&mut streams, self.spill_file)?;
            self.state.others.push(streams);
        }
        self.write_records_of_others(others, false)?;
        self.phase(|work| {
            work.state.first =
                work.write_records("reading", work.first, Side::First, None, None)?;
            Ok(())
        })
    }
}
