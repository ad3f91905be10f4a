//! A worker's part of a job, and the secret keys of the job.

use super::range::{FileRange, OFFSET_BITS, open};
use crate::error::{Error, Result};
use crate::files::ByteRange;
use crate::fingerprint::LineHasher;
use crate::input::Input;
use crate::job_context::{JobContext, content_checks};
use crate::memory::Budget;
use crate::setops::JobPasses;
use crate::settings::Settings;
use crate::temp::{MAX_RANGES, SpillFile, TempDir};

/// The secret keys of the hashes of one job, shared by its workers.
///
/// An adversary who chooses lines and knows the keys can make an exact answer wrong; any other
/// adversary only with negligible probability (docs/design/file-engine.md).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JobKeys([u64; 3]);

impl std::fmt::Debug for JobKeys {
    /// Keys must not appear in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JobKeys")
    }
}

impl JobKeys {
    /// Size of the keys in bytes.
    pub const BYTES: usize = 24;

    /// Returns random keys.
    ///
    /// # Errors
    /// If the system returns no random bytes.
    pub fn random() -> Result<Self> {
        Ok(Self(LineHasher::random()?.secret_keys()))
    }

    /// Returns the keys of filters for general use: the default hash with seed 0. Not for exact
    /// answers, and not for lines that an adversary chooses.
    #[must_use]
    pub fn public() -> Self {
        Self([0; 3])
    }

    /// Returns the keys from another worker.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let word = |at: usize| bytes[at * 8..].first_chunk().map_or(0, |w| u64::from_le_bytes(*w));
        Self([word(0), word(1), word(2)])
    }

    /// Returns the bytes for other workers.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(self.0.map(u64::to_le_bytes).as_flattened());
        bytes
    }
}

/// A worker's part of a job: its settings, and the keys of the job.
pub struct Task<'a> {
    pub(super) settings: &'a Settings<'a>,
    pub(super) hasher: LineHasher,
    /// Identifies files of this job without revealing its keys.
    pub(super) job: u64,
}

impl<'a> Task<'a> {
    /// Makes the first task of a job. Pass its [`job_keys`](Self::job_keys) to all others.
    ///
    /// # Errors
    /// If the system returns no random bytes.
    pub fn new(settings: &'a Settings<'a>) -> Result<Self> {
        Ok(Self::with_keys(settings, JobKeys::random()?))
    }

    /// Makes another task of a job.
    #[must_use]
    pub fn with_keys(settings: &'a Settings<'a>, keys: JobKeys) -> Self {
        let hasher = if keys == JobKeys::public() {
            LineHasher::public()
        } else {
            LineHasher::with_keys(keys.0)
        };
        let job = hasher.fingerprint(b"the name of the job").high;
        Self { settings, hasher, job }
    }

    /// Returns the keys of the job.
    #[must_use]
    pub fn job_keys(&self) -> JobKeys {
        JobKeys(self.hasher.secret_keys())
    }

    /// Divides the memory of a task that reads no lines.
    pub(super) fn budget(&self) -> Result<Budget> {
        Budget::new(self.settings.memory_limit, self.settings.jobs)
    }

    /// Returns a file for the records of the task.
    pub(super) fn spill_file(&self) -> Result<SpillFile> {
        SpillFile::new(&TempDir::new(&self.settings.temp_dir))
    }

    /// Opens the ranges as inputs, and divides the memory for them.
    pub(super) fn open(&self, ranges: &[FileRange]) -> Result<(JobContext<'a>, Vec<Input>)> {
        let mut context = JobContext::new(self.settings)?;
        let checks = content_checks(self.settings);
        let portion = |range: &FileRange| {
            let FileRange { start, end, .. } = *range;
            let bad =
                |problem| Err(Error::range(&range.path.to_string_lossy(), start, end, problem));
            if range.number >= MAX_RANGES {
                return bad("its number is above 2^24; cut into larger ranges");
            }
            if end.saturating_sub(start) > 1 << OFFSET_BITS {
                return bad("it is longer than 2^40 bytes; cut into smaller ranges");
            }
            let input = open(&range.path, &checks)?.with_keys(&self.settings.keys);
            if input.stamp().is_some_and(|now| now != range.stamp) {
                let how = "its size or time is not what it was when it was cut";
                return Err(Error::changed(input.name(), how));
            }
            input.portion(ByteRange { start, end })
        };
        let inputs = ranges.iter().map(portion).collect::<Result<Vec<_>>>()?;
        if inputs.iter().any(Input::may_be_compressed) {
            context.budget = context.budget.with_decoder();
        }
        Ok((context, inputs))
    }

    pub(super) fn passes(&self, context: &JobContext<'a>) -> JobPasses<'_> {
        JobPasses { pass: context.pass(), hasher: &self.hasher }
    }
}
