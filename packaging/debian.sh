# Shared by the scripts that build Debian packages, which source it. Needs dpkg-deb.
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
STAGE=$(mktemp -d)
trap 'rm -rf "$STAGE"' EXIT

# Copies a file into a package: put PACKAGE MODE FILE PATH.
put() { install -D -m "$2" "$3" "$STAGE/$1$4"; }

# Writes FOLDER/PACKAGE_VERSION_ARCHITECTURE.deb with the copied files: pack PACKAGE VERSION ARCHITECTURE FOLDER.
# Standard input has the other fields of its control file. The same files give the same bytes.
pack() {
    local package=$1 version=$2 architecture=$3 folder=$4 stage=$STAGE/$1 file size
    for file in packaging/copyright LICENSE-MIT LICENSE-APACHE; do
        put "$package" 644 "$TOP/$file" "/usr/share/doc/$package/${file##*/}"
    done
    mkdir -p "$stage/DEBIAN"
    size=$(du --summarize --apparent-size --block-size=1024 --exclude=DEBIAN "$stage" | cut -f1)
    {
        printf '%s\n' "Package: $package" "Version: $version" "Architecture: $architecture" \
            "Maintainer: The petal authors" "Installed-Size: $size"
        cat
    } > "$stage/DEBIAN/control"
    chmod -R u=rwX,go=rX "$stage"
    export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}
    find "$stage" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz -z1 --build "$stage" "$folder/${package}_${version}_$architecture.deb" > /dev/null
}
