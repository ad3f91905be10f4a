//! libpetal: its archive and Debian packages, tried as their users do.

use std::path::{Path, PathBuf};

use super::archive::Archive;
use super::target::Target;
use super::{VERSION, contents, failed, make, remake, tools, write};
use crate::peers;
use crate::step::{Result, Step, root};

/// Compiles and runs the first program of the guide in each way in which a program is linked with an installed library:
/// CONFIG is the folder of petal.pc, LIBRARIES that of the libraries, PREFIX where all is installed.
const TRY: &str = r#"
export PKG_CONFIG_PATH=$CONFIG LD_LIBRARY_PATH=$LIBRARIES
test "$(pkg-config --modversion petal)" = "$VERSION"
cc first.c $(pkg-config --cflags --libs petal) -o shared
cc -static first.c $(pkg-config --static --cflags --libs petal) -o static
needed() { readelf --dynamic "$1" | grep NEEDED; }
grep -q 'libpetal\.so\.1' <(needed shared)
for program in shared static; do
    test "$(./$program | tr '\n' ' ')" = "1 0 "
done
command -v cmake > /dev/null || { echo "no cmake: its files are not tried"; exit 0; }
cmake -S . -B build -DCMAKE_PREFIX_PATH="$PREFIX" > /dev/null
cmake --build build > /dev/null
for program in build/with_shared build/with_static; do
    test "$($program | tr '\n' ' ')" = "1 0 "
done
if needed build/with_static | grep -q libpetal; then exit 1; fi
"#;

const CMAKE: &str = "\
cmake_minimum_required(VERSION 3.13)
project(first C)
find_package(petal @version@ REQUIRED)
add_executable(with_shared first.c)
target_link_libraries(with_shared petal::petal)
add_executable(with_static first.c)
target_link_libraries(with_static petal::static)
";

/// Packs an archive and Debian packages, without debug information: the static library of one folder, and the shared
/// library of another.
pub(super) fn pack(target: &Target, dir: &Path, shared: &Path, files: &Path) -> Result {
    let stage = files.with_extension("library");
    remake(&stage)?;
    let libraries = stage.join("built");
    make(&libraries)?;
    for (dir, name) in [(dir, "libpetal_capi.a"), (shared, "libpetal_capi.so")] {
        tools::objcopy(&["--strip-debug"], &dir.join(name), &libraries.join(name))?;
    }
    let installed = stage.join("installed");
    let [from, to] = [&libraries, &installed].map(|path| path.to_string_lossy());
    Step::script("packaging/libpetal/install.sh", &[&from, &to]).run()?;

    let mut archive = Archive::create(files, &target.archive("libpetal"))?;
    for name in contents::LICENCES {
        archive.add(&root().join(name), name)?;
    }
    archive.add(&root().join("packaging/libpetal/README.md"), "README.md")?;
    archive.add_folder(&installed, "")?;
    archive.finish(&[
        "lib/libpetal.so.1",
        "lib/libpetal.a",
        "lib/pkgconfig/petal.pc",
        "lib/cmake/petal/petalConfig.cmake",
        "lib/cmake/petal/petalConfigVersion.cmake",
        "include/petal.h",
        "include/petal.hpp",
        "README.md",
        "LICENSE-MIT",
    ])?;
    let args = [&from, target.debian_architecture(), &files.to_string_lossy()];
    Step::script("packaging/libpetal/deb.sh", &args).run()
}

/// Unpacks the archive and the Debian packages, and compiles and runs a program with each.
pub(super) fn try_installed(target: &Target, files: &Path) -> Result {
    let stage = files.with_extension("library");
    let archive = target.archive("libpetal");
    Archive::unpack(&files.join(format!("{archive}.tar.gz")), &stage)?;
    let prefix = stage.join(archive);
    try_with(&prefix, &prefix.join("lib"))?;
    let (architecture, system) = (target.debian_architecture(), stage.join("system"));
    for package in ["libpetal1", "libpetal-dev"] {
        let file = files.join(format!("{package}_{VERSION}_{architecture}.deb"));
        let args = ["--extract", &file.to_string_lossy(), &system.to_string_lossy()];
        Step::program(Path::new("dpkg-deb"), &args).run()?;
    }
    let prefix = system.join("usr");
    let folders = super::archive::sorted_files(&prefix.join("lib"))?;
    let libraries = folders.first().ok_or("the Debian packages have no libraries")?;
    try_with(&prefix, libraries)
}

/// Compiles and runs the first program of the guide with what is installed below a folder.
fn try_with(prefix: &Path, libraries: &Path) -> Result {
    let folder = libraries.join("try");
    remake(&folder)?;
    let guide = root().join("docs/guides/c.md");
    let text = std::fs::read_to_string(&guide).map_err(|error| failed(&guide, &error))?;
    let program = text.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let program = program.ok_or_else(|| format!("{}: no program in C", guide.display()))?;
    write(&folder.join("first.c"), program.as_bytes())?;
    write(&folder.join("CMakeLists.txt"), CMAKE.replace("@version@", VERSION).as_bytes())?;
    Step::program(Path::new("bash"), &["-euo", "pipefail", "-c", TRY])
        .in_folder(&folder.to_string_lossy())
        // CMake.
        .with_path(&root().join(peers::HOME).join("bin"))
        .env("CONFIG", &libraries.join("pkgconfig").to_string_lossy())
        .env("LIBRARIES", &libraries.to_string_lossy())
        .env("PREFIX", &prefix.to_string_lossy())
        .env("VERSION", VERSION)
        .run()
}

/// Copies the jar of the reader for Java; the error says what is missing.
pub(super) fn jar(files: &Path) -> Result {
    let jar: PathBuf = crate::readers::jar()?;
    super::copy(&jar, &files.join(format!("petal-{VERSION}.jar")))
}

/// Returns how the package for Go is published.
pub(super) fn go_module() -> Result<String> {
    let path = root().join("go/go.mod");
    let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
    let module = text.lines().find_map(|line| line.strip_prefix("module "));
    let module = module.ok_or_else(|| format!("{}: no module", path.display()))?;
    Ok(format!("{module}: the tag go/v{VERSION} publishes it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a text has a version: three numbers.
    fn has_version(text: &str) -> bool {
        let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
        words.into_iter().any(|word| word.split('.').filter(|part| !part.is_empty()).count() == 3)
    }

    #[test]
    fn version_is_that_of_the_workspace() {
        assert!(has_version(&format!("Version: {VERSION}")) && !has_version("libpetal.so.1, 2.17"));
        for file in [
            "java/manifest.mf",
            "java/build.sh",
            "packaging/libpetal/deb.sh",
            "packaging/libpetal/install.sh",
            "packaging/libpetal/petal.pc.in",
            "packaging/libpetal/petalConfig.cmake.in",
            "packaging/libpetal/petalConfigVersion.cmake.in",
        ] {
            let text = std::fs::read_to_string(root().join(file)).unwrap();
            assert!(!has_version(&text), "{file} has a version of its own");
        }
    }
}
