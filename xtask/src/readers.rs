//! `readers`: the readers of `.petal` files in other languages, and their tests.

use crate::peers;
use crate::step::{Result, Step, root, target_dir};

/// Builds the reader for Java, and runs its tests; those of its page use the program of the other tests.
pub(crate) fn java() -> Result {
    Step::script("java/build.sh", &["--test"])
        .env("PETAL", &target_dir().join("debug/petal").to_string_lossy())
        .env("PETAL_PEERS", &root().join(peers::HOME).to_string_lossy())
        .run()
}
