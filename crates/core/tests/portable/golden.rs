//! Compares the library with docs/reference/format*.md, with the files in testdata/native, and with an
//! independent implementation of the document (`naive`).

use std::path::{Path, PathBuf};

use petal::embed::Layout;
use petal::{
    AnyFilter, BloomFilter, ClassicBloomFilter, Filter, HashSpec, Key, Membership as _, Secret,
};
use petal_testkit::rng::Rng;

use crate::naive::{self, HeaderFields, Naive};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

// ---- Files that must stay readable --------------------------------------------------------------

const SIP_KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The files in testdata/MANIFEST.md. All contain the keys `key-0` to `key-39`.
struct Golden {
    name: &'static str,
    bits: u64,
    probes: u32,
    classic: bool,
    hash: HashSpec,
    metadata: &'static str,
}

fn goldens() -> [Golden; 7] {
    let golden = |name, bits, probes, classic, hash, metadata| Golden {
        name,
        bits,
        probes,
        classic,
        hash,
        metadata,
    };
    let (rapid, seeded) = (HashSpec::rapid(0), HashSpec::rapid(0x0123_4567_89ab_cdef));
    let keyed = HashSpec::keyed(SIP_KEY);
    [
        golden("line-rapid", 1024, 6, false, rapid, ""),
        golden("line-keyed", 512, 8, false, keyed, r#"{"keys":40}"#),
        golden("pair-rapid", 2048, 11, false, seeded, "{\"what\":\"G\u{e4}ste\"}"),
        golden("pair-keyed", 1024, 16, false, keyed, ""),
        golden("classic-rapid", 1000, 7, true, seeded, r#"{"keys":40}"#),
        golden("classic-keyed", 777, 4, true, keyed, ""),
        golden("line-rapid-keyed", 1024, 6, false, HashSpec::rapid_keyed(SIP_KEY), ""),
    ]
}

impl Golden {
    fn path(&self) -> PathBuf {
        root().join("testdata/native").join(format!("{}.petal", self.name))
    }

    fn stored(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect(self.name)
    }

    /// Returns the file that the library writes.
    fn written(&self) -> Vec<u8> {
        fn fill<L: Layout>(mut filter: Filter<L>, metadata: &str) -> Vec<u8> {
            for key in keys() {
                filter.insert(&key);
            }
            let mut file = Vec::new();
            filter.write_to(&mut file, metadata).unwrap();
            file
        }
        let Self { bits, probes, hash, .. } = *self;
        if self.classic {
            let empty = ClassicBloomFilter::builder().bits(bits).probes(probes).hash(hash);
            fill(empty.build().unwrap(), self.metadata)
        } else {
            let empty = BloomFilter::builder().bits(bits).probes(probes).hash(hash);
            fill(empty.build().unwrap(), self.metadata)
        }
    }

    /// Returns the file of the independent implementation.
    fn expected(&self) -> Vec<u8> {
        let mut naive = match (self.classic, self.probes > 8) {
            (true, _) => Naive::classic(self.bits, self.probes.into()),
            (_, false) => Naive::blocked(self.bits / 512, 8, self.probes.into()),
            (_, true) => Naive::blocked(self.bits / 1024, 16, self.probes.into()),
        };
        let mut fields = HeaderFields {
            hash: self.hash.id(),
            seed: self.hash.seed(),
            metadata: self.metadata.to_owned(),
            ..HeaderFields::none()
        };
        for key in keys() {
            let hash = naive::hash::hash(&fields, key.as_bytes());
            fields.inserted += u64::from(naive.insert(hash));
        }
        naive.to_file(&fields)
    }
}

fn keys() -> impl Iterator<Item = String> {
    (0..40).map(|number| format!("key-{number}"))
}

#[test]
fn golden_files_equal_written_files_and_the_model() {
    for golden in goldens() {
        let stored = golden.stored();
        assert!(golden.written() == stored, "{}: the library writes different bytes", golden.name);
        assert!(
            golden.expected() == stored,
            "{}: docs/reference/format-bloom.md defines different bytes",
            golden.name
        );
    }
}

#[test]
fn golden_files_are_read_and_queried() {
    for golden in goldens() {
        let stored = golden.stored();
        petal::verify_bytes(&stored).unwrap();
        let (filter, metadata) = AnyFilter::read_from(&stored[..]).unwrap();
        assert_eq!(metadata, golden.metadata);
        assert_eq!(filter.as_dyn().hash_spec(), golden.hash);
        let (naive, fields) = Naive::from_file(&stored);
        for number in 0..2000 {
            let key = format!("key-{number}");
            let ours = match &filter {
                AnyFilter::Bloom(filter) => filter.contains(&key),
                AnyFilter::Classic(filter) => filter.contains(&key),
                _ => panic!("a new layout"),
            };
            let expect = naive.contains(naive::hash::hash(&fields, key.as_bytes()));
            assert_eq!(ours, expect, "{} {key}", golden.name);
            assert!(ours || number >= 40, "{} does not contain {key}", golden.name);
        }
    }
}

/// Writes golden files that do not exist yet; existing ones never change.
#[test]
#[ignore = "makes golden files of a new version of the format"]
fn write_missing_golden_files() {
    for golden in goldens() {
        if !golden.path().exists() {
            std::fs::write(golden.path(), golden.written()).unwrap();
        }
    }
}

// ---- The document -------------------------------------------------------------------------------

/// Returns the bytes of the first hex dump of a page (`hexdump -C`; `*` repeats the last line).
fn worked_example(document: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut repeat = false;
    let dump = document.lines().skip_while(|line| !line.starts_with("00000000  "));
    for line in dump.take_while(|line| !line.starts_with("```")) {
        if line == "*" {
            repeat = true;
            continue;
        }
        let (at, row) = line.split_at(8);
        let at = usize::from_str_radix(at, 16).unwrap();
        if repeat {
            let last = bytes[bytes.len() - 16..].to_vec();
            bytes.extend(last.iter().cycle().take(at - bytes.len()));
            repeat = false;
        }
        assert_eq!(bytes.len(), at, "{line}");
        let row = row.split('|').next().unwrap_or_default().split_whitespace();
        bytes.extend(row.map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    bytes
}

/// Returns the page of docs/reference with this name.
fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs/reference").join(name)).unwrap()
}

/// Returns the filter of the example in docs/reference/format-bloom.md.
fn example() -> BloomFilter {
    let mut filter = BloomFilter::with_bits(512, 5).unwrap();
    for key in ["one", "two", "three"] {
        assert!(filter.insert(key));
    }
    filter
}

const EXAMPLE_METADATA: &str = r#"{"what":"example"}"#;

#[test]
fn documented_example_equals_the_written_file() {
    let document = page("format-bloom.md");
    let example_file = worked_example(&document);
    let mut written = Vec::new();
    example().write_to(&mut written, EXAMPLE_METADATA).unwrap();
    assert!(written == example_file, "the document should show:\n{}", hex_dump(&written));

    let (filter, metadata) = BloomFilter::read_from(&example_file[..]).unwrap();
    assert_eq!((metadata.as_str(), filter.inserted()), (EXAMPLE_METADATA, 3));
    assert!(["one", "two", "three"].iter().all(|key| filter.contains(key)));
    assert!(!filter.contains("four"));

    // By the document only, without the library.
    let (naive, fields) = Naive::from_file(&example_file);
    for key in ["one", "two", "three", "four"] {
        let found = naive.contains(naive::hash::hash(&fields, key.as_bytes()));
        assert_eq!(found, key != "four", "{key}");
    }
    assert_eq!(naive.to_file(&fields), example_file);
}

/// Checks the hashes, bit numbers and constants in the text of the example.
#[test]
fn numbers_in_the_documented_example_are_correct() {
    let document = page("format-bloom.md");
    let naive = Naive::blocked(1, 8, 5);
    for key in ["one", "two", "three"] {
        let hash = naive::hash::hash(&HeaderFields::none(), key.as_bytes());
        let mut bits = naive.positions(hash);
        bits.sort_unstable();
        let bits: Vec<String> = bits.iter().map(u64::to_string).collect();
        let row = format!("| `{key}` | `{hash:016x}` | {} |", bits.join(", "));
        assert!(document.contains(&row), "format-bloom.md should have the row {row}");
    }
    for constant in ["9e3779b97f4a7c15", "9fb21c651e98df25", "f1357aea2e62a9c5"] {
        assert!(document.contains(constant), "{constant}");
    }
}

/// Checks the table of hashes, with rows (hash, seed, key).
#[test]
fn documented_hashes_are_correct() {
    let document = page("format.md");
    let rapid = |seed| HeaderFields { seed: HashSpec::rapid(seed).seed(), ..HeaderFields::none() };
    let keyed = || HeaderFields { hash: 2, seed: SIP_KEY, ..HeaderFields::none() };
    let rapid_keyed = || HeaderFields { hash: 5, ..keyed() };
    let letters: Vec<u8> = (0..200).map(|at| b'a' + at % 26).collect();
    let alphabets = "200 bytes: `a` to `z` over and over";
    for (fields, seed, shown, key) in [
        (rapid(0), "0", "none", &b""[..]),
        (rapid(0), "0", "`one`", b"one"),
        (rapid(1), "1", "`one`", b"one"),
        (rapid(1), "1", "`a` to `z`", &letters[..26]),
        (rapid(1), "1", alphabets, &letters),
        (keyed(), "`00 01 … 0f`", "none", b""),
        (keyed(), "`00 01 … 0f`", "`00`", &[0]),
        (keyed(), "`00 01 … 0f`", "`00 01`", &[0, 1]),
        (keyed(), "`00 01 … 0f`", alphabets, &letters),
        (rapid_keyed(), "`00 01 … 0f`", "none", b""),
        (rapid_keyed(), "`00 01 … 0f`", "`one`", b"one"),
        (rapid_keyed(), "`00 01 … 0f`", "`a` to `z`", &letters[..26]),
        (rapid_keyed(), "`00 01 … 0f`", alphabets, &letters),
    ] {
        let (name, spec) = match fields.hash {
            1 => ("rapidhash v3", HashSpec::rapid(u64::from(seed == "1"))),
            2 => ("SipHash-1-3", HashSpec::keyed(SIP_KEY)),
            _ => ("rapidhash v3, keyed", HashSpec::rapid_keyed(SIP_KEY)),
        };
        let hash = naive::hash::hash(&fields, key);
        let row = format!("| {name} | {seed} | {shown} | `{hash:016x}` |");
        assert!(document.contains(&row), "docs/reference/format.md should have the row\n{row}");
        assert_eq!(spec.hash(key), hash);
    }
    let apart = HashSpec::keyed_apart(&Secret::new(SIP_KEY));
    let key = [&SIP_KEY[..8], &SIP_KEY[8..]].map(word);
    let check = naive::hash::siphash(b"petal secret", key, 2, 4);
    assert_eq!(apart.seed()[..8], check.to_le_bytes());
    assert_eq!(apart.seed()[8..], [0; 8]);
    let row = format!("| check value of 6 | `00 01 … 0f` | | `{check:016x}` |");
    assert!(document.contains(&row), "docs/reference/format.md should have the row\n{row}");
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Returns the output of `hexdump -C`.
fn hex_dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut last: Option<&[u8]> = None;
    let mut starred = false;
    for (row, chunk) in bytes.chunks(16).enumerate() {
        if last == Some(chunk) {
            if !starred {
                text += "*\n";
            }
            starred = true;
            continue;
        }
        (last, starred) = (Some(chunk), false);
        let hex: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        let (left, right) = hex.split_at(hex.len().min(8));
        let shown = |byte: &u8| if (32..127).contains(byte) { char::from(*byte) } else { '.' };
        let ascii: String = chunk.iter().map(shown).collect();
        text += &format!("{:08x}  {}  {}  |{ascii}|\n", row * 16, left.join(" "), right.join(" "));
    }
    text + &format!("{:08x}\n", bytes.len())
}

// ---- Hashes and index rules ---------------------------------------------------------------------

#[test]
fn hashes_equal_their_publications() {
    let mut rng = Rng::new(1);
    for length in (0..=300).chain([1000, 4096]) {
        let key = rng.bytes(length);
        let seed = rng.next_u64();
        let random = std::array::from_fn(|_| rng.next_u64() as u8);
        for spec in [
            HashSpec::rapid(0),
            HashSpec::rapid(seed),
            HashSpec::keyed(SIP_KEY),
            HashSpec::rapid_keyed(SIP_KEY),
            HashSpec::rapid_keyed(random),
        ] {
            let fields =
                HeaderFields { hash: spec.id(), seed: spec.seed(), ..HeaderFields::none() };
            assert_eq!(spec.hash(&key), naive::hash::hash(&fields, &key), "{spec:?} {length}");
            assert_eq!(key.hash_with(&spec), spec.hash(&key));
        }
    }
}

/// Returns hashes at the limits of every field, and many others.
fn hashes() -> Vec<u64> {
    let mut rng = Rng::new(2);
    let edges = (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, !(1 << bit), u64::MAX << bit]);
    edges.chain((0..300).map(|_| rng.next_u64())).collect()
}

/// Inserts each hash into an empty filter: exactly the documented bits are set.
#[test]
fn bit_positions_equal_the_document() {
    fn agrees<L: Layout>(empty: &Naive) {
        let (mut filter, _) =
            Filter::<L>::read_from(&empty.to_file(&HeaderFields::none())[..]).unwrap();
        for hash in hashes() {
            filter.clear();
            let mut naive = empty.clone();
            assert!(filter.insert_mixed_hash(hash) && naive.insert(hash));
            assert!(!filter.insert_mixed_hash(hash) && filter.contains_mixed_hash(hash));
            let mut file = Vec::new();
            filter.write_to(&mut file, "").unwrap();
            let bits = &file[4096..];
            assert!(
                bits == naive.data,
                "{hash:#x} in {:?}",
                (empty.kind, empty.lanes, empty.extent)
            );
        }
    }
    for (lanes, blocks) in [(8, 1), (8, 3), (8, 70), (16, 1), (16, 2), (16, 33)] {
        for probes in 1..=lanes {
            agrees::<petal::embed::BlockedLayout>(&Naive::blocked(blocks, lanes, probes));
        }
    }
    for bits in [1, 2, 63, 511, 512, 513, 12_345] {
        for probes in [1, 2, 7, 64] {
            agrees::<petal::embed::ClassicLayout>(&Naive::classic(bits, probes));
        }
    }
}
