//! The ends of CSV records and their fields are those of a reader that looks at one byte at a time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use petal_lines::{Column, Columns, Fields, KeySpec, csv_records};

fuzz_target!(|bytes: &[u8]| {
    let Some((&separator, text)) = bytes.split_first() else { return };
    if matches!(separator, b'"' | b'\n' | b'\r') {
        return;
    }
    let model = records(text, separator);
    let found = csv_records(text, separator, usize::MAX);
    assert_eq!(found, model.iter().map(|(record, _)| *record).collect::<Vec<_>>());
    for most in [1, 2] {
        assert_eq!(csv_records(text, separator, most), found[..found.len().min(most)]);
    }
    for (record, fields) in model {
        // An empty line has every field, empty.
        let absent = record.strip_suffix(b"\r").unwrap_or(record).is_empty();
        for number in 1..fields.len() + 3 {
            let key = key(record, separator, &[number]);
            match fields.get(number - 1) {
                Some(field) => assert_eq!(key.as_ref(), Ok(field)),
                None => assert_eq!(key.is_ok(), absent),
            }
        }
        let both = [fields.len(), 1].map(|number| (number, &fields[number - 1]));
        let parts =
            both.map(|(_, field)| [&(field.len() as u32).to_le_bytes(), &field[..]].concat());
        assert_eq!(key(record, separator, &both.map(|(number, _)| number)), Ok(parts.concat()));
    }
});

fn key(record: &[u8], separator: u8, numbers: &[usize]) -> Result<Vec<u8>, String> {
    let columns = numbers.iter().copied().map(Column::Number).collect();
    let columns = Columns { columns, separator: Some(separator), header: false };
    KeySpec { fields: Fields::Columns(columns), transforms: vec![] }.key(record)
}

/// Returns the complete records, each with the values of its fields.
fn records(text: &[u8], separator: u8) -> Vec<(&[u8], Vec<Vec<u8>>)> {
    let (mut records, mut fields, mut field) = (vec![], vec![], vec![]);
    let (mut start, mut at) = (0, 0);
    // `begun`: the field has bytes, or had a quote.
    let (mut quoted, mut begun) = (false, false);
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' if quoted && text.get(at) == Some(&b'"') => {
                field.push(b'"');
                at += 1;
            }
            b'"' if quoted => quoted = false,
            _ if quoted => field.push(byte),
            b'"' if !begun => (quoted, begun) = (true, true),
            b'\n' => {
                if text[start..at - 1].ends_with(b"\r") {
                    field.pop();
                }
                fields.push(std::mem::take(&mut field));
                records.push((&text[start..at - 1], std::mem::take(&mut fields)));
                (start, begun) = (at, false);
            }
            _ if byte == separator => {
                fields.push(std::mem::take(&mut field));
                begun = false;
            }
            _ => {
                field.push(byte);
                begun = true;
            }
        }
    }
    records
}
