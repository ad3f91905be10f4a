//! `book`: builds the book of `docs/` into `target/book`.
//!
//! mdBook is installed once into `target/tools`; everything else needs no network. The interactive pages use the package
//! for JavaScript. After mdBook, [`search_in_chinese`] extends its search, and [`links`] redirects links to files of the
//! root and checks every link of the book.

mod links;
mod module;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::js;
use crate::step::{Result, Step, root};

/// The version of mdBook; it is installed again if this changes.
const MDBOOK: &str = "0.5.4";

/// The finished book.
pub(crate) const OUTPUT: &str = "target/book";

/// Builds the book and checks its links.
pub(crate) fn build() -> Result {
    let mdbook = mdbook()?;
    js::package()?;
    Step::program(&mdbook, &["build"]).run()?;
    let (package, pages) = (root().join(js::PACKAGE), root().join(OUTPUT).join("interactive"));
    module::write(&package.join("petal-basic.wasm"), &pages.join("petal-wasm.js"))?;
    let copies = pages.join("petal-filters");
    let copied = fs::create_dir_all(&copies).and_then(|()| {
        let mut names = ["petal.js", "petal.wasm", "petal-basic.wasm"].iter();
        names.try_for_each(|name| fs::copy(package.join(name), copies.join(name)).map(drop))
    });
    copied.map_err(|error| format!("{}: {error}", copies.display()))?;
    search_in_chinese(&root().join(OUTPUT))?;
    let pages = links::finish(&root(), &root().join(OUTPUT))?;
    println!("\ncargo x book: {pages} pages in {OUTPUT}; start with {OUTPUT}/index.html");
    Ok(())
}

/// Appends the search in Chinese to the script of the search index.
fn search_in_chinese(book: &Path) -> Result {
    let failed = |error: std::io::Error| format!("{}: {error}", book.display());
    let files = fs::read_dir(book).map_err(failed)?.map(|entry| entry.map(|entry| entry.path()));
    let files = files.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
    let is_index = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("searchindex-") && name.ends_with(".js")
    };
    let index = files.iter().find(is_index).ok_or("book: mdBook wrote no search index")?;
    let script = fs::read(root().join("docs/theme/search.js")).map_err(failed)?;
    let open = fs::OpenOptions::new().append(true).open(index);
    open.and_then(|mut file| file.write_all(&script)).map_err(failed)
}

/// Returns the path of mdBook, and installs it if it is missing or has another version.
fn mdbook() -> Result<PathBuf> {
    let tools = root().join("target/tools");
    let program = tools.join("bin/mdbook").with_extension(std::env::consts::EXE_EXTENSION);
    if version(&program).is_some_and(|found| found == format!("mdbook v{MDBOOK}")) {
        return Ok(program);
    }
    // Without its server, its file watcher and optimization, which would take longer than it saves.
    let package = ["install", "mdbook", "--version", MDBOOK, "--locked"];
    let features = ["--no-default-features", "--features", "search"];
    let profile = ["--debug", "--config", "profile.dev.debug=false"];
    let into = ["--force", "--root", &tools.to_string_lossy()];
    Step::cargo(&[&package[..], &features, &profile, &into].concat()).run().map_err(|error| {
        format!("cannot install mdBook {MDBOOK} (needs the network once): {error}")
    })?;
    Ok(program)
}

fn version(program: &Path) -> Option<String> {
    Step::program(program, &["--version"]).output().map(|text| text.trim().to_owned())
}
