//! Samples of the memory and the temporary disk of a running job.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use petal_lines::DiskUsage;

use super::memory;

/// A sample: the largest values since the sample before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// When it was taken.
    pub(crate) at: Instant,
    /// Resident memory of the process in bytes; 0 if the system does not report it.
    pub(crate) memory: u64,
    /// Bytes on temporary disk.
    pub(crate) disk: u64,
}

/// The first interval between samples. It doubles whenever there are [`MAX_SAMPLES`].
const INTERVAL: Duration = Duration::from_millis(20);
const MAX_SAMPLES: usize = 200;

/// Takes samples on a thread of its own until it is finished or dropped.
pub(crate) struct Sampler {
    thread: Option<(Sender<()>, JoinHandle<Vec<Sample>>)>,
}

impl Sampler {
    /// Starts to take samples. Takes none if the system has no more threads.
    pub(crate) fn start(disk: &DiskUsage) -> Self {
        let (end, ended) = channel::<()>();
        let (disk, first) = (disk.clone(), sample(disk));
        let work = move || {
            let mut samples = vec![first];
            let mut interval = INTERVAL;
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                samples.push(sample(&disk));
                if samples.len() >= MAX_SAMPLES {
                    samples = halved(&samples);
                    interval *= 2;
                }
            }
            samples
        };
        let thread = std::thread::Builder::new().name("sampler".to_owned()).spawn(work);
        Self { thread: thread.ok().map(|thread| (end, thread)) }
    }

    /// Stops, and returns the samples in order.
    pub(crate) fn finish(mut self) -> Vec<Sample> {
        self.stop()
    }

    fn stop(&mut self) -> Vec<Sample> {
        let Some((end, thread)) = self.thread.take() else { return Vec::new() };
        drop(end);
        thread.join().unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop();
    }
}

fn sample(disk: &DiskUsage) -> Sample {
    Sample { at: Instant::now(), memory: memory::resident(), disk: disk.bytes() }
}

/// Joins samples in pairs and keeps the larger values.
fn halved(samples: &[Sample]) -> Vec<Sample> {
    let join = |pair: &[Sample]| {
        let last = pair[pair.len() - 1];
        let memory = pair.iter().map(|sample| sample.memory).max().unwrap_or(last.memory);
        let disk = pair.iter().map(|sample| sample.disk).max().unwrap_or(last.disk);
        Sample { at: last.at, memory, disk }
    };
    samples.chunks(2).map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_samples_keep_the_peak() {
        let at = Instant::now();
        let samples: Vec<_> = [(1, 9), (5, 0), (2, 2)]
            .map(|(memory, disk)| Sample { at, memory, disk })
            .into_iter()
            .collect();
        let joined = halved(&samples);
        assert_eq!(joined.len(), 2);
        assert_eq!((joined[0].memory, joined[0].disk), (5, 9));
        assert_eq!(joined[1], samples[2]);
    }

    #[test]
    fn a_finished_sampler_has_samples_in_order() {
        let samples = Sampler::start(&DiskUsage::default()).finish();
        assert!(!samples.is_empty(), "{samples:?}");
        assert!(samples.is_sorted_by_key(|sample| sample.at), "{samples:?}");
    }
}
