//! The settings of malloc, and the peak memory of the process.

use std::fs;

/// Makes the C library return freed memory to the system.
///
/// By default glibc raises the size from which it does so up to 32 MiB, and keeps a heap for each
/// thread, so that the memory of a finished phase would count against the limit of the next.
pub(crate) fn tune_malloc() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "mallopt has no safe wrapper")]
    // SAFETY: called first in `main`, before there are other threads; all values are valid.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 64 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 10);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Returns the peak resident memory of the process in bytes; 0 if the system does not report it.
pub(crate) fn peak() -> u64 {
    status("VmHWM:")
}

/// Returns the resident memory of the process in bytes; 0 if the system does not report it.
pub(crate) fn resident() -> u64 {
    status("VmRSS:")
}

fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = value.and_then(|value| value.trim().strip_suffix("kB")?.trim().parse().ok());
    kibibytes.map_or(0, |kibibytes: u64| kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_is_above_zero() {
        assert!(super::peak() > 1 << 20);
        assert!(super::resident() > 1 << 20);
    }
}
