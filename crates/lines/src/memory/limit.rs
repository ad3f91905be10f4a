//! The memory limit as users write it, and the available memory: that of the machine, or less in
//! a control group.

use std::fs;
use std::path::Path;

/// A memory limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryLimit {
    /// This many bytes.
    Bytes(u64),
    /// Percentage of the available memory.
    Percent(f64),
}

impl MemoryLimit {
    /// The default: half of the available memory.
    pub const DEFAULT: Self = Self::Percent(50.0);

    /// Parses `4G`, `512M`, `1.5GiB` or `50%`.
    ///
    /// # Errors
    /// If the text is not a size or a percentage; the message says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else {
            return size(text)
                .map(Self::Bytes)
                .map_err(|error| format!("{error}, or a share like 50%"));
        };
        match percent.parse::<f64>() {
            Ok(share) if share > 0.0 && share <= 100.0 => Ok(Self::Percent(share)),
            _ => Err(format!("'{text}' is no share of memory; write 1% to 100%")),
        }
    }

    /// Returns the limit in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(share) => (limit(Path::new("/")) as f64 * share / 100.0) as u64,
        }
    }
}

/// Parses a size with its unit: `4G` is 4 GiB, `512M`, `1.5GiB`.
fn size(text: &str) -> Result<u64, String> {
    let expected = || not_a_size(text);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "B" => 1u64,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        "T" | "TB" | "TIB" => 1 << 40,
        "" => return Err(without_unit(text)),
        _ => return Err(expected()),
    };
    let number: f64 = digits.parse().map_err(|_| expected())?;
    let bytes = number * unit as f64;
    if bytes >= TOO_LARGE {
        return Err(format!(
            "'{text}' is more than the maximum, 8 EiB; write a number and a unit: 4G"
        ));
    }
    if bytes.is_nan() || bytes < 1.0 {
        return Err(expected());
    }
    Ok(bytes as u64)
}

/// Sizes from here are errors.
const TOO_LARGE: f64 = 9.2e18;

fn not_a_size(text: &str) -> String {
    format!("'{text}' is no size; write a number and a unit: 4G, 512M, 64K")
}

/// The message for a number without a unit. A large number is meant in bytes.
fn without_unit(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) if number >= 1e5 => {
            format!("'{text}' has no unit; for bytes write {text}B, else a unit: 64K, 512M, 4G")
        }
        Ok(number) if number > 0.0 => format!("'{text}' has no unit; write {text}M or {text}G"),
        _ => not_a_size(text),
    }
}

/// Assumed if the system does not report its memory.
const UNKNOWN: u64 = 1 << 30;

/// Returns the memory that the process may use; `root` is `/` except in tests.
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

/// Returns the lowest limit of a control group and its parents: `0::/path` for version 2,
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
    fn limit_is_the_lowest_of_machine_and_groups() {
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
    fn caps() {
        assert_eq!(MemoryLimit::parse("4G"), Ok(MemoryLimit::Bytes(4 << 30)));
        assert_eq!(MemoryLimit::parse("512m"), Ok(MemoryLimit::Bytes(512 << 20)));
        assert_eq!(MemoryLimit::parse("1.5GiB"), Ok(MemoryLimit::Bytes(3 << 29)));
        assert_eq!(MemoryLimit::parse("50%"), Ok(MemoryLimit::Percent(50.0)));
        assert_eq!(MemoryLimit::parse("20000000B"), Ok(MemoryLimit::Bytes(20_000_000)));
        let advice = |text| MemoryLimit::parse(text).unwrap_err();
        assert!(advice("20000000").contains("for bytes write 20000000B"));
        assert!(advice("4").contains("write 4M or 4G"));
        for bad in ["0", "-5", "-5M", "0G", "nan"] {
            assert!(advice(bad).starts_with(&format!("'{bad}' is no size; ")), "{}", advice(bad));
        }
        assert!(advice("1e30G").contains("is more than the maximum, 8 EiB"));
        for bad in [
            "B", "0B", "0.5B", "", "G", "4", "4X", "-1G", "nanG", "1e300G", "4 G5", "0%", "101%",
            "%", "x%",
        ] {
            assert!(MemoryLimit::parse(bad).is_err(), "{bad}");
        }
        assert!(MemoryLimit::Percent(50.0).bytes() > 1 << 20);
    }
}
