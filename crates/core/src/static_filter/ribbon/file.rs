//! The data of layout 8: a directory of layers, cuts and rows.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::RibbonTable;
use super::layout::{HALVES, LayerParams, MAX_LAYERS, RibbonLayout};
use crate::embed::Relocator;
use crate::error::{Error, Result};
use crate::format::data::DataSource;
use crate::format::header::{FilterInfo, Header};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::store::{CacheLine, Owned, Store, lines_as_half_words};

/// The number of parameters: columns, layers.
const PARAMETERS: usize = 2;

impl<S: Store> RibbonTable<S> {
    pub(in super::super) fn save(
        &self,
        hash: HashSpec,
        info: FilterInfo,
    ) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        let mut header = Header::new(FilterType::Static, self.layout.rows(), hash, info);
        let layers = self.layout.layers();
        header.parameters[0] = self.layout.columns();
        header.parameters[1] = layers.len() as u64;
        let line = |seed, shards, segments, wide| {
            CacheLine([seed, shards, segments, wide, 0, 0, 0, 0].map(u64::to_le))
        };
        let directory: Vec<CacheLine> = layers
            .iter()
            .map(|layer| line(layer.seed, layer.shards, layer.segments, layer.wide))
            .collect();
        let (cuts, rows) = (self.cuts.lines(), self.rows.lines());
        (header, vec![Cow::Owned(directory), Cow::Borrowed(cuts), Cow::Borrowed(rows)])
    }

    /// Takes the data of a header, whose probes are already checked.
    pub(in super::super) fn load(
        header: &Header,
        data: &mut impl DataSource<Store = S>,
    ) -> Result<Self> {
        let layout = layout_of(header, |layers| data.take(layers))?;
        let cuts = data.take(layout.cut_lines())?;
        let rows = data.take(layout.row_lines())?;
        Ok(Self::from_parts(layout, cuts, rows))
    }

    /// Checks that unused bits are zero.
    pub(in super::super) fn check(&self, data_at: u64) -> Result<()> {
        let layers = self.layout.layers().len() as u64;
        let cuts_at = data_at + layers * CacheLine::BYTES as u64;
        check_tail(self.cuts.lines(), self.layout.cuts(), cuts_at)?;
        let rows_at = cuts_at + self.layout.cut_lines() * CacheLine::BYTES as u64;
        check_tail(self.rows.lines(), self.layout.rows(), rows_at)
    }

    pub(in super::super) fn any_store(&self) -> &S {
        &self.rows
    }
}

impl RibbonTable<Owned> {
    pub(in super::super) fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        self.cuts.relocate(relocator);
        self.rows.relocate(relocator);
    }
}

/// Returns the layout by the header and the directory, whose lines `take` returns.
pub(crate) fn layout_of<D: Store>(
    header: &Header,
    take: impl FnOnce(u64) -> Result<D>,
) -> Result<RibbonLayout> {
    header.check_parameters(PARAMETERS)?;
    let [columns, layers, ..] = header.parameters;
    if layers > MAX_LAYERS {
        return Err(header.bad_parameter(1, "at most 16 layers"));
    }
    let mut layout = RibbonLayout::new(columns)?;
    let directory = take(layers)?;
    for (number, line) in (1..).zip(directory.lines()) {
        let [seed, shards, segments, wide, rest @ ..] = line.0.map(u64::from_le);
        if rest != [0; 4] {
            return Err(Error::invalid("a layer's last four words", "0", "others"));
        }
        layout.push(LayerParams { seed, shards, segments, wide }, number == layers)?;
    }
    if header.extent != layout.rows() {
        return Err(Error::invalid("extent", "the half words of rows", header.extent));
    }
    header.check_lines(layers + layout.cut_lines() + layout.row_lines())?;
    Ok(layout)
}

/// Checks that the half words after the last used one are zero.
fn check_tail(lines: &[CacheLine], used: u64, at: u64) -> Result<()> {
    let mut unused = lines_as_half_words(lines).iter().skip(used as usize);
    match unused.position(|half| *half != 0) {
        None => Ok(()),
        Some(half) => {
            let at = at + (used + half as u64) * (CacheLine::BYTES as u64 / HALVES);
            Err(Error::corrupt("bits after the last one", at as usize, 0, "a set bit"))
        }
    }
}
