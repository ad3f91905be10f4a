//! Documents against a model that looks at decoded texts, one letter at a time.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};

use petal_testkit::rng::Rng;

use super::{DocumentJob, DocumentOutputs};
use crate::error::Result;
use crate::input::Source;
use crate::keys::{Fields, JsonValues, KeySpec, PartUnit, parse_transforms};
use crate::output::{CompressedWriter, Compression};
use crate::progress::{Note, Progress};
use crate::setops::{Mode, PartCounts, Report};
use crate::settings::Settings;

const UNITS: [PartUnit; 3] = [PartUnit::Paragraph, PartUnit::Line, PartUnit::Sentence];
const EXACT: Mode = Mode::Exact { strategy: None };

#[derive(Default)]
struct Written(Vec<Vec<u8>>);

impl DocumentOutputs for Written {
    fn begin(&mut self, input: usize) -> io::Result<()> {
        assert_eq!(input, self.0.len());
        self.0.push(vec![]);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.last_mut().expect("an output has begun").extend_from_slice(bytes);
        Ok(())
    }
}

/// What stays before a part, the part with what is before its text, and the white space that goes with it.
type Unit = [String; 3];

/// Returns the parts of a text, and what is left after the last.
fn units(text: &str, unit: PartUnit) -> (Vec<Unit>, String) {
    let (mut found, mut before) = (Vec::<Unit>::new(), String::new());
    let part = |before: &mut String, text: &str| {
        let end = text.trim_end().len();
        [std::mem::take(before), text[..end].to_owned(), text[end..].to_owned()]
    };
    match unit {
        PartUnit::Line => {
            for line in text.split_inclusive('\n') {
                match line.trim() {
                    "" => before.push_str(line),
                    _ => found.push(part(&mut before, line)),
                }
            }
        }
        PartUnit::Paragraph => {
            let (mut own, mut is_new) = (String::new(), false);
            for line in text.split_inclusive('\n') {
                let is_blank = line.trim().is_empty();
                if !is_blank && is_new && !own.trim().is_empty() {
                    found.push(part(&mut before, &std::mem::take(&mut own)));
                }
                own.push_str(line);
                is_new = is_blank;
            }
            match own.trim() {
                "" => before = own,
                _ => found.push(part(&mut before, &own)),
            }
        }
        PartUnit::Sentence => {
            let letters: Vec<_> = text.chars().collect();
            let is_stop = |letter: &char| ".!?。！？".contains(*letter);
            let is_mark =
                |letter: &char| is_stop(letter) || "\"')]}”’»）】」』》".contains(*letter);
            let mut starts = vec![];
            for (at, letter) in letters.iter().enumerate().filter(|(_, c)| !c.is_whitespace()) {
                let earlier = &letters[..at];
                let space: Vec<_> =
                    earlier.iter().rev().take_while(|c| c.is_whitespace()).collect();
                let marks = earlier.iter().rev().skip(space.len()).take_while(|c| is_mark(c));
                let marks: Vec<_> = marks.collect();
                let blank = space.iter().filter(|c| ***c == '\n').count() > 1;
                let stopped = marks.iter().any(|c| is_stop(c)) && !space.is_empty();
                let ended = marks.iter().any(|c| "。！？".contains(**c)) && !is_mark(letter);
                if starts.is_empty() || blank || stopped || ended && space.is_empty() {
                    starts.push(at);
                }
            }
            for (number, &start) in starts.iter().enumerate() {
                let end = starts.get(number + 1).copied();
                let all: String = letters[start..end.unwrap_or(letters.len())].iter().collect();
                let lead: String = letters[..if number == 0 { start } else { 0 }].iter().collect();
                let [kept, own, mut gap] = part(&mut before, &(lead + &all));
                if end.is_some()
                    && let Some(at) = gap.find('\n')
                {
                    before = gap.split_off(at);
                }
                found.push([kept, own, gap]);
            }
            if starts.is_empty() {
                before = text.to_owned();
            }
        }
    }
    (found, before)
}

/// Returns a text without the parts that were seen, which are added, and the numbers of both.
fn cleaned(
    text: &str,
    unit: PartUnit,
    key: impl Fn(&str) -> String,
    seen: &mut HashSet<String>,
) -> (String, u64, u64) {
    let (units, after) = units(text, unit);
    let repeated: Vec<_> = units.iter().map(|[_, own, _]| !seen.insert(key(own.trim()))).collect();
    let count = repeated.iter().filter(|repeated| **repeated).count() as u64;
    let parts = units.len() as u64;
    let first = repeated.iter().position(|repeated| !repeated);
    let last = repeated.iter().rposition(|repeated| !repeated);
    let (Some(first), Some(last)) = (first, last) else {
        return (if count > 0 { String::new() } else { text.to_owned() }, parts, count);
    };
    let mut left = String::new();
    for (number, [before, own, gap]) in units.iter().enumerate().take(last + 1).skip(first) {
        if number > first || first == 0 {
            left.push_str(before);
        }
        if !repeated[number] {
            left.push_str(own);
            if number < last {
                left.push_str(gap);
            }
        }
    }
    left.push_str(&units[units.len() - 1][2]);
    left.push_str(&after);
    (left, parts, count)
}

/// A document: what is before its text, the text in JSON, and what is after it. `None`: it has no text.
struct Document {
    before: String,
    text: Option<(String, String)>,
    after: String,
}

impl Document {
    fn line(&self) -> String {
        let text = self.text.as_ref().map_or("null", |(_, spelled)| spelled);
        format!("{}{text}{}", self.before, self.after)
    }
}

/// Spells a text in JSON, in one of many ways.
fn spelled(text: &str, rng: &mut Rng) -> String {
    let mut spelled = String::from("\"");
    for letter in text.chars() {
        let usual = serde_json::to_string(&letter).unwrap();
        match rng.one_in(8) {
            true => letter
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| spelled.push_str(&format!("\\u{unit:04X}"))),
            false => spelled.push_str(&usual[1..usual.len() - 1]),
        }
    }
    spelled + "\""
}

fn text(rng: &mut Rng, words: usize) -> String {
    let mut text = String::new();
    for _ in 0..rng.below(12) {
        for _ in 0..rng.below(4) {
            let word = rng.below(words);
            text.push_str(&match rng.below(4) {
                0 => format!("Wörter {word}😀"),
                1 => format!("\"say {word}\""),
                2 => format!("字{word}"),
                _ => format!("word\t{word}"),
            });
            text.push_str(["", " ", ".", "! ", "?\" ", "。", "！”", "\u{3000}"][rng.below(8)]);
        }
        text.push_str(["\n", "\n\n", " \r\n", "\n \u{a0}\n", " ", ""][rng.below(6)]);
    }
    text
}

/// Inputs of random documents.
fn inputs(rng: &mut Rng, count: usize, words: usize) -> Vec<Vec<Document>> {
    let mut document = |number: usize| {
        let text = (!rng.one_in(20)).then(|| text(rng, words));
        let text = text.map(|text| (text.clone(), spelled(&text, rng)));
        let before = match rng.below(3) {
            0 => format!("{{\"id\":{number}, \"text\" : "),
            1 => "{\"o\":{\"text\":\"a\\nb\"},\"text\":".to_owned(),
            _ => "{\"text\":\"an earlier one\", \"text\":".to_owned(),
        };
        let after = [",\"n\":1.50e3}", " , \"é\\u00e9\" : [ 1, {}]} ", "}\r"][rng.below(3)];
        Document { before, text, after: after.to_owned() }
    };
    let sizes = [count, 0, count / 2, 1];
    sizes.map(|size| (0..size).map(&mut document).collect()).into()
}

fn json_keys(pointer: &str) -> Fields {
    Fields::Json(JsonValues(vec![pointer.parse().unwrap()]))
}

struct Setup<'a> {
    dir: &'a tempfile::TempDir,
    sources: Vec<Source>,
    keys: KeySpec,
}

impl Setup<'_> {
    fn settings(&self, jobs: usize) -> Settings<'static> {
        let mut settings = Settings::new(8 << 20);
        settings.jobs = jobs;
        settings.temp_dir = self.dir.path().to_owned();
        settings.keys = Arc::new(self.keys.clone());
        settings
    }

    fn run(&self, job: &DocumentJob, jobs: usize, table: u64) -> Result<(Report, Vec<String>)> {
        let settings = self.settings(jobs);
        let mut written = Written::default();
        let report = job.run_within(&settings, &mut written, table)?;
        let texts = written.0.into_iter().map(|bytes| String::from_utf8(bytes).unwrap());
        Ok((report, texts.collect()))
    }
}

/// Writes inputs, compressed ones too.
fn setup<'a>(dir: &'a tempfile::TempDir, inputs: &[Vec<Document>]) -> Setup<'a> {
    let mut sources = vec![];
    for (number, documents) in inputs.iter().enumerate() {
        let mut text = documents.iter().map(Document::line).collect::<Vec<_>>().join("\n");
        if number == 2 {
            text.push('\n');
        }
        let path = dir.path().join(format!("{number}"));
        let compression = ["gzip", "zstd", "none"].map(|name| Compression::parse(name).unwrap());
        match compression[number % 3] {
            Some(compression) => {
                let mut writer = CompressedWriter::new(vec![], compression, 1 << 24, 1).unwrap();
                io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
                std::fs::write(&path, writer.finish().unwrap()).unwrap();
            }
            None => std::fs::write(&path, text).unwrap(),
        }
        sources.push(Source::from_arg(path));
    }
    Setup { dir, sources, keys: KeySpec { fields: json_keys("/text"), ..KeySpec::default() } }
}

/// Compares the outputs with the model.
fn check(
    job: &DocumentJob,
    inputs: &[Vec<Document>],
    report: &Report,
    outputs: &[String],
    lower: bool,
) {
    let key = |text: &str| if lower { text.to_ascii_lowercase() } else { text.to_owned() };
    let (mut seen, mut counts, mut kept) = (HashSet::new(), PartCounts::default(), 0);
    assert_eq!(inputs.len(), outputs.len());
    for (documents, output) in inputs.iter().zip(outputs) {
        let mut lines = output.split_inclusive('\n');
        for document in documents {
            let plain = document.text.as_ref().map_or("", |(plain, _)| plain);
            let (left, parts, repeated) = cleaned(plain, job.unit, key, &mut seen);
            counts.read += parts;
            counts.repeated += repeated;
            let share = |share| parts > 0 && repeated as f64 / parts as f64 >= share;
            let drops = parts - repeated < job.min_parts || job.drop_if.is_some_and(share);
            if document.text.is_some() && drops {
                continue;
            }
            kept += 1;
            counts.kept += parts - repeated;
            let line = lines.next().and_then(|line| line.strip_suffix('\n')).expect("a document");
            if repeated == 0 {
                assert_eq!(line, document.line());
                continue;
            }
            let own = line.strip_prefix(&document.before).unwrap();
            let own = own.strip_suffix(&document.after).unwrap();
            assert_eq!(
                serde_json::from_str::<String>(own).unwrap(),
                left,
                "{:?} {plain:?}",
                job.unit
            );
        }
        assert_eq!(lines.next(), None);
    }
    assert_eq!((report.parts, report.kept), (Some(counts), kept));
    assert_eq!(report.first_lines, inputs.iter().map(Vec::len).sum::<usize>() as u64);
}

#[test]
fn documents_are_those_of_the_model_for_any_memory_and_threads() {
    let mut strategies = HashSet::new();
    for seed in 0..7 {
        let mut rng = Rng::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let words = [5, 60, 2000][rng.below(3)];
        let count = [3, 300, 1500][rng.below(3)];
        let inputs = inputs(&mut rng, count, words);
        let mut setup = setup(&dir, &inputs);
        for unit in UNITS {
            let lower = rng.one_in(2);
            let transforms = if lower { parse_transforms("lowercase").unwrap() } else { vec![] };
            setup.keys.transforms = transforms;
            let job = DocumentJob {
                inputs: setup.sources.clone(),
                unit,
                min_parts: rng.below(3) as u64,
                drop_if: [None, Some(0.5), Some(1.0)][rng.below(3)],
                mode: EXACT,
            };
            let mut first = None;
            for (jobs, table) in [(1, u64::MAX), (4, u64::MAX), (1, 1), (4, 3000), (2, 60_000)] {
                let (report, outputs) = setup.run(&job, jobs, table).unwrap();
                strategies.insert(report.strategy.clone().into_owned());
                match &first {
                    None => check(&job, &inputs, &report, &outputs, lower),
                    Some((parts, expected)) => {
                        assert_eq!((&report.parts, &outputs), (parts, expected), "{jobs} {table}");
                    }
                }
                first = Some((report.parts, outputs));
            }
        }
    }
    assert_eq!(strategies.len(), 2, "{strategies:?}");
}

#[test]
fn approximate_jobs_keep_no_repeat_and_lose_few_parts() {
    let mut rng = Rng::new(1);
    let dir = tempfile::tempdir().unwrap();
    let inputs = inputs(&mut rng, 3000, 500);
    let setup = setup(&dir, &inputs);
    let job = |mode| DocumentJob {
        inputs: setup.sources.clone(),
        unit: PartUnit::Line,
        min_parts: 0,
        drop_if: None,
        mode,
    };
    let (exact, _) = setup.run(&job(EXACT), 2, u64::MAX).unwrap();
    let run = |capacity, fpr| setup.run(&job(Mode::Approx { capacity, fpr }), 2, u64::MAX);
    let exact = exact.parts.unwrap();
    for (capacity, fpr, most) in [(None, None, 0.001), (Some(20_000), Some(0.01), 0.02)] {
        let (report, _) = run(capacity, fpr).unwrap();
        let (parts, distinct) = (report.parts.unwrap(), (exact.read - exact.repeated) as f64);
        let lost = (parts.repeated - exact.repeated) as f64;
        assert!(lost <= most * distinct, "{lost} of {distinct}");
        assert!((lost - report.wrong).abs() <= 5.0 * report.wrong_error + 5.0, "{lost} {report:?}");
    }
    let (report, _) = run(None, Some(0.01)).unwrap();
    assert!(report.parts.unwrap().repeated >= exact.repeated);
}

#[test]
fn lines_without_json_are_dropped_where_they_occur_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup(&dir, &[]);
    for (name, text) in [("a", "x\n y\n\nx \n"), ("b", "y\n\nz")] {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        setup.sources.push(Source::from_arg(path));
    }
    setup.keys = KeySpec::default();
    let inputs = setup.sources.clone();
    let job =
        DocumentJob { inputs, unit: PartUnit::Line, min_parts: 0, drop_if: None, mode: EXACT };
    for table in [u64::MAX, 1] {
        let (report, outputs) = setup.run(&job, 2, table).unwrap();
        assert_eq!(outputs, ["x\n y\n\n", "\nz\n"]);
        assert_eq!((report.kept, report.first_lines), (5, 7));
    }
    let job = DocumentJob { unit: PartUnit::Sentence, ..job };
    let error = setup.run(&job, 2, 1).unwrap_err().to_string();
    assert!(error.contains("json_key"), "{error}");
}

#[test]
fn values_that_are_no_texts_are_errors_or_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup(&dir, &[]);
    let path = dir.path().join("a");
    let good = ["{\"text\":\"a\"}", "", "[]", "{\"text\":\"\"}", "{\"text\":null}", "7"];
    let bad = [
        ("{\"text\":7}", "has a number at \"/text\", expected a text"),
        ("{\"text\":{}}", "has an object"),
        ("{\"text\":[\"a\"]}", "has an array"),
        ("{\"text\":true}", "has true or false"),
        ("{\"text\":\"a\"", "is no JSON"),
        ("{\"text\":\"\\ud8\"}", "is no JSON"),
        ("{\"text\":\"\t\"}", "is no JSON"),
        ("\u{1}", "is no JSON"),
    ];
    setup.sources.push(Source::from_arg(&path));
    let inputs = setup.sources.clone();
    let job =
        DocumentJob { inputs, unit: PartUnit::Line, min_parts: 0, drop_if: None, mode: EXACT };
    let kept: String = good.iter().map(|line| format!("{line}\n")).collect();
    for (line, problem) in bad {
        std::fs::write(&path, format!("{kept}{line}\n")).unwrap();
        setup.keys.records.skip_bad = false;
        for table in [u64::MAX, 1] {
            let error = setup.run(&job, 1, table).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        setup.keys.records.skip_bad = true;
        let (_, outputs) = setup.run(&job, 1, u64::MAX).unwrap();
        assert_eq!(outputs.concat(), kept, "{line}");
    }
}

/// A document of many parts must not take more memory than there is for them, and the limit depends on
/// nothing else.
#[test]
fn document_of_too_many_parts_is_an_error_for_any_threads() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup(&dir, &[]);
    let path = dir.path().join("a");
    let document = |parts| format!("{{\"text\":\"{}\"}}\n", ". ".repeat(parts));
    setup.sources.push(Source::from_arg(&path));
    setup.keys.records.skip_bad = true;
    let inputs = setup.sources.clone();
    let job =
        DocumentJob { inputs, unit: PartUnit::Sentence, min_parts: 0, drop_if: None, mode: EXACT };
    for jobs in [1, 2, 16] {
        std::fs::write(&path, document(16_384)).unwrap();
        setup.run(&job, jobs, u64::MAX).unwrap();
        std::fs::write(&path, document(16_385)).unwrap();
        let error = setup.run(&job, jobs, u64::MAX).unwrap_err().to_string();
        let problem = "has 16,385 parts, but the memory limit has space for 16,384 of a document; \
                       raise memory_limit";
        assert!(error.contains(problem), "{error}");
    }
}

/// The number of parts follows from the files, and the filter from it.
#[test]
fn filter_of_small_files_is_small() {
    let mut rng = Rng::new(5);
    let dir = tempfile::tempdir().unwrap();
    let setup = setup(&dir, &inputs(&mut rng, 2000, 500));
    let mode = Mode::Approx { capacity: None, fpr: None };
    let inputs = setup.sources.clone();
    let job = DocumentJob { inputs, unit: PartUnit::Line, min_parts: 0, drop_if: None, mode };
    let expected = Expected::default();
    let mut settings: Settings<'_> = setup.settings(2);
    (settings.memory_limit, settings.progress) = (1 << 30, &expected);
    let report = job.run(&settings, &mut Written::default()).unwrap();
    let parts = report.parts.unwrap().read as f64;
    // Fourteen bits per part, in whole blocks.
    let (losses, fpr) = expected.0.into_inner().unwrap().unwrap();
    let planned = losses.unwrap();
    assert!(fpr > 1e-4 && fpr < 0.01, "{fpr}");
    assert!(planned < 0.01 * 2.0 * parts, "{planned} of {parts}");
}

/// What the job expects of its filter.
#[derive(Default)]
struct Expected(Mutex<Option<(Option<f64>, f64)>>);

impl Progress for Expected {
    fn note(&self, note: Note<'_>) {
        if let Note::Expecting { wrong_lines, fpr } = note {
            *self.0.lock().unwrap() = Some((wrong_lines, fpr));
        }
    }
}

#[test]
fn transform_that_refuses_parts_leaves_out_no_documents() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup(&dir, &[]);
    setup.keys.transforms = parse_transforms("unhex").unwrap();
    setup.keys.records.skip_bad = true;
    let job = DocumentJob {
        inputs: vec![],
        unit: PartUnit::Line,
        min_parts: 0,
        drop_if: None,
        mode: EXACT,
    };
    let error = setup.run(&job, 1, u64::MAX).unwrap_err().to_string();
    assert!(error.starts_with("key_transform: refuses some parts"), "{error}");
    setup.keys.records.skip_bad = false;
    setup.run(&job, 1, u64::MAX).unwrap();
}
