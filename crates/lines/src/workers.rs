//! The threads of a job, which take its work from a queue.

use std::panic::resume_unwind;
use std::thread;

/// Runs `work` on the calling thread and on `workers - 1` others, or fewer if the system gives no more, and
/// returns what each returns. All of the work is done by any number of workers, because each takes the next
/// piece when it is free.
pub(crate) fn run<T: Send>(workers: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    run_with(thread::Builder::new, workers, work)
}

/// [`run`] with threads of this builder.
fn run_with<T: Send>(
    builder: impl Fn() -> thread::Builder,
    workers: usize,
    work: impl Fn() -> T + Sync,
) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let start = |_| builder().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..workers).map_while(start).collect();
        let mut results = vec![work()];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn all_work_is_done_by_few_workers_and_by_none() {
        let builders: [fn() -> thread::Builder; 2] =
            // No system has memory for a stack of this size.
            [thread::Builder::new, || thread::Builder::new().stack_size(1 << 60)];
        for (builder, max) in builders.into_iter().zip([3, 1]) {
            let queue = Mutex::new(0..100);
            let next = || queue.lock().unwrap().next();
            let sums = run_with(builder, 3, || std::iter::from_fn(next).sum::<i32>());
            assert_eq!((sums.len(), sums.iter().sum::<i32>()), (max, 4950));
        }
    }
}
