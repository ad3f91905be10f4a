//! How much memory the process may use: the machine's, or less if a control group says so; and
//! seeing to it that what is freed goes back.

use std::fs;
use std::path::Path;

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

/// Bytes this process may use, as far as the system tells.
pub(crate) fn available() -> u64 {
    limit(Path::new("/"))
}

/// The most memory this process has had resident so far, in bytes; 0 where the system does not
/// tell.
pub(crate) fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| kibibytes(line, "VmHWM:")).unwrap_or(0)
}

/// What is assumed where the system tells nothing.
const UNKNOWN: u64 = 1 << 30;

fn limit(root: &Path) -> u64 {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total(&text));
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| group_limit(root, line));
    machine.into_iter().chain(limits).min().unwrap_or(UNKNOWN)
}

fn total(meminfo: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| kibibytes(line, "MemTotal:"))
}

/// `MemTotal:       24575996 kB`
fn kibibytes(line: &str, name: &str) -> Option<u64> {
    let rest = line.strip_prefix(name)?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit of a control group and those above it: `0::/path` for version 2,
/// `4:memory:/path` for version 1.
fn group_limit(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (mount, file) = match (number, controllers) {
        ("0", "") => ("sys/fs/cgroup", "memory.max"),
        (_, names) if names.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let mount = root.join(mount);
    let group = mount.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|group| group.starts_with(&mount));
    groups.filter_map(|group| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::scratch::Scratch;

    fn put(scratch: &Scratch, path: &str, text: &str) {
        let path = scratch.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_least_of_machine_and_groups() {
        let scratch = Scratch::new();
        assert_eq!(limit(scratch.path()), UNKNOWN);
        put(&scratch, "proc/meminfo", "MemTotal:       24575996 kB\nMemFree: 1 kB\n");
        assert_eq!(limit(scratch.path()), 24_575_996 * 1024);
        put(&scratch, "proc/self/cgroup", "0::/a/b\n");
        put(&scratch, "sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(limit(scratch.path()), 24_575_996 * 1024);
        put(&scratch, "sys/fs/cgroup/a/memory.max", "4096000\n");
        assert_eq!(limit(scratch.path()), 4_096_000);
        put(&scratch, "proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x/y\n0::/\n");
        put(&scratch, "sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1234567\n");
        assert_eq!(limit(scratch.path()), 1_234_567);
    }

    #[test]
    fn this_machine_has_some() {
        assert!(available() > 1 << 20 && peak() > 1 << 20);
    }
}
