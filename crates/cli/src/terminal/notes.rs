//! The texts of notes and warnings about a running job.

use petal_lines::{JsonPointer, Note};

use crate::text;

/// A line for standard error.
pub(super) enum Message {
    /// Printed each time.
    Note(String),
    /// A note that is printed once.
    Once(String),
    /// Printed once, even if an input is read twice.
    Warning(String),
}

/// Returns what is printed about a note; `None` if nothing is.
pub(super) fn message(note: Note<'_>) -> Option<Message> {
    Some(match note {
        Note::Spooling { input, dir } => Message::Note(format!(
            "{} cannot be read twice; copying it to {}",
            name(input),
            dir.display()
        )),
        Note::Typed => Message::Once(
            "reading lines from the terminal; end them with Ctrl-D on a line of its own".to_owned(),
        ),
        Note::ByteOrderMark { input, more } => Message::Warning(format!(
            "{} with a byte order mark, which is part of the first line, so that \
             the line differs from the same line without it; remove it with sed '1s/^\\xEF\\xBB\\xBF//'",
            subject(input, more, "begins", "begin"),
        )),
        Note::Grown { input, read, added, cut } => Message::Note(grown(input, read, added, cut)),
        Note::Resuming { dir, phases } => Message::Note(format!(
            "resuming the job in {}: {} {} done",
            dir.display(),
            text::count(phases),
            if phases == 1 { "phase is" } else { "phases are" },
        )),
        // A comma is what CSV has.
        Note::Separator { input, more, separator } if separator != b',' => Message::Once(format!(
            "{} separated by {}, as the first records show; if they are not, use --separator",
            subject(&format!("the columns of {}", name(input)), more, "are", "are"),
            separator_name(separator),
        )),
        Note::RepeatedName { input, more, name, columns: [one, other] } => {
            Message::Warning(format!(
                "{} two columns with the name {name:?}, {one} and {other}",
                subject(&format!("the header of {}", self::name(input)), more, "has", "have"),
            ))
        }
        Note::Undivided { input, more, separator, found, title } => Message::Warning(format!(
            "some records of {} no {}, but all{} have {}; check --separator",
            subject(input, more, "have", "have"),
            separator_name(separator),
            if title { " after a title" } else { "" },
            separator_name(found),
        )),
        Note::LiteralQuotes { input, more } => Message::Warning(format!(
            "columns of {} with a quote, which belongs to the key because tabs separate columns; \
             if the quotes only enclose them, use --quote '\"', otherwise --quote none",
            subject(input, more, "begin and end", "begin and end"),
        )),
        Note::LongField { input, more, byte, lines } => Message::Warning(format!(
            "quotes of {} over many lines, {} in the record at byte {}; if a quote is a byte like \
             any other there, use --quote none",
            subject(input, more, "go", "go"),
            text::count(lines),
            text::count(byte),
        )),
        Note::HashedDigests { input, more, digest } => Message::Warning(format!(
            "{} like results of {digest} and are hashed again; if they are the hashes, use \
             --key-transform lowercase",
            subject(&format!("the lines of {}", name(input)), more, "look", "look"),
        )),
        Note::HashedCr { input, more, digest } => Message::Warning(format!(
            "{} with CRLF, and {digest} hashes the CR; remove it with --key-transform strip-cr,{digest}",
            subject(&format!("the lines of {}", name(input)), more, "end", "end"),
        )),
        Note::CrLineEnds { input, more } => Message::Warning(format!(
            "{} CR between lines but no LF, so everything is one line; convert it with \
             tr '\\r' '\\n'",
            subject(input, more, "has", "have"),
        )),
        Note::CsvSettings { input } => Message::Once(format!(
            "{} has columns of its own; --separator, --quote, --escape and --header are for CSV \
             and have no effect",
            name(input),
        )),
        Note::ClosedQuote => Message::Note(
            "standard output ends within a quoted column; it is closed, and the record is printed \
             again if the inputs have it"
                .to_owned(),
        ),
        Note::MissingValue { input, more, pointer } => {
            let effect = "all of them are equal there";
            Message::Warning(missing_value(input, more, pointer, "record", "value", effect))
        }
        Note::MissingText { input, more, pointer } => {
            let effect = "all of them stay as they are";
            Message::Warning(missing_value(input, more, pointer, "document", "text", effect))
        }
        Note::OtherSeparator { input, more, separator, first, first_separator } => {
            Message::Warning(format!(
                "{} separated by {}, {} by {}: the output has records of both; convert one first, \
                 or correct --separator",
                subject(input, more, "is", "are"),
                separator_name(separator),
                name(first),
                separator_name(first_separator),
            ))
        }
        Note::OtherOutputHeader { input } => Message::Warning(format!(
            "standard output begins with another header than {}: its records are appended as they \
             are, so if the columns are in another order, the file mixes them",
            name(input),
        )),
        Note::OtherHeader { input, more, first } => Message::Warning(format!(
            "{} another header than {}, which is printed first; if the columns are in another \
             order, the output mixes them",
            subject(input, more, "has", "have"),
            name(first),
        )),
        Note::MixedLineEnds { crlf, more, lf } => Message::Warning(mixed_line_ends(crlf, more, lf)),
        Note::MixedHexCase { lower, more, upper } => Message::Warning(format!(
            "{} hexadecimal in lowercase, those of {} in uppercase: keys that look equal differ; \
             ignore the case with --key-transform lowercase",
            subject(&format!("the keys of {}", name(lower)), more, "are", "are"),
            name(upper),
        )),
        Note::Expecting { wrong_lines, fpr } => Message::Note(expecting(wrong_lines, fpr)),
        _ => return None,
    })
}

fn grown(input: &str, read: u64, added: u64, cut: bool) -> String {
    let cut = match cut {
        true => "; its last line was incomplete and is read as it was",
        false => "",
    };
    format!(
        "{} has grown by {} since it was opened; its first {} bytes were read{cut}",
        name(input),
        text::size(added),
        text::count(read),
    )
}

/// Returns that no `record` of inputs has a `value` at the pointer, and what follows.
fn missing_value(
    input: &str,
    more: u64,
    pointer: &JsonPointer,
    record: &str,
    value: &str,
    effect: &str,
) -> String {
    let pointer = pointer.to_string();
    let hint = match pointer.contains(",/") {
        true => "a comma is part of the name, so repeat --json-key for several values",
        false => "check --json-key",
    };
    format!(
        "no {record} of {} a {value} at {pointer}, so {effect}; {hint}",
        subject(input, more, "has", "have"),
    )
}

fn mixed_line_ends(crlf: &str, more: u64, lf: &str) -> String {
    let (crlf, lf, in_one_input) = (name(crlf), name(lf), crlf == lf);
    if in_one_input {
        return format!(
            "{} with CRLF and others with LF: the CR is part of the line, so lines that look \
             equal differ; ignore it with --key-transform strip-cr",
            subject(&format!("some lines of {crlf}"), more, "end", "end"),
        );
    }
    format!(
        "{} with CRLF, the keys of {lf} do not: the CR is part of the line, so lines that look \
         equal differ; ignore it with --key-transform strip-cr",
        subject(&format!("the lines of {crlf}"), more, "end", "end"),
    )
}

fn expecting(wrong_lines: Option<f64>, fpr: f64) -> String {
    let rate = text::rate(fpr);
    match wrong_lines {
        Some(wrong) => format!(
            "approximate: expect at most about {} wrong lines, at a false-positive rate of {rate}; \
             fewer if lines repeat or are in all inputs",
            text::count(wrong.ceil() as u64),
        ),
        None => format!(
            "approximate: the number of wrong lines depends on the number of lines (-n); the \
             false-positive rate is {rate}",
        ),
    }
}

/// Returns the name of an input for messages.
pub(crate) fn name(input: &str) -> &str {
    if input == "-" { "standard input" } else { input }
}

/// Returns an input and the number of other inputs, with the singular or plural verb.
fn subject(input: &str, more: u64, singular: &str, plural: &str) -> String {
    let input = name(input);
    match more {
        0 => format!("{input} {singular}"),
        1 => format!("{input} and another input {plural}"),
        _ => format!("{input} and {} other inputs {plural}", text::count(more)),
    }
}

fn separator_name(separator: u8) -> String {
    match separator {
        b'\t' => "tabs".to_owned(),
        byte => format!("'{}'", byte.escape_ascii()),
    }
}
