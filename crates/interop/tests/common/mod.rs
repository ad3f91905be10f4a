//! The golden files, and what their manifest says of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![allow(dead_code, reason = "each test program uses its part")]

use std::path::{Path, PathBuf};

use petal_interop::{CascadeHash, CascadeOptions, Foreign, Format, GZIP, KeyForm, cascade};

/// A line of `testdata/foreign/manifest.tsv`.
#[derive(Clone, Debug)]
pub(crate) struct Golden {
    pub(crate) file: String,
    /// A format's name, or `parquet-file`.
    pub(crate) format: String,
    pub(crate) form: KeyForm,
    pub(crate) peer: String,
    pub(crate) variant: String,
    pub(crate) keys: u64,
    pub(crate) rate: f64,
    pub(crate) members: String,
    /// Of the program that wrote it, with its name.
    pub(crate) version: String,
    pub(crate) sum: String,
}

/// What petal reads and does not write: peer, variant (or all of them), and why.
const NOT_OURS: [(&str, &str, &str); 8] = [
    (
        "datasketches-rust",
        "",
        "it counts set bits, petal does as the library for Java, which does not",
    ),
    ("gobloom", "little", "only bitset.LittleEndian() makes Go write so, and read only such files"),
    ("pybloom", "scalable", "each filter that is added has its own hash"),
    ("pybloom", "bytes-scalable", "the same"),
    ("redisbloom", "nonscaling", "petal's grow, as RedisBloom's do if nothing is said"),
    ("redisbloom", "expansion-4", "petal's grow by 2, as RedisBloom's do if nothing is said"),
    ("squid", "url", "Squid sizes a digest for what it has cached"),
    ("squid", "url-wide", "the same"),
];

/// The folder of golden files.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/foreign")
}

/// What the manifest says, a line for each file.
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
            form: KeyForm::from_name(form).unwrap(),
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

/// The lines of a list of keys; none if there is no such list.
pub(crate) fn lines(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder().join("keys").join(name)).unwrap_or_default();
    text.split_terminator("\n").map(str::to_owned).collect()
}

impl Golden {
    /// Its format, unless it is a whole Parquet file.
    pub(crate) fn format(&self) -> Option<Format> {
        Format::from_name(&self.format)
    }

    /// Whether petal does not write the very bytes that the program writes.
    pub(crate) fn is_not_ours(&self) -> bool {
        NOT_OURS.iter().any(|(peer, variant, _)| {
            *peer == self.peer && (variant.is_empty() || *variant == self.variant)
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        folder().join(&self.file)
    }

    /// The bytes, as they are in the file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    /// The filter, unpacked.
    pub(crate) fn filter(&self) -> Foreign {
        let read = Foreign::read_from(&self.bytes()[..], self.format(), u64::MAX);
        read.unwrap_or_else(|error| panic!("{}: {error}", self.file)).with_keys(self.form)
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.bytes().starts_with(&GZIP)
    }

    pub(crate) fn members(&self) -> Vec<String> {
        lines(&format!("{}.txt", self.members))
    }

    /// Keys to ask, members among them.
    pub(crate) fn asked(&self) -> Vec<String> {
        lines(&format!("{}.asked", self.members))
    }

    /// What the producer answered to the keys asked; `None` if it was not asked.
    pub(crate) fn answers(&self) -> Option<String> {
        let name = folder().join(format!("{}.answers", self.file));
        std::fs::read_to_string(name).ok().map(|text| text.trim_end().to_owned())
    }

    /// What petal makes of the same members.
    pub(crate) fn ours(&self, keys: u64, rate: f64) -> Foreign {
        if self.format() == Some(Format::FilterCascade) {
            return self.cascade(keys, rate);
        }
        filled(self.format().unwrap(), self.form, keys, rate, &self.members())
    }

    /// The keys that a cascade was told not to hold, as `peers/filtercascade` has them.
    pub(crate) fn others(&self) -> Vec<String> {
        let (members, mut others) = (self.members(), self.asked());
        if others.is_empty() {
            others = members.iter().map(|member| format!("{member}-")).collect();
        }
        others.retain(|key| !members.contains(key));
        if self.variant.ends_with("-inverted") {
            others.truncate(members.len());
        }
        others
    }

    fn cascade(&self, least_keys: u64, rate: f64) -> Foreign {
        let (hash, salt) = match self.variant.trim_end_matches("-inverted") {
            "murmur3" => (CascadeHash::Murmur3, &b""[..]),
            "sha256" => (CascadeHash::Sha256, &b"petal's golden salt"[..]),
            "sha256-bare" => (CascadeHash::Sha256, &b""[..]),
            unknown => panic!("{unknown}"),
        };
        let inverted = self.variant.ends_with("-inverted");
        let salt = salt.to_vec();
        let options =
            CascadeOptions { rate, least_keys, hash, salt, inverted, ..CascadeOptions::default() };
        let (members, others) = (self.members(), self.others());
        cascade(bytes(&members), bytes(&others), &options).unwrap()
    }
}

/// Keys as bytes.
pub(crate) fn bytes(keys: &[String]) -> impl Iterator<Item = &[u8]> {
    keys.iter().map(String::as_bytes)
}

/// A filter that petal makes.
pub(crate) fn filled(
    format: Format,
    form: KeyForm,
    keys: u64,
    rate: f64,
    members: &[String],
) -> Foreign {
    let mut filter = Foreign::with_rate(format, keys, rate).unwrap().with_keys(form);
    for member in members {
        filter.insert(member.as_bytes()).unwrap();
    }
    filter
}

/// A filter's answers, in the form of `.answers`.
pub(crate) fn answers<B: AsRef<[u8]>>(filter: &Foreign<B>, keys: &[String]) -> String {
    keys.iter()
        .map(|key| if filter.contains(key.as_bytes()).unwrap() { '1' } else { '0' })
        .collect()
}

/// An empty filter as RedisBloom made them before `FORCE64`.
pub(crate) fn old_redisbloom(options: u8) -> Vec<u8> {
    let new = Foreign::with_rate(Format::RedisBloom, 40, 0.02).unwrap();
    let mut old = new.as_bytes()[..73].to_vec();
    old[12] = options;
    old[20..36].copy_from_slice(&[64u64.to_le_bytes(), 512u64.to_le_bytes()].concat());
    old[72] = 9; // 2 to the 9th bits
    old.resize(73 + 64, 0);
    old
}
