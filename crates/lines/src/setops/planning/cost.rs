//! Nanoseconds of one core for one line, measured on lines of 12 and 67 bytes
//! (docs/design/file-engine.md). Only the proportions matter, except for the estimated time.

/// Reading a line, finding its end and hashing it.
pub(crate) fn key(length: f64) -> f64 {
    12.0 + 0.28 * length
}
/// Fingerprinting a line.
pub(crate) fn fingerprint(length: f64) -> f64 {
    3.0 + 0.06 * length
}
/// Inserting a hash into a filter, or looking it up.
pub(crate) const FILTER: f64 = 6.0;
/// Writing, reading and joining a record.
pub(crate) const RECORD: f64 = 65.0;
/// Finding the entry of a candidate in a table in memory, many at a time.
pub(crate) const AT_ONCE: f64 = 35.0;
/// A lookup in a fingerprint table: in the core's cache, in the shared cache, or in memory.
pub(crate) fn table(entries: f64) -> f64 {
    match entries {
        ..60e3 => 10.0,
        ..500e3 => 30.0,
        _ => 110.0,
    }
}
/// Starting a pass or a phase.
pub(crate) const PASS: f64 = 300e3;
/// Printing a line: finding its end and copying it.
pub(crate) fn print(length: f64) -> f64 {
    15.0 + 0.5 * length
}
