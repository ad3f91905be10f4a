//! The ends of CSV records and their fields are those of a reader that looks at one byte at a time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use petal_lines::{Column, Columns, Dialect, Fields, KeySpec, Quoting, csv_records};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[separator, quoting, escape], text)) = bytes.split_first_chunk() else { return };
    let columns = Columns {
        separator: Some(separator),
        quoting: match quoting {
            0 => Quoting::BySeparator,
            1 => Quoting::None,
            byte => Quoting::Byte(byte),
        },
        escape: Some(escape).filter(|byte| *byte != 0),
        ..Columns::default()
    };
    let Some(dialect) = columns.dialect_of("").filter(|_| columns.check().is_ok()) else { return };
    let model = records(text, dialect);
    let found = csv_records(text, dialect, usize::MAX);
    assert_eq!(found, model.iter().map(|(record, _)| *record).collect::<Vec<_>>());
    for most in [1, 2] {
        assert_eq!(csv_records(text, dialect, most), found[..found.len().min(most)]);
    }
    let key = |record: &[u8], numbers: &[usize]| {
        let numbers = numbers.iter().copied().map(Column::Number).collect();
        let fields = Fields::Columns(Columns { columns: numbers, ..columns.clone() });
        KeySpec { fields, ..KeySpec::default() }.key(record)
    };
    for (record, fields) in model {
        // An empty line has every field, empty.
        let absent = matches!(record, b"" | b"\r");
        for number in 1..fields.len() + 3 {
            let key = key(record, &[number]);
            match fields.get(number - 1) {
                Some(field) => assert_eq!(key.as_ref(), Ok(field)),
                None => assert_eq!(key.is_ok(), absent),
            }
        }
        let both = [fields.len(), 1].map(|number| (number, &fields[number - 1]));
        let parts =
            both.map(|(_, field)| [&(field.len() as u32).to_le_bytes(), &field[..]].concat());
        assert_eq!(key(record, &both.map(|(number, _)| number)), Ok(parts.concat()));
    }
});

/// Returns the complete records, each with the values of its fields.
fn records(text: &[u8], dialect: Dialect) -> Vec<(&[u8], Vec<Vec<u8>>)> {
    let (mut records, mut fields, mut field) = (vec![], vec![], vec![]);
    let (mut start, mut at) = (0, 0);
    // `begun`: the field has bytes, or had a quote. `escaped`: the byte before was escaped.
    let (mut quoted, mut begun, mut escaped) = (false, false, false);
    while let Some(&byte) = text.get(at) {
        at += 1;
        let is_quote = Some(byte) == dialect.quote;
        let was_escaped = std::mem::take(&mut escaped);
        if Some(byte) == dialect.escape {
            // Without a byte to escape the record is not complete.
            let Some(&next) = text.get(at) else { break };
            field.push(next);
            at += 1;
            (begun, escaped) = (true, true);
        } else if quoted && is_quote {
            if text.get(at) == Some(&byte) {
                field.push(byte);
                at += 1;
            } else {
                quoted = false;
            }
        } else if quoted {
            field.push(byte);
        } else if is_quote && !begun {
            (quoted, begun) = (true, true);
        } else if byte == b'\n' {
            if text[start..at - 1].ends_with(b"\r") && !was_escaped {
                field.pop();
            }
            fields.push(std::mem::take(&mut field));
            records.push((&text[start..at - 1], std::mem::take(&mut fields)));
            (start, begun) = (at, false);
        } else if byte == dialect.separator {
            fields.push(std::mem::take(&mut field));
            begun = false;
        } else {
            field.push(byte);
            begun = true;
        }
    }
    records
}
