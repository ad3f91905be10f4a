//! Reading of all members of a gzip file.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// Reads all members of a gzip file. Zeros after the last member are ignored, as in `gzip`: tapes and
/// block devices are padded with them.
pub(super) struct GzipMembers<R> {
    /// `None` after the last member.
    pub(super) decoder: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let got = decoder.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            let Some(rest) = self.decoder.take().map(GzDecoder::into_inner) else { break };
            self.decoder = next_member(rest)?.map(GzDecoder::new);
        }
        Ok(0)
    }
}

/// Returns the rest of a gzip file if another member follows; `None` if only zeros or nothing do.
fn next_member<R: BufRead>(mut rest: R) -> io::Result<Option<R>> {
    let mut zeros = false;
    loop {
        let bytes = match rest.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let length = bytes.len();
        match bytes.iter().position(|byte| *byte != 0) {
            _ if length == 0 => return Ok(None),
            Some(0) if !zeros => return Ok(Some(rest)),
            Some(_) => {
                let found = "other bytes follow the zeros behind its last member";
                return Err(io::Error::new(io::ErrorKind::InvalidData, found));
            }
            None => {
                zeros = true;
                rest.consume(length);
            }
        }
    }
}
