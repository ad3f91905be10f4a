//! What a job tells while it runs, and what it says when it is done: values, never text on a
//! terminal. The engine knows of no terminal.

/// Hears how a job is getting on. All methods do nothing unless implemented.
pub trait Progress: Sync {
    /// A pass over lines begins; `bytes` of input are ahead, if that is known.
    fn phase(&self, what: &'static str, bytes: Option<u64>) {
        let _ = (what, bytes);
    }

    /// So many more bytes of the phase are done. Called from many threads.
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Whether nothing more should be read: a pass then ends well with what it has read. For jobs
    /// that can end anywhere; others must not say so.
    fn stopped(&self) -> bool {
        false
    }

    /// Whether the job is to be given up: it then ends with an error at the next chunk.
    fn cancelled(&self) -> bool {
        false
    }

    /// Something a person may want to know.
    fn note(&self, note: Note<'_>) {
        let _ = note;
    }
}

/// Nobody listens.
impl Progress for () {}

/// Things a person may want to know about a running job.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Note<'a> {
    /// An input that can be read only once is copied to the directory for temporary files.
    Spooling {
        /// The input.
        input: &'a str,
        /// Where the copy goes.
        dir: &'a std::path::Path,
    },
    /// An input begins with a UTF-8 byte order mark, which is part of its first line: that line
    /// equals none that lacks the mark.
    ByteOrderMark {
        /// The input.
        input: &'a str,
        /// How many other inputs do.
        more: u64,
    },
    /// Lines of one input end in CRLF, lines of another in LF. The CR is part of a line: lines
    /// that look the same differ.
    MixedLineEnds {
        /// The input with CRLF.
        crlf: &'a str,
        /// How many other inputs have CRLF.
        more: u64,
        /// An input with LF.
        lf: &'a str,
    },
    /// Approximate work begins: about so many wrong lines are to be expected.
    Expecting {
        /// Wrong lines at most, as planned from sampled sizes; unknown of inputs whose size is.
        wrong: Option<f64>,
        /// The false-positive rate behind it.
        rate: f64,
    },
    /// How much of what came in was new, from time to time.
    Tally {
        /// Lines read.
        lines: u64,
        /// Lines that were new.
        new: u64,
        /// The share of new lines that the filter takes for known, now; with exact fingerprints
        /// beside it they are printed all the same.
        rate: f64,
    },
}
