//! The golden files and their manifest.
#![allow(clippy::unwrap_used, reason = "a failed unwrap names the line")]
#![allow(dead_code, reason = "each test program uses its part")]

use std::path::{Path, PathBuf};

use petal_interop::{CascadeHash, CascadeOptions, ForeignFilter, Format, GZIP, KeyType, cascade};

/// A line of `testdata/foreign/manifest.tsv`.
#[derive(Clone, Debug)]
pub(crate) struct Golden {
    pub(crate) file: String,
    /// Name of the format, or `parquet-file`.
    pub(crate) format: String,
    pub(crate) form: KeyType,
    pub(crate) peer: String,
    pub(crate) variant: String,
    pub(crate) keys: u64,
    pub(crate) rate: f64,
    pub(crate) members: String,
    /// Name and version of the program that wrote it.
    pub(crate) version: String,
    pub(crate) sum: String,
}

/// Files that petal reads and does not write: peer, variant (or all), and the reason.
const NOT_OURS: [(&str, &str, &str); 11] = [
    (
        "datasketches-rust",
        "",
        "it counts set bits, petal does as the library for Java, which does not",
    ),
    ("gobloom", "little", "only bitset.LittleEndian() makes Go write so, and read only such files"),
    ("poppy", "space", "petal's have level 0, as poppy's do by default"),
    ("poppy", "speed", "the same"),
    ("poppy", "best", "the same"),
    ("pybloom", "scalable", "each filter that is added has its own hash"),
    ("pybloom", "bytes-scalable", "the same"),
    ("redisbloom", "nonscaling", "petal's grow, as RedisBloom does by default"),
    ("redisbloom", "expansion-4", "petal's grow by 2, as RedisBloom does by default"),
    ("squid", "url", "Squid sizes a digest for what it has cached"),
    ("squid", "url-wide", "the same"),
];

/// The folder of golden files.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/foreign")
}

/// Returns the entries of the manifest, one per file.
pub(crate) fn manifest() -> Vec<Golden> {
    let text = std::fs::read_to_string(folder().join("manifest.tsv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("file\tformat\tkeys\tpeer\tvariant\tn\trate\tmembers\tversion\tsha256")
    );
    let golden = lines.map(|line| {
        let fields: Vec<_> = line.split('\t').collect();
        let [file, format, form, peer, variant, keys, rate, members, version, sum] = fields[..]
        else {
            panic!("ten fields: {line}");
        };
        Golden {
            file: file.into(),
            format: format.into(),
            form: KeyType::from_name(form).unwrap(),
            peer: peer.into(),
            variant: variant.into(),
            keys: keys.parse().unwrap(),
            rate: rate.parse().unwrap(),
            members: members.into(),
            version: version.into(),
            sum: sum.into(),
        }
    });
    golden.collect()
}

/// Returns the lines of a list of keys; empty if there is no such list.
pub(crate) fn lines(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder().join("keys").join(name)).unwrap_or_default();
    text.split_terminator("\n").map(str::to_owned).collect()
}

impl Golden {
    /// Returns the format; `None` for a whole Parquet file.
    pub(crate) fn format(&self) -> Option<Format> {
        Format::from_name(&self.format)
    }

    /// Returns true if petal does not write the same bytes as the program.
    pub(crate) fn is_not_ours(&self) -> bool {
        NOT_OURS.iter().any(|(peer, variant, _)| {
            *peer == self.peer && (variant.is_empty() || *variant == self.variant)
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        folder().join(&self.file)
    }

    /// Returns the bytes of the file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    /// Returns the filter, decompressed.
    pub(crate) fn filter(&self) -> ForeignFilter {
        let read = ForeignFilter::read_from(&self.bytes()[..], self.format(), u64::MAX);
        read.unwrap_or_else(|error| panic!("{}: {error}", self.file)).with_key_type(self.form)
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.bytes().starts_with(&GZIP)
    }

    pub(crate) fn members(&self) -> Vec<String> {
        lines(&format!("{}.txt", self.members))
    }

    /// Returns keys to look up, members among them.
    pub(crate) fn queried(&self) -> Vec<String> {
        lines(&format!("{}.asked", self.members))
    }

    /// Returns the producer's answers for these keys; `None` if it was not queried.
    pub(crate) fn answers(&self) -> Option<String> {
        let name = folder().join(format!("{}.answers", self.file));
        std::fs::read_to_string(name).ok().map(|text| text.trim_end().to_owned())
    }

    /// Returns the filter that petal makes from the same members.
    pub(crate) fn ours(&self, keys: u64, rate: f64) -> ForeignFilter {
        if self.format() == Some(Format::FilterCascade) {
            return self.cascade(keys, rate);
        }
        filled(self.format().unwrap(), self.form, keys, rate, &self.members())
    }

    /// Returns the known non-members of a cascade, as `peers/filtercascade` has them.
    pub(crate) fn others(&self) -> Vec<String> {
        let (members, mut others) = (self.members(), self.queried());
        if others.is_empty() {
            others = members.iter().map(|member| format!("{member}-")).collect();
        }
        others.retain(|key| !members.contains(key));
        if self.variant.ends_with("-inverted") {
            others.truncate(members.len());
        }
        others
    }

    fn cascade(&self, min_capacity: u64, rate: f64) -> ForeignFilter {
        let (hash, salt) = match self.variant.trim_end_matches("-inverted") {
            "murmur3" => (CascadeHash::Murmur3, &b""[..]),
            "sha256" => (CascadeHash::Sha256, &b"petal's golden salt"[..]),
            "sha256-bare" => (CascadeHash::Sha256, &b""[..]),
            unknown => panic!("{unknown}"),
        };
        let inverted = self.variant.ends_with("-inverted");
        let salt = salt.to_vec();
        let options = CascadeOptions {
            rate,
            min_capacity,
            hash,
            salt,
            inverted,
            ..CascadeOptions::default()
        };
        let (members, others) = (self.members(), self.others());
        cascade(bytes(&members), bytes(&others), &options).unwrap()
    }
}

/// Returns keys as bytes.
pub(crate) fn bytes(keys: &[String]) -> impl Iterator<Item = &[u8]> {
    keys.iter().map(String::as_bytes)
}

/// Returns a filter filled by petal.
pub(crate) fn filled(
    format: Format,
    form: KeyType,
    keys: u64,
    rate: f64,
    members: &[String],
) -> ForeignFilter {
    let mut filter = ForeignFilter::with_fpr(format, keys, rate).unwrap().with_key_type(form);
    for member in members {
        filter.insert(member.as_bytes()).unwrap();
    }
    filter
}

/// Returns a filter's answers in the format of `.answers` files.
pub(crate) fn answers<B: AsRef<[u8]>>(filter: &ForeignFilter<B>, keys: &[String]) -> String {
    keys.iter()
        .map(|key| if filter.contains(key.as_bytes()).unwrap() { '1' } else { '0' })
        .collect()
}

/// Returns an empty filter as RedisBloom made it before `FORCE64`.
pub(crate) fn old_redisbloom(options: u8) -> Vec<u8> {
    let new = ForeignFilter::with_fpr(Format::RedisBloom, 40, 0.02).unwrap();
    let mut old = new.as_bytes()[..73].to_vec();
    old[12] = options;
    old[20..36].copy_from_slice(&[64u64.to_le_bytes(), 512u64.to_le_bytes()].concat());
    old[72] = 9; // 2 to the 9th bits
    old.resize(73 + 64, 0);
    old
}
