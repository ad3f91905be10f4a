//! Reading of all members of a gzip file.
//!
//! Bytes behind the last member are an error. `gzip` leaves them out with a warning, but they may be
//! what is left of a damaged member. Zeros are ignored: tapes and block devices pad with them.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The text of the error about bytes behind the last member.
pub(super) const TRAILING: &str = "bytes that are not gzip follow its gzip data";

/// The first byte of a member.
const MEMBER: u8 = 0x1f;

/// Reads all members of a gzip file.
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
            Some(0) if !zeros && bytes[0] == MEMBER => return Ok(Some(rest)),
            Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, TRAILING)),
            None => {
                zeros = true;
                rest.consume(length);
            }
        }
    }
}
