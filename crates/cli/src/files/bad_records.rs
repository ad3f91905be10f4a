//! The file of records without a key. It has each record as soon as it is read, so that it says what a
//! job that failed has left out.

use std::fs::File;
use std::io::{LineWriter, Write};
use std::path::Path;

use petal_lines::Source;

use crate::error::{Failure, Result, io_text};

/// Creates the file, or empties it. It may not be one of the inputs.
pub(crate) fn create(path: &Path, inputs: &[Source]) -> Result<Box<dyn Write + Send>> {
    let failed = |problem: &str| Failure::Message(format!("{}: {problem}", path.display()));
    if let Ok(data) = std::fs::metadata(path)
        && inputs.iter().any(|input| input.is(&data))
    {
        return Err(failed("is an input, too; name another file for bad records"));
    }
    let file = File::create(path);
    let file = file.map_err(|error| failed(&format!("cannot create: {}", io_text(&error))))?;
    Ok(Box::new(LineWriter::new(file)))
}
