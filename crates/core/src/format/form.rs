//! What a type of filter says about its file, and the ways in and out that come of it.

use std::borrow::Cow;
use std::io::{Read, Write};

use super::data::{Data, Incoming, Placed};
use super::header::Header;
use super::{image::Image, read, write};
use crate::error::Result;
use crate::store::{Lent, Line, Mapped, Owned, Store};

/// A filter over stores of this kind that has a form in files.
pub(crate) trait Form<S>: Sized {
    /// The filter of a header and of the data behind it. It takes all of the data, and looks at
    /// no more of it than says how long its parts are.
    ///
    /// Whatever bits the data have, the filter must not panic later.
    fn load(header: &Header, data: &mut impl Data<Store = S>) -> Result<Self>;

    /// Finds what is wrong with data whose checksum is right: whatever no writer would write.
    /// The data begin at `data_at` in the file.
    /// What [`check_early`](Self::check_early) has looked at need not be looked at again.
    fn check(&self, data_at: u64, checked: Checked) -> Result<()>;

    /// The same as far as it can be told from the first so many lines of the data, while the others
    /// have not come yet: for types whose check reads all of it, so that it is spread over the time
    /// in which they come.
    fn check_early(&self, data_at: u64, lines: usize, checked: &mut Checked) -> Result<()> {
        let _ = (data_at, lines, checked);
        Ok(())
    }

    /// The header, lengths and sums aside, and the data in their parts, as
    /// [`load`](Self::load) takes them.
    fn save(&self) -> (Header, Vec<Cow<'_, [Line]>>);
}

/// How far a check has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checked {
    /// Lines, or groups of lines, that need not be looked at again.
    pub(crate) done: usize,
    /// What was seen in them, as the type of filter likes it.
    pub(crate) seen: [u64; 4],
}

/// Writes a filter as a `.petal` file.
pub(crate) fn write_to<S>(filter: &impl Form<S>, out: impl Write, metadata: &str) -> Result<()> {
    write::write(out, &Image::new(filter.save()), metadata)
}

/// Reads a filter and its metadata from a stream, every byte examined.
pub(crate) fn read_from<F: Form<Owned>>(stream: impl Read) -> Result<(F, String)> {
    let (mut data, metadata) = Incoming::open(stream)?;
    let filter = F::load(&data.header(), &mut data)?;
    let data_at = data.header().data_at();
    data.finish()?;
    filter.check(data_at, Checked::default())?;
    Ok((filter, metadata))
}

/// A filter in a mapped file, where it lies.
pub(crate) fn open_mapped<F: Form<Mapped>>(file: &Mapped) -> Result<F> {
    let (header, _) = read::open(file.file())?;
    let mut data = Placed::new(file.lines_from(header.data_at() as usize)?);
    let filter = F::load(&header, &mut data)?;
    data.finish(&header)?;
    Ok(filter)
}

/// A filter over the bytes of a whole file, where they lie.
pub(crate) fn from_bytes<'a, F: Form<Lent<'a>>>(file: &'a [u8]) -> Result<F> {
    let (header, _) = read::open(file)?;
    let mut data = Placed::new(Lent::new(&file[header.data_at() as usize..])?);
    let filter = F::load(&header, &mut data)?;
    data.finish(&header)?;
    Ok(filter)
}

/// Examines every byte of the file in which a filter lies.
pub(crate) fn verify<S: Store>(filter: &impl Form<S>, file: &[u8]) -> Result<()> {
    let header = read::verify(file)?;
    filter.check(header.data_at(), Checked::default())
}

/// The metadata of the file in which a filter lies.
pub(crate) fn metadata(file: &[u8]) -> &str {
    read::open(file).map_or("", |(_, metadata)| metadata)
}
