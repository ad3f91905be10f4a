//! Jobs on Parquet and Arrow files: the rows of the output are those that the naive model finds.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::*;
use arrow_ipc::CompressionType;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Fields as ArrowFields, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriter;
use parquet::basic::Compression;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{Int96, Int96Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use petal_lines::{
    Advice, CheckOptions, Columns, CountJob, CountOrder, ErrorKind, Fields, FilterSpec, KeySpec,
    Mode, Outputs, Progress, SetJob, SetOp, Settings, Source, Strategy, check, parse_transforms,
};
use petal_testkit::rng::Rng;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Parquet(Compression, WriterVersion),
    File(Option<CompressionType>),
    Stream(Option<CompressionType>),
}

fn formats() -> Vec<Format> {
    let (one, two) = (WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0);
    vec![
        Format::Parquet(Compression::SNAPPY, one),
        Format::Parquet(Compression::ZSTD(Default::default()), two),
        Format::Parquet(Compression::LZ4_RAW, two),
        Format::Parquet(Compression::GZIP(Default::default()), one),
        Format::Parquet(Compression::UNCOMPRESSED, two),
        Format::File(None),
        Format::File(Some(CompressionType::LZ4_FRAME)),
        Format::Stream(Some(CompressionType::ZSTD)),
        Format::Stream(None),
    ]
}

/// A row, as far as the tests look at it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Row {
    id: i64,
    url: Option<String>,
    host: Option<String>,
    tags: Option<Vec<Option<String>>>,
}

fn rows(rng: &mut Rng, first: i64, count: usize) -> Vec<Row> {
    const TEXTS: [&str; 9] =
        ["", "a", "http://a.example/", "a,b", "\"q\"", "two\nlines", "ä€", "A", " a "];
    let text = |rng: &mut Rng| {
        let text = TEXTS[rng.below(TEXTS.len())];
        let text = if rng.one_in(2) { format!("{text}{}", rng.below(30)) } else { text.to_owned() };
        (!rng.one_in(8)).then_some(text)
    };
    let row = |id| Row {
        id,
        url: text(rng),
        host: text(rng),
        tags: (!rng.one_in(5)).then(|| (0..rng.below(4)).map(|_| text(rng)).collect()),
    };
    (first..).take(count).map(row).collect()
}

fn schema() -> Arc<Schema> {
    let page = page_fields();
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("url", DataType::Utf8, true),
        Field::new("page", DataType::Struct(page), true),
        Field::new_list("tags", Field::new_list_field(DataType::Utf8, true), true),
        Field::new_dictionary("word", DataType::Int32, DataType::Utf8, true),
    ]))
}

fn page_fields() -> ArrowFields {
    vec![Field::new("host", DataType::Utf8, true), Field::new("n", DataType::Int32, false)].into()
}

/// The dictionary of the column `word`, which is the same in all files.
const WORDS: [&str; 3] = ["x", "y", "z"];

fn batch(rows: &[Row]) -> RecordBatch {
    let ids = Int64Array::from_iter_values(rows.iter().map(|row| row.id));
    let urls = StringArray::from_iter(rows.iter().map(|row| row.url.as_deref()));
    let hosts = StringArray::from_iter(rows.iter().map(|row| row.host.as_deref()));
    let numbers = Int32Array::from_iter_values(rows.iter().map(|row| row.id as i32));
    // A page without a host is null every second time: the key is null all the same.
    let valid = rows.iter().map(|row| row.host.is_some() || row.id % 2 == 0);
    let page = StructArray::new(
        page_fields(),
        vec![Arc::new(hosts) as ArrayRef, Arc::new(numbers)],
        Some(valid.collect::<Vec<_>>().into()),
    );
    let mut tags = ListBuilder::new(StringBuilder::new());
    for row in rows {
        tags.append_option(row.tags.clone());
    }
    let keys = Int32Array::from_iter_values(rows.iter().map(|row| (row.id % 3) as i32));
    let words = Arc::new(StringArray::from_iter_values(WORDS));
    let words = DictionaryArray::<Int32Type>::new(keys, words);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(ids),
        Arc::new(urls),
        Arc::new(page),
        Arc::new(tags.finish()),
        Arc::new(words),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn parquet_properties(codec: Compression, version: WriterVersion) -> WriterProperties {
    WriterProperties::builder()
        .set_compression(codec)
        .set_writer_version(version)
        .set_max_row_group_row_count(Some(150))
        .set_data_page_size_limit(300)
        .set_write_batch_size(40)
        .set_dictionary_page_size_limit(400)
        .set_key_value_metadata(Some(vec![KeyValue::new("note".into(), "kept".to_owned())]))
        .build()
}

fn write_batches(path: &Path, format: Format, batches: &[RecordBatch]) {
    let file = File::create(path).unwrap();
    let schema = batches[0].schema();
    let options = |codec| IpcWriteOptions::default().try_with_compression(codec).unwrap();
    match format {
        Format::Parquet(codec, version) => {
            let properties = parquet_properties(codec, version);
            let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.close().unwrap();
        }
        Format::File(codec) => {
            let mut writer =
                FileWriter::try_new_with_options(file, &schema, options(codec)).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        Format::Stream(codec) => {
            let mut writer =
                StreamWriter::try_new_with_options(file, &schema, options(codec)).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
    }
}

fn write_rows(path: &Path, format: Format, rows: &[Row]) {
    let batches: Vec<_> = rows.chunks(70).map(batch).collect();
    let batches = if batches.is_empty() { vec![batch(&[])] } else { batches };
    write_batches(path, format, &batches);
}

fn read_batches(path: &Path, format: Format) -> (Arc<Schema>, Vec<RecordBatch>) {
    let file = File::open(path).unwrap();
    match format {
        Format::Parquet(..) => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            let schema = Arc::clone(builder.schema());
            (schema, builder.build().unwrap().map(Result::unwrap).collect())
        }
        Format::File(_) => {
            let reader = FileReader::try_new(file, None).unwrap();
            (reader.schema(), reader.map(Result::unwrap).collect())
        }
        Format::Stream(_) => {
            let reader = StreamReader::try_new(file, None).unwrap();
            (reader.schema(), reader.map(Result::unwrap).collect())
        }
    }
}

/// Reads rows, and checks the columns that follow from others.
fn read_rows(path: &Path, format: Format) -> Vec<Row> {
    let (found, batches) = read_batches(path, format);
    assert_eq!(found.fields(), schema().fields());
    let mut rows = vec![];
    for batch in batches {
        let text = |column: &StringArray, row| {
            (!column.is_null(row)).then(|| column.value(row).to_owned())
        };
        let page = batch.column(2).as_struct();
        for row in 0..batch.num_rows() {
            let id = batch.column(0).as_primitive::<Int64Type>().value(row);
            let tags = batch.column(3).as_list::<i32>();
            let tags = (!tags.is_null(row)).then(|| {
                let tags = tags.value(row);
                (0..tags.len()).map(|at| text(tags.as_string(), at)).collect()
            });
            let host = text(page.column(0).as_string(), row);
            assert_eq!(page.is_null(row), host.is_none() && id % 2 == 1);
            let words = batch.column(4).as_dictionary::<Int32Type>();
            let word = words.values().as_string::<i32>().value(words.keys().value(row) as usize);
            assert_eq!(word, WORDS[(id % 3) as usize]);
            rows.push(Row { id, url: text(batch.column(1).as_string(), row), host, tags });
        }
    }
    rows
}

fn keys_of(columns: &str) -> KeySpec {
    let columns = Columns::parse_list(columns).unwrap();
    let fields = Fields::Columns(Columns { columns, ..Columns::default() });
    KeySpec { fields, ..KeySpec::default() }
}

fn settings(columns: &str) -> Settings<'static> {
    Settings { keys: Arc::new(keys_of(columns)), jobs: 2, ..Settings::new(16 << 20) }
}

/// Returns the indices of the rows in the answer, and of the other rows of the printed inputs.
fn model(op: SetOp, first: &[Row], others: &[Vec<Row>], key: &KeyOf) -> Vec<i64> {
    let sets: Vec<BTreeSet<_>> = others.iter().map(|rows| rows.iter().map(key).collect()).collect();
    let mut counts: HashMap<_, u64> = HashMap::new();
    first.iter().for_each(|row| *counts.entry(key(row)).or_default() += 1);
    let own: BTreeSet<_> = first.iter().map(key).collect();
    let mut printed = BTreeSet::new();
    let mut answer = vec![];
    let mut first: Vec<_> = first.iter().collect();
    if op == SetOp::DedupLast {
        first.reverse();
    }
    for row in first {
        let found = sets.iter().filter(|set| set.contains(&key(row))).count();
        let kept = match op {
            SetOp::Common => found == sets.len(),
            SetOp::AtLeast(number) => found >= number.into(),
            SetOp::Diff | SetOp::SymDiff => found == 0,
            SetOp::Dedup | SetOp::DedupLast => true,
            SetOp::Duplicates => counts[&key(row)] > 1,
            SetOp::Unique => counts[&key(row)] == 1,
        };
        if kept && printed.insert(key(row)) {
            answer.push(row.id);
        }
    }
    if op == SetOp::DedupLast {
        answer.reverse();
    }
    if op == SetOp::SymDiff {
        let mut printed = own;
        answer.extend(others[0].iter().filter(|row| printed.insert(key(row))).map(|row| row.id));
    }
    answer
}

/// Returns the values of the key columns of a row.
type KeyOf = dyn Fn(&Row) -> Vec<Option<String>>;

fn sources(paths: &[PathBuf]) -> Vec<Source> {
    paths.iter().map(Source::from_arg).collect()
}

#[test]
fn rows_of_set_operations_are_those_of_the_model() {
    let mut rng = Rng::new(1);
    let dir = tempfile::tempdir().unwrap();
    let keys: [(&str, &KeyOf); 3] = [
        ("url", &|row| vec![row.url.clone()]),
        ("page.host", &|row| vec![row.host.clone()]),
        ("url,page.host,2", &|row| vec![row.url.clone(), row.host.clone()]),
    ];
    let ops = [
        SetOp::Common,
        SetOp::AtLeast(1),
        SetOp::Diff,
        SetOp::SymDiff,
        SetOp::Dedup,
        SetOp::DedupLast,
        SetOp::Duplicates,
        SetOp::Unique,
    ];
    let strategies =
        [None, Some(Strategy::Memory), Some(Strategy::Partition), Some(Strategy::Narrow)];
    for (round, format) in formats().into_iter().cycle().take(63).enumerate() {
        let op = ops[round % ops.len()];
        let (columns, key) = keys[rng.below(keys.len())];
        let count = [0, 1, 40, 400][rng.below(4)];
        let (a, b) = (rows(&mut rng, 0, count), rows(&mut rng, 1000, 300));
        let c = rows(&mut rng, 2000, 50);
        let files = [(&a, "a"), (&b, "b"), (&c, "c")];
        let files: Vec<_> = files
            .map(|(rows, name)| {
                let path = dir.path().join(name);
                write_rows(&path, format, rows);
                path
            })
            .to_vec();
        let takes_others =
            !matches!(op, SetOp::Dedup | SetOp::DedupLast | SetOp::Duplicates | SetOp::Unique);
        let (first, others) = match op {
            SetOp::SymDiff => (&files[..1], &files[1..2]),
            _ if takes_others => (&files[..1], &files[1..]),
            _ => (&files[..], &files[..0]),
        };
        let all: Vec<_> = [a.clone(), b.clone(), c.clone()].concat();
        let expected = match op {
            SetOp::SymDiff => model(op, &a, std::slice::from_ref(&b), key),
            _ if takes_others => model(op, &a, &[b.clone(), c.clone()], key),
            _ => model(op, &all, &[], key),
        };
        let strategy = strategies[rng.below(strategies.len())];
        let context = format!("{round} {format:?} {op:?} {columns} {strategy:?}");
        let (out, rest) = (dir.path().join("out"), dir.path().join("rest"));
        let (mut kept, mut other) = (File::create(&out).unwrap(), File::create(&rest).unwrap());
        let both = matches!(op, SetOp::Dedup | SetOp::Common | SetOp::Diff);
        let outputs =
            Outputs { kept: Some(&mut kept), rest: if both { Some(&mut other) } else { None } };
        let job = SetJob {
            op,
            first: sources(first),
            others: sources(others),
            mode: Mode::Exact { strategy },
        };
        let report =
            job.run(&settings(columns), outputs).unwrap_or_else(|e| panic!("{context}: {e}"));
        let found = read_rows(&out, format);
        let ids: Vec<_> = found.iter().map(|row| row.id).collect();
        assert_eq!(ids, expected, "{context}");
        assert_eq!(report.kept, expected.len() as u64, "{context}");
        let by_id: HashMap<_, _> = all.iter().map(|row| (row.id, row)).collect();
        assert!(found.iter().all(|row| row == by_id[&row.id]), "{context}");
        if both {
            let kept: BTreeSet<_> = ids.into_iter().collect();
            let printed = if op == SetOp::Dedup { &all } else { &a };
            let left: Vec<_> =
                printed.iter().filter(|row| !kept.contains(&row.id)).cloned().collect();
            assert_eq!(read_rows(&rest, format), left, "{context}");
        }
    }
}

#[test]
fn output_keeps_schema_codec_and_metadata() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("a"), dir.path().join("out"));
    let format = Format::Parquet(Compression::LZ4_RAW, WriterVersion::PARQUET_1_0);
    write_rows(&path, format, &rows(&mut Rng::new(3), 0, 200));
    let job = SetJob {
        op: SetOp::Dedup,
        first: sources(std::slice::from_ref(&path)),
        others: vec![],
        mode: Mode::Exact { strategy: None },
    };
    job.run(&settings("id"), Outputs::to(&mut File::create(&out).unwrap())).unwrap();
    let metadata = |path| {
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        Arc::clone(builder.metadata())
    };
    let (before, after) = (metadata(&path), metadata(&out));
    let (old, new) = (before.file_metadata(), after.file_metadata());
    assert_eq!(old.schema(), new.schema());
    assert_eq!(old.key_value_metadata(), new.key_value_metadata());
    assert_eq!(old.num_rows(), new.num_rows());
    for column in after.row_group(0).columns() {
        assert_eq!(column.compression(), Compression::LZ4_RAW);
    }
}

/// What the writer keeps in memory grows with the row groups, not with the pages.
#[test]
fn output_has_the_settings_of_each_column_and_no_page_indexes() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("a"), dir.path().join("out"));
    let numbers = || Arc::new(Int64Array::from_iter_values(0..20_000)) as ArrayRef;
    let names = ["a", "b", "c", "d"];
    let batch = RecordBatch::try_from_iter(names.map(|name| (name, numbers()))).unwrap();
    let zstd = Compression::ZSTD(Default::default());
    let settings_of = [
        (Compression::SNAPPY, false),
        (Compression::SNAPPY, true),
        (Compression::UNCOMPRESSED, false),
        (zstd, true),
    ];
    let mut properties = WriterProperties::builder();
    for (name, (codec, dictionary)) in names.into_iter().zip(settings_of) {
        properties = properties
            .set_column_compression(name.into(), codec)
            .set_column_dictionary_enabled(name.into(), dictionary);
    }
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let job = SetJob {
        op: SetOp::Dedup,
        first: sources(std::slice::from_ref(&path)),
        others: vec![],
        mode: Mode::Exact { strategy: None },
    };
    job.run(&settings("a"), Outputs::to(&mut File::create(&out).unwrap())).unwrap();
    let metadata = |path| {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        reader.metadata().clone()
    };
    let (before, after) = (metadata(&path), metadata(&out));
    assert!(before.row_group(0).column(0).offset_index_offset().is_some());
    assert_eq!(after.file_metadata().num_rows(), 20_000);
    for group in after.row_groups() {
        for (column, (codec, dictionary)) in group.columns().iter().zip(settings_of) {
            let found = (column.compression(), column.dictionary_page_offset().is_some());
            assert_eq!(found, (codec, dictionary), "{}", column.column_path());
            assert!(column.statistics().is_some_and(|found| found.min_bytes_opt().is_some()));
            assert_eq!((column.column_index_offset(), column.offset_index_offset()), (None, None));
        }
    }
}

/// Prints the keys of a file as lines.
fn key_lines(path: &Path, columns: &str, transforms: &str) -> petal_lines::Result<Vec<u8>> {
    let mut keys = keys_of(columns);
    keys.transforms = parse_transforms(transforms).unwrap();
    let settings = Settings { keys: Arc::new(keys), keys_only: true, ..Settings::new(16 << 20) };
    let mut out = vec![];
    let job = SetJob {
        op: SetOp::Dedup,
        first: vec![Source::from_arg(path)],
        others: vec![],
        mode: Mode::Exact { strategy: None },
    };
    job.run(&settings, Outputs::to(&mut out)).map(|_| out)
}

#[test]
fn keys_are_the_texts_of_values() {
    let decimals = Decimal128Array::from(vec![Some(-1230), Some(5), None]);
    let times = |ticks: Vec<Option<i64>>| TimestampMicrosecondArray::from(ticks);
    let instant = times(vec![Some(0), Some(-1), Some(1_500_000)]).with_timezone("Europe/Berlin");
    let words = StringArray::from(vec!["b", "a"]);
    let keys = UInt8Array::from(vec![Some(1), None, Some(0)]);
    let small = |units: Vec<Option<i32>>| Decimal32Array::from(units);
    let larger = Decimal64Array::from(vec![Some(-1230), Some(5), None]);
    let columns: [(&str, ArrayRef, [&[u8]; 3]); 18] = [
        (
            "i8",
            Arc::new(Int8Array::from(vec![Some(-128), Some(0), None])),
            [b"-128", b"0", b"\xff"],
        ),
        (
            "u64",
            Arc::new(UInt64Array::from(vec![u64::MAX, 0, 1])),
            [b"18446744073709551615", b"0", b"1"],
        ),
        (
            "bool",
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
            [b"true", b"false", b"\xff"],
        ),
        ("f64", Arc::new(Float64Array::from(vec![1.0, 0.1, 1e300])), [b"1.0", b"0.1", b"1e300"]),
        ("f32", Arc::new(Float32Array::from(vec![0.1, f32::NAN, -0.0])), [b"0.1", b"NaN", b"-0.0"]),
        (
            "decimal",
            Arc::new(decimals.with_precision_and_scale(9, 2).unwrap()),
            [b"-12.30", b"0.05", b"\xff"],
        ),
        (
            "decimal32",
            Arc::new(
                small(vec![Some(-1230), Some(5), None]).with_precision_and_scale(9, 2).unwrap(),
            ),
            [b"-12.30", b"0.05", b"\xff"],
        ),
        (
            "decimal64",
            Arc::new(larger.with_precision_and_scale(12, 2).unwrap()),
            [b"-12.30", b"0.05", b"\xff"],
        ),
        ("null", Arc::new(NullArray::new(3)), [b"\xff", b"\xff", b"\xff"]),
        (
            "duration",
            Arc::new(DurationMillisecondArray::from(vec![Some(-5), None, Some(1500)])),
            [b"-5", b"\xff", b"1500"],
        ),
        (
            "date",
            Arc::new(Date32Array::from(vec![0, -719_529, 20_780])),
            [b"1970-01-01", b"-0001-12-31", b"2026-11-23"],
        ),
        (
            "time",
            Arc::new(Time64MicrosecondArray::from(vec![0, 86_399_999_999, 3_600_500_000])),
            [b"00:00:00", b"23:59:59.999999", b"01:00:00.5"],
        ),
        (
            "local",
            Arc::new(times(vec![Some(0), None, Some(951_782_400_000_001)])),
            [b"1970-01-01T00:00:00", b"\xff", b"2000-02-29T00:00:00.000001"],
        ),
        (
            "instant",
            Arc::new(instant),
            [b"1970-01-01T00:00:00Z", b"1969-12-31T23:59:59.999999Z", b"1970-01-01T00:00:01.5Z"],
        ),
        (
            "bytes",
            Arc::new(BinaryArray::from_vec(vec![&b"\0"[..], b"", b"\xfe"])),
            [b"\0", b"", b"\xfe"],
        ),
        (
            "fixed",
            Arc::new(
                FixedSizeBinaryArray::try_from_iter([b"ab", b"cd", b"\xff\0"].into_iter()).unwrap(),
            ),
            [b"ab", b"cd", b"\xff\0"],
        ),
        (
            "text",
            Arc::new(LargeStringArray::from(vec!["ä", " ", "\"x\""])),
            ["ä".as_bytes(), b" ", b"\"x\""],
        ),
        ("word", Arc::new(DictionaryArray::new(keys, Arc::new(words))), [b"a", b"\xff", b"b"]),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.iter().map(|(name, values, _)| (*name, Arc::clone(values), true)),
    );
    let batch = batch.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    for format in formats() {
        write_batches(&path, format, std::slice::from_ref(&batch));
        for (number, (name, _, texts)) in columns.iter().enumerate() {
            let expected: Vec<u8> =
                texts.iter().flat_map(|text| [text, &b"\n"[..]].concat()).collect();
            // Keys are printed once.
            let expected = if *name == "null" { b"\xff\n".to_vec() } else { expected };
            for column in [(*name).to_owned(), (number + 1).to_string()] {
                assert_eq!(key_lines(&path, &column, "").unwrap(), expected, "{name} {format:?}");
            }
        }
        // Several columns are printed as CSV.
        let lines = key_lines(&path, "text,i8,word", "").unwrap();
        assert_eq!(lines, b"\xc3\xa4,-128,a\n ,0,\xff\n\"\"\"x\"\"\",\xff,b\n");
        // Transforms change what is compared, not what is printed.
        assert_eq!(key_lines(&path, "text", "trim").unwrap(), "ä\n \n\"x\"\n".as_bytes());
        // Types without a text, and columns that are missing.
        let error = key_lines(&path, "words", "").unwrap_err();
        assert!(error.to_string().contains("has no column \"words\", but \"i8\", "), "{error}");
        let error = key_lines(&path, "19", "").unwrap_err();
        assert!(error.to_string().contains("has 18 columns, expected a column 19"), "{error}");
    }
}

#[test]
fn integers_of_unknown_width_are_an_error_of_their_column() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let batch =
        RecordBatch::try_from_iter([("wide", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
    let batches = [batch.unwrap()];
    for format in [Format::File(None), Format::Stream(None)] {
        write_batches(&path, format, &batches);
        let mut bytes = std::fs::read(&path).unwrap();
        // The width in the schemas of the start and of the footer.
        let places: Vec<_> =
            (0..bytes.len() - 4).filter(|at| bytes[*at..at + 4] == 64_i32.to_le_bytes()).collect();
        let mut found = false;
        for at in places {
            bytes[at] = 128;
            std::fs::write(&path, &bytes).unwrap();
            let text = key_lines(&path, "wide", "").err().map(|error| error.to_string());
            found |= text.is_some_and(|text| {
                text.ends_with(
                    ": column \"wide\" has integers of 128 bits; convert the column to a type that \
                     other programs have",
                )
            });
        }
        assert!(found, "{format:?}");
    }
}

/// Old timestamps, which have no type in Arrow, are copied.
#[test]
fn rows_with_int96_are_copied() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("t"), dir.path().join("o"));
    let schema = "message m { required int32 id; optional int96 time; }";
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let mut writer =
        SerializedFileWriter::new(File::create(&path).unwrap(), schema, Default::default())
            .unwrap();
    let mut group = writer.next_row_group().unwrap();
    let times = [1, 2].map(|number| Int96::from(vec![number, 0, 2_440_588]));
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<parquet::data_type::Int32Type>().write_batch(&[7, 7, 8], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int96Type>().write_batch(&times, Some(&[1, 0, 1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let job = SetJob {
        op: SetOp::Dedup,
        first: vec![Source::from_arg(&path)],
        others: vec![],
        mode: Mode::Exact { strategy: None },
    };
    let mut file = File::create(&out).unwrap();
    job.run(&settings("id"), Outputs::to(&mut file)).unwrap();
    let reader = SerializedFileReader::new(File::open(&out).unwrap()).unwrap();
    let group = reader.get_row_group(0).unwrap();
    let column = group.get_column_reader(1).unwrap();
    let mut column = get_typed_column_reader::<Int96Type>(column);
    let (mut levels, mut values) = (vec![], vec![]);
    column.read_records(9, Some(&mut levels), None, &mut values).unwrap();
    assert_eq!((levels, values), (vec![1, 1], times.to_vec()));
}

#[test]
fn tables_are_compared_with_lines_and_filters() {
    let dir = tempfile::tempdir().unwrap();
    let rows = rows(&mut Rng::new(5), 0, 300);
    let (table, csv, out) = (dir.path().join("t"), dir.path().join("c.csv"), dir.path().join("o"));
    let texts: BTreeSet<_> =
        rows.iter().filter_map(|row| row.url.clone()).filter(|url| !url.contains('\n')).collect();
    let some: Vec<_> = texts.iter().step_by(3).cloned().collect();
    let quoted = |text: &String| format!("\"{}\",x\n", text.replace('"', "\"\""));
    std::fs::write(&csv, "url,y\n".to_owned() + &some.iter().map(quoted).collect::<String>())
        .unwrap();
    let lines = dir.path().join("lines");
    std::fs::write(&lines, some.join("\n")).unwrap();
    let filter = FilterSpec { fpr: Some(1e-12), ..FilterSpec::default() };
    let filter =
        petal_lines::build(&filter, &Settings::new(16 << 20), &[Source::from_arg(&lines)]).unwrap();
    for format in formats() {
        write_rows(&table, format, &rows);
        let mut seen = BTreeSet::new();
        let found = |row: &&Row| row.url.as_ref().is_some_and(|url| some.contains(url));
        let every: Vec<_> = rows.iter().filter(found).map(|row| row.id).collect();
        let once = rows.iter().filter(found).filter(|row| seen.insert(row.url.clone()));
        let once: Vec<_> = once.map(|row| row.id).collect();
        let ids = || read_rows(&out, format).iter().map(|row| row.id).collect::<Vec<_>>();
        let job = SetJob {
            op: SetOp::Common,
            first: vec![Source::from_arg(&table)],
            others: vec![Source::from_arg(&csv)],
            mode: Mode::Exact { strategy: None },
        };
        let mut file = File::create(&out).unwrap();
        job.run(&settings("url"), Outputs::to(&mut file)).unwrap();
        assert_eq!(ids(), once, "{format:?}");
        let mut file = File::create(&out).unwrap();
        let inputs = [Source::from_arg(&table)];
        let options = CheckOptions::default();
        let dynamic = filter.filter.as_dyn();
        let counts = check(&settings("url"), dynamic, &inputs, options, Some(&mut file)).unwrap();
        assert_eq!((counts.lines, counts.found), (300, every.len() as u64));
        assert_eq!(ids(), every, "{format:?}");
        // The other way round the records of the CSV file are printed.
        let job = SetJob { first: job.others, others: job.first, ..job };
        let mut text = vec![];
        job.run(&settings("url"), Outputs::to(&mut text)).unwrap();
        assert_eq!(text, std::fs::read(&csv).unwrap());
        // Counts of keys.
        let mut text = vec![];
        let job = CountJob { inputs: inputs.to_vec(), order: CountOrder::Appearance, min_count: 1 };
        let error = job.run(&settings("page.n"), &mut text).unwrap_err();
        assert!(error.to_string().ends_with("cannot follow a count; set keys_only"), "{error}");
        let keys_only = Settings { keys_only: true, ..settings("page.n") };
        job.run(&keys_only, &mut text).unwrap();
        // Rows 1, 3, ... without a host have no page.
        let missing = rows.iter().filter(|row| row.host.is_none() && row.id % 2 == 1).count();
        let line = format!("{missing}\t");
        assert!(
            text.split(|byte| *byte == b'\n')
                .any(|found| found == [line.as_bytes(), b"\xff"].concat())
        );
        assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 301 - missing);
    }
}

/// Rows, lines, CSV and JSON by their texts, which the names of the inputs select.
#[test]
fn rows_are_compared_with_inputs_of_other_keys() {
    let mut rng = Rng::new(7);
    let dir = tempfile::tempdir().unwrap();
    let key: &KeyOf = &|row| vec![row.url.clone()];
    let strategies = [None, Some(Strategy::Partition), Some(Strategy::Narrow)];
    for (round, format) in formats().into_iter().cycle().take(27).enumerate() {
        let count = [0, 40, 4000][rng.below(3)];
        let a = rows(&mut rng, 0, count);
        let mut others = vec![];
        let mut sources = vec![];
        let source = |name: &str, fragment: &str| {
            Source::of_name(dir.path().join(format!("{name}{fragment}")), Source::Path).unwrap()
        };
        for kind in 0..1 + rng.below(3) {
            let mut b = rows(&mut rng, 1000, 300);
            let name = format!("b{kind}");
            // Lines and CSV have no nulls, lines no line ends.
            b.retain(|row| kind == 2 || row.url.as_ref().is_some_and(|url| !url.contains('\n')));
            let text = |row: &Row| row.url.clone().unwrap_or_default();
            let (text, fragment): (Vec<_>, _) = match kind {
                0 => (b.iter().map(text).collect(), "#"),
                1 => {
                    let quoted = |row: &Row| format!("x;\"{}\"", text(row).replace('"', "\"\""));
                    (b.iter().map(quoted).collect(), "#2&separator=;&header=no")
                }
                _ => {
                    let json = |row: &Row| match &row.url {
                        Some(url) => format!("{{\"u\":{url:?}}}"),
                        None => "{}".to_owned(),
                    };
                    (b.iter().map(json).collect(), "#/u")
                }
            };
            std::fs::write(dir.path().join(&name), text.join("\n") + "\n").unwrap();
            if text.is_empty() {
                std::fs::write(dir.path().join(&name), "").unwrap();
            }
            sources.push(source(&name, fragment));
            others.push(b);
        }
        let path = dir.path().join("a");
        write_rows(&path, format, &a);
        let op = [SetOp::Common, SetOp::AtLeast(1), SetOp::Diff][rng.below(3)];
        let job = SetJob {
            op,
            first: vec![source("a", "#url")],
            others: sources,
            mode: Mode::Exact { strategy: strategies[rng.below(3)] },
        };
        let context = format!("{round} {format:?} {job:?}");
        let settings = Settings { jobs: 2, ..Settings::new(9 << 20) };
        let out = dir.path().join("out");
        let mut kept = File::create(&out).unwrap();
        let run = job.run(&settings, Outputs::to(&mut kept));
        run.unwrap_or_else(|error| panic!("{context}: {error}"));
        let found: Vec<_> = read_rows(&out, format).iter().map(|row| row.id).collect();
        assert_eq!(found, model(op, &a, &others, key), "{context}");
        // Rows are no CSV, as `format=csv` says.
        let first = vec![source("a", "#url&format=csv")];
        let error = SetJob { first, ..job }.run(&settings, Outputs::to(&mut vec![])).unwrap_err();
        assert!(error.to_string().contains("expected lines"), "{context}: {error}");
    }
}

/// Parquet has types of its own; what the Arrow schema in its metadata calls them does not count.
#[test]
fn keys_of_extension_types_are_what_these_mean() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let arrays: [(&str, ArrayRef); 3] = [
        ("arrow.bool8", Arc::new(Int8Array::from(vec![Some(1), Some(0), None, Some(-7)]))),
        ("arrow.json", Arc::new(StringArray::from(vec!["{}", "1", "{ }", "1"]))),
        ("arrow.opaque", Arc::new(Int8Array::from(vec![1, 0, 2, 1]))),
    ];
    let field = |(name, values): &(&str, ArrayRef)| {
        let metadata = HashMap::from([("ARROW:extension:name".to_owned(), (*name).to_owned())]);
        Field::new(*name, values.data_type().clone(), true).with_metadata(metadata)
    };
    let schema = Schema::new(arrays.iter().map(field).collect::<Vec<_>>());
    let values = arrays.iter().map(|(_, values)| Arc::clone(values)).collect();
    let batch = RecordBatch::try_new(Arc::new(schema), values).unwrap();
    for format in [formats()[0], Format::File(None), Format::Stream(None)] {
        write_batches(&path, format, std::slice::from_ref(&batch));
        let keys = |column: usize| {
            let job = SetJob {
                op: SetOp::Dedup,
                first: vec![Source::from_arg(&path)],
                others: vec![],
                mode: Mode::Exact { strategy: None },
            };
            let mut out = vec![];
            let settings = Settings { keys_only: true, ..settings(&column.to_string()) };
            job.run(&settings, Outputs::to(&mut out)).map(|_| out)
        };
        let is_parquet = matches!(format, Format::Parquet(..));
        let booleans = if is_parquet { &b"1\n0\n\xff\n-7\n"[..] } else { b"true\nfalse\n\xff\n" };
        assert_eq!(keys(1).unwrap(), booleans, "{format:?}");
        assert_eq!(keys(2).unwrap(), b"{}\n1\n{ }\n", "{format:?}");
        match keys(3) {
            Ok(keys) => assert!(is_parquet && keys == b"1\n0\n2\n"),
            Err(error) => assert!(error.to_string().contains("arrow.opaque"), "{error}"),
        }
        assert_eq!(keys(3).is_ok(), is_parquet);
    }
}

#[test]
fn outputs_of_other_rows_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b, c) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
    let format = formats()[0];
    write_rows(&a, format, &rows(&mut Rng::new(7), 0, 5));
    std::fs::write(&c, "id\n1\n").unwrap();
    let job = |first: &[&PathBuf]| SetJob {
        op: SetOp::Dedup,
        first: first.iter().map(|path| Source::from_arg(path.as_path())).collect(),
        others: vec![],
        mode: Mode::Exact { strategy: None },
    };
    let run = |first: &[&PathBuf], settings: &Settings<'_>| {
        let mut out = vec![];
        let error = job(first).run(settings, Outputs::to(&mut out)).unwrap_err();
        assert!(out.is_empty());
        error
    };
    let other =
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
    let other = other.unwrap();
    let different = |error: petal_lines::Error| {
        assert!(error.to_string().contains("so its rows cannot follow those of "), "{error}");
    };
    for format in [format, Format::File(None), Format::Stream(None)] {
        write_batches(&b, format, std::slice::from_ref(&other));
        different(run(&[&a, &b], &settings("id")));
        different(run(&[&b, &a], &settings("id")));
        different(run(&[&b, &c], &settings("id")));
        // Nothing of them is in one output.
        job(&[&a, &b, &c]).run(&settings("id"), Outputs::default()).unwrap();
        let text = Settings { binary_output: false, ..settings("id") };
        let error = run(&[&b], &text).to_string();
        assert!(error.ends_with(", not text; specify the output, or set keys_only"), "{error}");
    }
    let keys_only = Settings { keys_only: true, ..settings("id") };
    let error = run(&[&b, &c], &keys_only).to_string();
    assert!(error.contains(": has lines, not rows, so its rows cannot follow"), "{error}");
    let mut out = vec![];
    job(&[&a, &b]).run(&keys_only, Outputs::to(&mut out)).unwrap();
    assert_eq!(out, b"0\n1\n2\n3\n4\n");
    // A key with a line end, and tables without columns.
    write_rows(&a, format, &[Row { id: 0, url: Some("x\ny".into()), host: None, tags: None }]);
    let keys_only = Settings { keys_only: true, ..settings("url") };
    let error = run(&[&a], &keys_only).to_string();
    assert!(error.contains("the key of row 1: has a line end"), "{error}");
    let error = run(&[&a], &Settings::new(16 << 20));
    assert!(error.to_string().ends_with("; specify columns, or set text"), "{error}");
}

#[test]
fn damaged_files_are_errors_without_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut rng) = (dir.path().join("t"), Rng::new(11));
    for format in formats() {
        write_rows(&path, format, &rows(&mut Rng::new(13), 0, 160));
        let whole = std::fs::read(&path).unwrap();
        let run = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let job = SetJob {
                op: SetOp::Dedup,
                first: vec![Source::from_arg(&path)],
                others: vec![],
                mode: Mode::Exact { strategy: Some(Strategy::Memory) },
            };
            let mut out = vec![];
            job.run(&settings("url,page.host"), Outputs::to(&mut out)).map(|report| report.kept)
        };
        let kept = run(&whole).unwrap();
        // Cut anywhere, a file is an error; but a stream may end after any batch.
        for length in
            (8..whole.len()).step_by(whole.len() / 120 + 1).chain(whole.len() - 12..whole.len())
        {
            let result = run(&whole[..length]);
            let stream = matches!(format, Format::Stream(_));
            assert!(result.is_err() || stream && result.unwrap() <= kept, "{format:?} {length}");
        }
        let mut errors = 0;
        for _ in 0..400 {
            let mut bytes = whole.clone();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(bytes.len());
                bytes[at] ^= 1 << rng.below(8);
            }
            if let Err(error) = run(&bytes) {
                assert!(error.kind() == ErrorKind::Input, "{format:?}: {error}");
                errors += 1;
            }
        }
        assert!(errors > 20, "{format:?} {errors}");
    }
}

#[test]
fn large_pages_and_batches_are_errors_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let text = "x".repeat(100);
    let values = StringArray::from_iter_values((0..150_000).map(|i| format!("{text}{i}")));
    let batch = RecordBatch::try_from_iter([("s", Arc::new(values) as ArrayRef)]).unwrap();
    let job = SetJob {
        op: SetOp::Dedup,
        first: vec![Source::from_arg(&path)],
        others: vec![],
        mode: Mode::Exact { strategy: None },
    };
    let run = |limit| {
        let mut out = vec![];
        let settings = Settings { keys: Arc::new(keys_of("s")), ..Settings::new(limit) };
        job.run(&settings, Outputs::to(&mut out)).map(|report| report.kept)
    };
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_data_page_size_limit(usize::MAX)
        .set_data_page_row_count_limit(usize::MAX);
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    for format in [
        None,
        Some(Format::File(None)),
        Some(Format::File(Some(CompressionType::ZSTD))),
        Some(Format::Stream(None)),
    ] {
        if let Some(format) = format {
            write_batches(&path, format, std::slice::from_ref(&batch));
        }
        // What the first error advises is enough, for keys and for rows.
        let error = run(16 << 20).unwrap_err();
        let [Advice::RaiseMemoryLimitTo(limit)] = error.advice() else { panic!("{error}") };
        assert_eq!(run(*limit).unwrap(), 150_000, "{format:?}");
    }
}

/// Of lists the library looks at the header of the next page before it reads the page.
#[test]
fn large_page_of_lists_behind_a_small_one_is_an_error_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..200 {
        let text = format!("{row}{}", "x".repeat(if row < 100 { 0 } else { 40_000 }));
        lists.append_value([Some(text)]);
    }
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int32Array::from_iter_values(0..200)) as ArrayRef),
        ("texts", Arc::new(lists.finish())),
    ]);
    let batch = batch.unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_data_page_size_limit(usize::MAX)
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(10);
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let job = SetJob {
        op: SetOp::Dedup,
        first: vec![Source::from_arg(&path)],
        others: vec![],
        mode: Mode::Exact { strategy: None },
    };
    let run = |limit| {
        let mut out = vec![];
        let settings = Settings { keys: Arc::new(keys_of("id")), ..Settings::new(limit) };
        job.run(&settings, Outputs::to(&mut out)).map(|report| report.kept)
    };
    let error = run(16 << 20).unwrap_err();
    let [Advice::RaiseMemoryLimitTo(limit)] = error.advice() else { panic!("{error}") };
    assert_eq!(run(*limit).unwrap(), 200);
}

/// Cancels a job when it begins a phase.
struct CancelAt {
    left: AtomicI64,
}

impl Progress for CancelAt {
    fn phase(&self, _: &str, _: Option<u64>) {
        self.left.fetch_sub(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0
    }
}

#[test]
fn ended_jobs_are_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut rng, work) = (Rng::new(17), dir.path().join("work"));
    let files = ["a", "b", "c"].map(|name| dir.path().join(name));
    for format in [formats()[0], Format::File(None)] {
        for (number, file) in (0..).zip(&files) {
            write_rows(file, format, &rows(&mut rng, 1000 * number, 300));
        }
        for (op, strategy) in [
            (SetOp::Common, Strategy::Narrow),
            (SetOp::Dedup, Strategy::Narrow),
            (SetOp::Diff, Strategy::Partition),
        ] {
            let first = if op == SetOp::Dedup { &files[..] } else { &files[..1] };
            let others = if op == SetOp::Dedup { &files[..0] } else { &files[1..] };
            let mode = Mode::Exact { strategy: Some(strategy) };
            let job = SetJob { op, first: sources(first), others: sources(others), mode };
            let run = |settings: &Settings<'_>| {
                let out = dir.path().join("out");
                let mut file = File::create(&out).unwrap();
                job.run(settings, Outputs::to(&mut file)).map(|_| read_rows(&out, format))
            };
            let expected = run(&settings("url")).unwrap();
            for at in 1.. {
                let cancel = CancelAt { left: AtomicI64::new(at) };
                let work_dir = Some(work.clone());
                let begun = Settings { work_dir: work_dir.clone(), ..settings("url") };
                let cancelled = Settings { progress: &cancel, ..begun.clone() };
                let ended = run(&cancelled);
                let done = ended.is_ok();
                if let Err(error) = ended {
                    assert!(error.kind() == ErrorKind::Cancelled, "{error}");
                    let resumed = run(&Settings { resume: true, ..begun }).unwrap();
                    assert_eq!(resumed, expected, "{op:?} {at}");
                }
                petal_lines::forget_work(&work);
                if done {
                    assert!(at > 1, "{at}");
                    break;
                }
            }
        }
    }
}

/// Takes some bytes, then is full.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn full_disks_are_errors_of_the_output() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    for format in formats() {
        write_rows(&path, format, &rows(&mut Rng::new(19), 0, 400));
        for columns in ["url", "id"] {
            for free in [0, 3, 100, 1000, 3000] {
                let job = SetJob {
                    op: SetOp::Dedup,
                    first: sources(std::slice::from_ref(&path)),
                    others: vec![],
                    mode: Mode::Exact { strategy: None },
                };
                let mut sink = Full(free);
                let error = job.run(&settings(columns), Outputs::to(&mut sink)).unwrap_err();
                assert!(error.is_disk_full(), "{format:?} {columns} {free}: {error}");
                assert_eq!(error.kind(), ErrorKind::Output, "{error}");
            }
        }
    }
}
