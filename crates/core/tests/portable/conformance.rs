//! testdata/conformance, which readers in all languages are tested with: its files, answers and hostile files are those
//! of the library and of a simple implementation of docs/reference/format.md.
//!
//! `PETAL_UPDATE_CONFORMANCE=1` writes the set again.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use petal::{
    AnyFilter, BloomFilter, Builder, ClassicBloomFilter, ClassicCountingBloomFilter,
    CountingBloomFilter, Error, FilterCascade, HashSpec, QuotientFilter, ScalableBloomFilter,
    Secret, StaticFilter, VectorQuotientFilter, WindowedBloomFilter, verify_bytes,
};

use crate::naive::hash::hash;
use crate::naive::{HeaderFields, update_checksums};
use crate::reader::Reader;

const KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// A key, as a line of the answers names it.
#[derive(Clone)]
enum TestKey {
    Text(String),
    Number(u64),
    Bytes(Vec<u8>),
}

impl TestKey {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Number(number) => number.to_le_bytes().to_vec(),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Text(text) => format!(r#""text":"{}""#, text.replace('\t', r"\t")),
            Self::Number(number) => format!(r#""number":"{number}""#),
            Self::Bytes(bytes) => format!(r#""bytes":"{}""#, hex(bytes)),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The keys that every filter contains.
fn members() -> Vec<TestKey> {
    let letters: String = ('a'..='z').cycle().take(200).collect();
    let words = ["", "one", "two", "three", "布隆过滤器", "Gäste", "🌸", "a b\tc", &letters];
    let urls = (0..8).map(|n| format!("https://example.org/page/{n}?q={}", n * n));
    let numbers = (0..6).chain([1 << 32, u64::MAX]);
    let bytes = [vec![0], vec![0; 9], vec![0xff, 0xfe], (0..=255).collect()];
    let texts = words.into_iter().map(str::to_owned).chain(urls).map(TestKey::Text);
    texts.chain(numbers.map(TestKey::Number)).chain(bytes.map(TestKey::Bytes)).collect()
}

/// Keys that no filter is given.
fn others() -> Vec<TestKey> {
    let words = ["four", "ONE", "one ", "布隆", "https://example.org/page/8?q=64"];
    let numbers = (900..920).map(TestKey::Number);
    let texts = words.into_iter().map(|word| TestKey::Text(word.to_owned()));
    texts.chain(numbers).chain([TestKey::Bytes(vec![0, 0])]).collect()
}

/// A file of the set.
struct Case {
    name: String,
    filter: AnyFilter,
    metadata: String,
    secret: Option<[u8; 16]>,
}

impl Case {
    fn new(name: &str, filter: impl Into<AnyFilter>) -> Self {
        Self { name: name.to_owned(), filter: filter.into(), metadata: String::new(), secret: None }
    }

    fn file(&self) -> Vec<u8> {
        let mut file = Vec::new();
        self.filter.as_dyn().write_to(&mut file, &self.metadata).unwrap();
        file
    }
}

/// Adds the members, and numbers from 10^6 on, to an empty filter.
fn filled(filter: impl Into<AnyFilter>, numbers: u64) -> AnyFilter {
    let mut filter = filter.into();
    let more = (1_000_000..1_000_000 + numbers).map(TestKey::Number);
    for key in members().into_iter().chain(more) {
        filter.insert(&key.bytes()[..]).unwrap();
    }
    filter
}

fn static_filter(builder: Builder<StaticFilter>, numbers: u64) -> StaticFilter {
    let more = (1_000_000..1_000_000 + numbers).map(TestKey::Number);
    let keys: Vec<Vec<u8>> = members().into_iter().chain(more).map(|key| key.bytes()).collect();
    builder.build(&keys).unwrap()
}

fn cascade(rate: f64, hash: HashSpec, numbers: u64) -> FilterCascade {
    let more = (1_000_000..1_000_000 + numbers).map(TestKey::Number);
    let members: Vec<Vec<u8>> = members().into_iter().chain(more).map(|key| key.bytes()).collect();
    let far = (2_000_000..2_000_000 + 10 * numbers).map(TestKey::Number);
    let others: Vec<Vec<u8>> = others().into_iter().chain(far).map(|key| key.bytes()).collect();
    FilterCascade::builder().fpr(rate).hash(hash).build(&members, &others).unwrap()
}

/// Returns the names of all hashes, with the secret of the one whose secret is apart.
fn hashes() -> [(&'static str, HashSpec, Option<[u8; 16]>); 5] {
    [
        ("rapid", HashSpec::rapid(0), None),
        ("seeded", HashSpec::rapid(0x0123_4567_89ab_cdef), None),
        ("sip", HashSpec::keyed(KEY), None),
        ("rapid-keyed", HashSpec::rapid_keyed(KEY), None),
        ("secret-apart", HashSpec::keyed_apart(&Secret::new(KEY)), Some(KEY)),
    ]
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Every hash with a type of each kind of reader.
    for (name, hash, secret) in hashes() {
        let bloom = BloomFilter::builder().bits(1024).probes(6).hash(hash).build().unwrap();
        let classic =
            ClassicBloomFilter::builder().bits(1000).probes(7).hash(hash).build().unwrap();
        let fixed = StaticFilter::builder().fpr(0.02).hash(hash);
        for (kind, filter) in [
            ("bloom", filled(bloom, 60)),
            ("classic", filled(classic, 60)),
            ("static", static_filter(fixed, 400).into()),
            ("cascade", cascade(0.05, hash, 300).into()),
        ] {
            cases.push(Case { secret, ..Case::new(&format!("{kind}-{name}"), filter) });
        }
    }
    let bloom = |bits, probes| BloomFilter::builder().bits(bits).probes(probes).build().unwrap();
    let classic = |bits, probes| ClassicBloomFilter::builder().bits(bits).probes(probes).build();
    cases.extend([
        Case::new("bloom-empty", bloom(512, 5)),
        Case::new("bloom-one-probe", filled(bloom(4096, 1), 200)),
        Case::new("bloom-eight-probes", filled(bloom(1536, 8), 90)),
        Case::new("bloom-sixteen-lanes", filled(bloom(3072, 11), 140)),
        Case::new("bloom-sixteen-probes", filled(bloom(1024, 16), 20)),
        Case {
            metadata: r#"{"source":"布隆","note":"x"}"#.to_owned(),
            ..Case::new("bloom-metadata", filled(bloom(1024, 6), 60))
        },
        Case {
            metadata: format!(r#"{{"note":"{}"}}"#, "long ".repeat(900)),
            ..Case::new("bloom-long-metadata", filled(bloom(1024, 6), 60))
        },
        Case::new("classic-one-bit", filled(classic(1, 1).unwrap(), 0)),
        Case::new("classic-odd", filled(classic(777, 3).unwrap(), 90)),
        Case::new("classic-many-probes", filled(classic(6000, 64).unwrap(), 20)),
    ]);
    let counting = |width| CountingBloomFilter::builder().bits(1024).probes(5).counter_width(width);
    let counting_classic = ClassicCountingBloomFilter::builder().bits(999).probes(6);
    let mut removed = filled(counting(4).build().unwrap(), 60);
    if let AnyFilter::Counting(filter) = &mut removed {
        (1_000_000u64..1_000_040).for_each(|key| assert!(filter.remove(&key)));
    }
    cases.extend([
        Case::new("counting-two-bits", filled(counting(2).build().unwrap(), 60)),
        Case::new("counting-removed", removed),
        Case::new("counting-classic", filled(counting_classic.build().unwrap(), 60)),
    ]);
    let quotient =
        |slots, bits| QuotientFilter::builder().table_size(slots).slot_bits(bits).build().unwrap();
    cases.extend([
        Case::new("quotient-narrow", filled(quotient(330, 3), 260)),
        Case::new("quotient-wide", filled(quotient(60, 40), 20)),
        // Offsets of blocks reach 255.
        Case::new("quotient-long-runs", crowded(quotient(1200, 9))),
    ]);
    let vector = |blocks, bits| {
        VectorQuotientFilter::builder().table_size(blocks).slot_bits(bits).build().unwrap()
    };
    for bits in [6, 7, 8, 10, 13, 18] {
        let name = format!("vector-quotient-{bits}");
        cases.push(Case::new(&name, filled(vector(9, bits), 120)));
    }
    let scalable = ScalableBloomFilter::builder().capacity(40).fpr(0.05);
    let windowed = || WindowedBloomFilter::builder().capacity(60).fpr(0.05);
    let mut timed = filled(windowed().window(90).build().unwrap(), 0);
    if let AnyFilter::Windowed(filter) = &mut timed {
        for tick in 0..130u64 {
            filter.advance_to(tick);
            filter.insert(&(3_000_000 + tick));
        }
    }
    cases.extend([
        Case::new("scalable", filled(scalable.build().unwrap(), 300)),
        Case::new("scalable-head-start", filled(scalable.head_start(4, 500).build().unwrap(), 300)),
        Case::new("scalable-share", filled(scalable.growth_share(4).build().unwrap(), 300)),
        Case::new("windowed-keys", filled(windowed().generations(5).build().unwrap(), 130)),
        Case::new("windowed-time", timed),
    ]);
    let fixed = |rate| StaticFilter::builder().fpr(rate);
    cases.extend([
        Case::new("static-empty", fixed(0.01).build::<u64>(&[]).unwrap()),
        Case::new("static-one", fixed(0.01).build(&["one"]).unwrap()),
        Case::new("static-whole-columns", static_filter(fixed(0.0625), 100)),
        Case::new("static-many-columns", static_filter(fixed(1e-8), 300)),
        Case::new("static-layers", static_filter(fixed(0.3), 30_000)),
        Case::new("static-shards", static_filter(fixed(0.45), 90_000)),
        Case::new("static-fuse-empty", fixed(0.01).fuse(true).build::<u64>(&[]).unwrap()),
        Case::new("static-fuse-one", fixed(0.01).fuse(true).build(&["one"]).unwrap()),
        Case::new("static-fuse-dense", static_filter(fixed(0.02).fuse(true), 80)),
        Case::new("static-fuse", static_filter(fixed(0.01).fuse(true), 3000)),
        Case::new("static-fuse-many-bits", static_filter(fixed(1e-8).fuse(true), 400)),
        Case::new("static-fuse-shards", static_filter(fixed(0.7).fuse(true), 420_000)),
        Case::new("cascade-shards", cascade(0.5, HashSpec::rapid(0), 40_000)),
    ]);
    cases
}

/// Fills a quotient filter with many copies of few keys.
fn crowded(filter: QuotientFilter) -> AnyFilter {
    let mut filter = filled(filter, 300);
    if let AnyFilter::Quotient(filter) = &mut filter {
        (0..400u64).for_each(|_| filter.add(&1_000_007u64).unwrap());
        (0..300u64).for_each(|copy| filter.add(&(1_000_000 + copy % 3)).unwrap());
    }
    filter
}

/// Returns the lines with the answers of a file.
fn answers(case: &Case, file: &[u8]) -> String {
    let reader = Reader::new(file, case.secret);
    let spec = case.filter.as_dyn().hash_spec();
    let mut keys = members();
    keys.extend((1_000_000..1_000_012).map(TestKey::Number));
    keys.extend(others());
    // A few false positives.
    let far = (4_000_000..4_050_000).map(TestKey::Number);
    let is_false = |key: &TestKey| reader.query(reader.hash(&key.bytes())).0;
    let costs_much = file.len() > 20_000;
    keys.extend(far.take(if costs_much { 300 } else { 50_000 }).filter(is_false).take(4));
    let mut lines = String::new();
    for key in keys {
        let hash = reader.hash(&key.bytes());
        let (present, numbers) = reader.query(hash);
        let name = &case.name;
        assert_eq!(hash, spec.hash(&key.bytes()), "{name}: {}", key.json());
        let ours = case.filter.contains_mixed_hash(hash);
        assert_eq!(ours, present, "{name}: {} {numbers:?}", key.json());
        let numbers: Vec<_> = numbers.iter().map(|number| format!(r#""{number}""#)).collect();
        let key = key.json();
        let numbers = numbers.join(",");
        let _ = writeln!(
            lines,
            r#"{{{key},"hash":"{hash:016x}","present":{present},"numbers":[{numbers}]}}"#
        );
    }
    lines
}

/// Lines with hashes of keys of many lengths.
fn hash_vectors() -> String {
    let lengths = (0..=34).chain([47, 48, 49, 63, 64, 65, 79, 80, 81, 95, 96, 97, 111, 112, 113]);
    let lengths: Vec<usize> = lengths.chain([127, 128, 129, 224, 225, 239, 240, 500]).collect();
    let mut lines = String::new();
    for (id, seed) in [(1, 0), (1, 0x0123_4567_89ab_cdef), (2, 7), (5, 7)] {
        let mut fields = HeaderFields { hash: id, ..HeaderFields::none() };
        fields.seed[..8].copy_from_slice(&u64::to_le_bytes(seed));
        if id != 1 {
            fields.seed = KEY;
        }
        for &length in &lengths {
            let key: Vec<u8> = (0..length).map(|at| (at * 7 + length) as u8).collect();
            let (seed, value) = (hex(&fields.seed), hash(&fields, &key));
            let key = hex(&key);
            let _ = writeln!(
                lines,
                r#"{{"algorithm":{id},"seed":"{seed}","key":"{key}","hash":"{value:016x}"}}"#
            );
        }
    }
    lines
}

/// A changed copy of a file.
struct Hostile<'a> {
    file: &'a str,
    /// The offset and the new bytes of each change.
    edits: Vec<(usize, Vec<u8>)>,
    length: usize,
}

/// Returns changed copies that every reader refuses: with valid checksums where they are not what is wrong.
fn hostile<'a>(cases: &'a [Case], files: &[Vec<u8>]) -> Vec<(Hostile<'a>, Vec<u8>)> {
    let word = |number: u64| number.to_le_bytes().to_vec();
    let short = |number: u16| number.to_le_bytes().to_vec();
    let header: Vec<(usize, Vec<u8>)> = vec![
        (0, vec![0x88]),
        (6, vec![b'\n']),
        (8, short(0)),
        (8, short(2)),
        (10, short(0)),
        (10, short(10)),
        (10, short(13)),
        (12, vec![1]),
        (16, word(0)),
        (16, word(256)),
        (16, word(u64::MAX)),
        (24, word(0)),
        (24, word(63)),
        (24, word(1 << 40)),
        (24, word(u64::MAX - 4095)),
        (32, vec![0xff; 4]),
        (32, vec![0, 0, 0x10, 0]),
        (36, short(0)),
        (36, short(3)),
        (36, short(9)),
        (38, short(255)),
        (38, short(u16::MAX)),
        (40, short(7)),
        (40, short(u16::MAX)),
        (42, vec![1]),
        (56, vec![1]),
        (64, word(0)),
        (64, word(1 << 50)),
        (64, word(1 << 58)),
        (64, word(1 << 63)),
        (64, word(u64::MAX)),
        (80, word(f64::NAN.to_bits())),
        (80, word(1.0f64.to_bits())),
        (80, word((-0.1f64).to_bits())),
        (239, vec![1]),
        (4095, vec![1]),
    ];
    let parameters =
        [0, 1, 2, 3, 16, 31, 64, 1 << 20, 1 << 32, 1 << 50, 1 << 58, 1 << 62, u64::MAX];
    let mut hostile = Vec::new();
    let mut add =
        |case: &'a Case, file: &[u8], edits: &[(usize, Vec<u8>)], length, repair: bool| {
            let mut bytes = file.to_vec();
            for (at, new) in edits {
                if at + new.len() > bytes.len() {
                    return false;
                }
                bytes[*at..*at + new.len()].copy_from_slice(new);
            }
            bytes.resize(length, 0);
            let mut edits = edits.to_vec();
            if repair && bytes.len() >= 256 {
                update_checksums(&mut bytes);
                edits.push((240, bytes[240..256].to_vec()));
            }
            let is_refused = verify_bytes(&bytes).is_err();
            if is_refused {
                hostile.push((Hostile { file: &case.name, edits, length }, bytes));
            }
            is_refused
        };
    let chosen = [
        "bloom-metadata",
        "classic-rapid",
        "counting-two-bits",
        "quotient-narrow",
        "scalable",
        "windowed-keys",
        "windowed-time",
        "static-rapid",
        "static-fuse",
        "cascade-rapid",
        "vector-quotient-8",
    ];
    for (case, file) in cases.iter().zip(files).filter(|(case, _)| chosen.contains(&&*case.name)) {
        let length = file.len();
        let shorter = [0, 1, 7, 8, 100, 255, 256, 4095, 4096, length - 64, length - 1];
        for length in shorter.into_iter().chain([length + 1, length + 64]) {
            add(case, file, &[], length, false);
        }
        for change in &header {
            add(case, file, std::slice::from_ref(change), length, true);
        }
        for number in 0..6 {
            for value in parameters {
                add(case, file, &[(96 + 8 * number, word(value))], length, true);
            }
        }
        // The first lines of the data: directories, blocks, counters.
        let data = word_at(file, 16) as usize;
        for at in (data..length.min(data + 128)).step_by(8) {
            for value in [0, 1, 1 << 20, 1 << 40, 1 << 62, u64::MAX] {
                add(case, file, &[(at, word(value))], length, true);
            }
        }
        // Bits behind the parts of the data, and another capacity.
        for at in (data + 63..length).step_by(64) {
            add(case, file, &[(at, vec![file[at] | 0x80])], length, true);
        }
        add(case, file, &[(72, vec![file[72] ^ 1])], length, true);
        // Damage that only checksums show.
        for at in [20, 70, 90, 200, 244, 250, data, length - 1] {
            add(case, file, &[(at, vec![file[at] ^ 0x10])], length, false);
        }
    }
    for (name, length, words) in contradictions(|name| &files[place(cases, name)]) {
        let (case, file) = (&cases[place(cases, name)], &files[place(cases, name)]);
        let data = (length as u64) - word_at(file, 16);
        let words = words.into_iter().chain([(24, data)]);
        let edits: Vec<_> = words.map(|(at, number)| (at, word(number))).collect();
        assert!(add(case, file, &edits, length, true), "{name} {edits:?}");
    }
    hostile
}

fn place(cases: &[Case], name: &str) -> usize {
    cases.iter().position(|case| case.name == name).unwrap()
}

fn word_at(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap())
}

/// A changed copy of a file: its name, its length, and words at offsets.
type Changed = (&'static str, usize, Vec<(usize, u64)>);

/// Returns files of which everything agrees but one number.
fn contradictions<'a>(file: impl Fn(&str) -> &'a [u8]) -> Vec<Changed> {
    let mut changed = vec![
        // Bits after the last one.
        ("classic-odd", 4224, vec![(4216, 1 << 63)]),
        ("static-layers", 11_328, vec![(4408, 1)]),
        ("static-layers", 11_328, vec![(11_320, 1 << 63)]),
        ("static-fuse-many-bits", 6080, vec![(6016, 1 << 63)]),
        ("static-fuse-many-bits", 6080, vec![(6072, 1 << 63)]),
        // Sizes of 2^64, which are 0 in a word.
        ("bloom-rapid", 4096, vec![(64, 1 << 58)]),
        ("static-one", 4160, vec![(64, 0), (4104, 1 << 62), (4112, 4), (4120, 0)]),
        ("static-fuse-one", 4096, vec![(64, 0), (104, 0), (112, 1 << 62), (120, 4), (128, 0)]),
    ];
    // Numbers of shards that are no power of two.
    for (name, shards) in [("static-fuse", [3, 5, 6]), ("static-fuse-shards", [3, 7, 12])] {
        changed.extend(shards.map(|shards| with_shards(name, file(name), shards)));
    }
    changed
}

/// Returns a copy of a fuse filter with more shards.
fn with_shards(name: &'static str, file: &[u8], shards: u64) -> Changed {
    let [data, bits, log, segments, wide] = [16, 96, 104, 120, 128].map(|at| word_at(file, at));
    let slots = (shards * segments) << log;
    let words = (slots * bits + (wide << log)).div_ceil(64) + shards;
    let length = data + 64 * words.div_ceil(8);
    (name, length as usize, vec![(64, slots), (112, shards)])
}

/// The other numbers of [`with_shards`] agree.
#[test]
fn fuse_file_with_a_power_of_two_of_shards_is_valid() {
    let filter = StaticFilter::builder().fpr(0.01).fuse(true);
    let mut file = Case::new("", static_filter(filter, 3000)).file();
    let (_, length, words) = with_shards("", &file, 4);
    file.resize(length, 0);
    let data = length as u64 - word_at(&file, 16);
    for (at, number) in words.into_iter().chain([(24, data)]) {
        file[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    update_checksums(&mut file);
    verify_bytes(&file).unwrap();
}

/// Returns the kind of an error, by its name in the set.
fn kind(error: &Error) -> &'static str {
    if error.is_foreign() {
        "foreign"
    } else if error.is_unsupported_version() || error.is_unsupported() {
        "unsupported"
    } else {
        "damaged"
    }
}

/// Returns all files of the set.
fn set() -> Vec<(String, Vec<u8>)> {
    let cases = cases();
    let files: Vec<Vec<u8>> = cases.iter().map(Case::file).collect();
    let mut set = Vec::new();
    let mut list = String::new();
    for (case, file) in cases.iter().zip(&files) {
        verify_bytes(file).unwrap();
        let name = &case.name;
        let (layout, algorithm) = (file[10], file[36]);
        let kind = case.filter.filter_type().name();
        let secret = case.secret.map_or("null".to_owned(), |key| format!(r#""{}""#, hex(&key)));
        let _ = writeln!(
            list,
            r#"{{"file":"{name}.petal","type":"{kind}","layout":{layout},"algorithm":{algorithm},"secret":{secret}}}"#
        );
        set.push((format!("{name}.petal"), file.clone()));
        set.push((format!("{name}.jsonl"), answers(case, file).into_bytes()));
    }
    set.push(("files.jsonl".to_owned(), list.into_bytes()));
    set.push(("hashes.jsonl".to_owned(), hash_vectors().into_bytes()));
    let mut lines = String::new();
    for (changed, bytes) in hostile(&cases, &files) {
        let error = verify_bytes(&bytes).unwrap_err();
        let edits = changed.edits.iter().map(|(at, new)| format!(r#"[{at},"{}"]"#, hex(new)));
        let edits = edits.collect::<Vec<_>>().join(",");
        let _ = writeln!(
            lines,
            r#"{{"file":"{}.petal","edits":[{edits}],"length":{},"error":"{}"}}"#,
            changed.file,
            changed.length,
            kind(&error)
        );
    }
    set.push(("hostile.jsonl".to_owned(), lines.into_bytes()));
    set
}

#[test]
fn conformance_set_is_that_of_the_library_and_the_model() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/conformance");
    let set = set();
    let names: BTreeSet<String> = set.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names.len(), set.len());
    if std::env::var_os("PETAL_UPDATE_CONFORMANCE").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in &set {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
    for (name, bytes) in &set {
        let stored = fs::read(folder.join(name)).unwrap();
        assert!(stored == *bytes, "{name} differs: PETAL_UPDATE_CONFORMANCE=1 writes it again");
    }
    let stored = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name());
    let stored: BTreeSet<String> = stored.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(stored, names);
    let hostile = &set.last().unwrap().1;
    assert!(hostile.split(|byte| *byte == b'\n').count() > 300);
    let bytes: usize = set.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes < 5_000_000, "{bytes} bytes");
}
