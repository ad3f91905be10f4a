//! The option of the commands that open filters whose files do not have their secret.

use std::path::PathBuf;

use clap::Args;

/// The secret of a filter whose file does not have it.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SecretArgs {
    /// File with the secret that the filter does not have [default: $PETAL_SECRET_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}
