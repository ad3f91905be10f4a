//! The time that the rest of a job takes, over all its phases.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The progress of a job over all its phases.
#[derive(Debug, Default)]
pub struct JobProgress {
    /// The expected number of bytes, and when it became known.
    expected: Mutex<Option<(u64, Instant)>>,
    /// Bytes done since.
    done: AtomicU64,
}

/// The time that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLeft {
    /// Of the job.
    Job(Duration),
    /// Not known yet: the job has just begun.
    TooEarly,
    /// Unknown: the number of bytes is unknown, or turned out to be too low.
    Unknown,
}

impl JobProgress {
    /// Sets the number of bytes that are expected from now on.
    pub fn expect(&self, bytes: u64) {
        if let Ok(mut expected) = self.expected.lock() {
            self.done.store(0, Ordering::Relaxed);
            *expected = Some((bytes, Instant::now()));
        }
    }

    /// Adds bytes that are done.
    pub fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the time for the rest.
    pub fn left(&self) -> TimeLeft {
        let expected = self.expected.lock().ok().and_then(|expected| *expected);
        let Some((bytes, begun)) = expected else { return TimeLeft::Unknown };
        left(bytes, self.done.load(Ordering::Relaxed), begun.elapsed())
    }
}

/// The speed is uncertain before.
const EARLY: Duration = Duration::from_secs(1);

/// Returns the time for the rest of `expected` bytes at the speed of those that are done.
fn left(expected: u64, done: u64, elapsed: Duration) -> TimeLeft {
    if done >= expected {
        return TimeLeft::Unknown;
    }
    if done == 0 || elapsed < EARLY {
        return TimeLeft::TooEarly;
    }
    let rest = (expected - done) as f64 / done as f64;
    let left = Duration::try_from_secs_f64(elapsed.as_secs_f64() * rest);
    left.map_or(TimeLeft::Unknown, TimeLeft::Job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_takes_as_long_per_byte_as_what_is_done() {
        let seconds = Duration::from_secs;
        assert_eq!(left(100, 25, seconds(10)), TimeLeft::Job(seconds(30)));
        assert_eq!(left(100, 0, seconds(10)), TimeLeft::TooEarly);
        assert_eq!(left(100, 50, Duration::from_millis(999)), TimeLeft::TooEarly);
        assert_eq!(left(100, 100, seconds(10)), TimeLeft::Unknown);
        assert_eq!(left(100, 120, seconds(10)), TimeLeft::Unknown);
        assert_eq!(left(u64::MAX, 1, seconds(u64::MAX)), TimeLeft::Unknown);
    }

    #[test]
    fn bytes_before_the_expectation_do_not_count() {
        let job = JobProgress::default();
        job.advance(50);
        assert_eq!(job.left(), TimeLeft::Unknown);
        job.expect(10);
        assert_eq!(job.left(), TimeLeft::TooEarly);
        job.advance(10);
        assert_eq!(job.left(), TimeLeft::Unknown);
        job.expect(10);
        assert_eq!(job.left(), TimeLeft::TooEarly);
    }
}
