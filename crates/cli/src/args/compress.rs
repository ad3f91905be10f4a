//! Arguments that say how outputs of lines are compressed.

use clap::Args;
use petal_lines::Compression;

/// Options of all commands that write lines to files.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct CompressArgs {
    /// Compress the output: gzip, zstd, lz4 or none, and a level as in zstd:19
    /// [default: as a name in .gz, .zst or .lz4 says]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) compress: Option<CompressionArg>,
}

/// The format of `--compress`; `None` is `none`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompressionArg(pub(crate) Option<Compression>);

fn format(text: &str) -> Result<CompressionArg, String> {
    Compression::parse(text).map(CompressionArg)
}
