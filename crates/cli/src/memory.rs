//! How much memory the process has had, and seeing to it that what is freed goes back.

use std::fs;

/// Makes the C library's allocator give memory back when it is freed. By default it moves the
/// size from which it does so up to 32 MiB as the program runs, and keeps a heap for each thread:
/// what one phase has freed would stay beside what the next one needs, and the cap would not hold.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "mallopt has no safe face")]
    // SAFETY: called first thing in `main`, before there are other threads; any values are valid.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 64 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 10);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// The most memory this process has had resident so far, in bytes; 0 where the system does not
/// tell.
pub(crate) fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = peak.and_then(|peak| peak.trim().strip_suffix("kB")?.trim().parse().ok());
    kibibytes.map_or(0, |kibibytes: u64| kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_process_has_had_some() {
        assert!(super::peak() > 1 << 20);
    }
}
