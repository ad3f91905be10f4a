//! Memory, CPU time and page faults of this process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the resident memory of this process that belongs to no file; 0 if the system does not tell.
pub fn anonymous_memory() -> u64 {
    status("RssAnon:")
}

/// Returns the largest resident memory of this process since [`reset_peak_memory`].
pub fn peak_memory() -> u64 {
    status("VmHWM:")
}

/// Resets the largest resident memory to the present one, and returns it.
pub fn reset_peak_memory() -> u64 {
    // Where the system refuses it, the peak of earlier, smaller rounds remains.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    peak_memory()
}

/// Returns a field of `/proc/self/status`, in bytes; 0 if the system does not tell.
fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    kib.unwrap_or(0_u64) * 1024
}

/// Returns the CPU time of all threads, of user and system.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the number of page faults, and of those that read a file; 0 if the system does not tell.
pub fn page_faults() -> (u64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program is in parentheses.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let fields: Vec<&str> = fields.split(' ').collect();
    let field = |at: usize| fields.get(at).and_then(|field| field.parse().ok()).unwrap_or(0);
    let (minor, major) = (field(7), field(9));
    (minor + major, major)
}
