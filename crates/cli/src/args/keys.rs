//! Options that say which bytes of a record are its key.

use std::path::PathBuf;

use clap::Args;
use petal_lines::{KeySpec, Transform};

use super::FieldArgs;
use super::records::RecordArgs;

/// Options of all commands that compare, insert or look up records.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct KeyArgs {
    /// Compare lines after these changes, in order, e.g. trim,lowercase
    ///
    /// Text: trim, lowercase, uppercase, lowercase-unicode, nfc, strip-cr.
    /// Digests: md5, sha1, sha256, ntlm, hex, unhex. URLs: url, url-scrapy, url-surt,
    /// strip-fragment, strip-query=PATTERN (as in utm_*), sort-query, host,
    /// registered-domain. A filter records its list and uses it for all lines.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    key_transform: Vec<Transform>,
    #[command(flatten)]
    records: RecordArgs,
}

impl KeyArgs {
    /// Returns how the key of a record is made from these fields.
    pub(crate) fn spec(&self, fields: &FieldArgs) -> KeySpec {
        KeySpec {
            fields: fields.fields(),
            csv: fields.csv(),
            transforms: self.key_transform.clone(),
            records: self.records.rules(),
        }
    }

    /// Returns the file for records without a key.
    pub(crate) fn bad_file(&self) -> Option<&PathBuf> {
        self.records.bad_file()
    }
}
