#!/usr/bin/env bash
# Writes the missing golden files: peers/golden.sh DIR, the folder in which the peers are installed.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: peers/golden.sh DIR" >&2; exit 2; }
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PEERS=$(cd "$1" && pwd)
GOLDEN=$ROOT/testdata/foreign
MANIFEST=$GOLDEN/manifest.tsv
[ -e "$MANIFEST" ] || printf 'file\tformat\tkeys\tpeer\tvariant\tn\trate\tmembers\tversion\tsha256\n' > "$MANIFEST"
for table in "$ROOT"/peers/*/golden.tsv; do
    peer=$(basename "$(dirname "$table")")
    while IFS=$'\t' read -r file format keys variant n rate members; do
        grep -q "^$file"$'\t' "$MANIFEST" && continue
        "$PEERS/bin/$peer" write "$variant" "$n" "$rate" "$GOLDEN/keys/$members.txt" "$GOLDEN/$file" < /dev/null
        if [ -e "$GOLDEN/keys/$members.asked" ]; then
            "$PEERS/bin/$peer" check "$variant" "$GOLDEN/$file" "$GOLDEN/keys/$members.asked" < /dev/null |
                tr -d '\n' > "$GOLDEN/$file.answers"
            echo >> "$GOLDEN/$file.answers"
        fi
        sum=$(sha256sum < "$GOLDEN/$file" | cut -d' ' -f1)
        version=$("$PEERS/bin/$peer" version | head -1)
        printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$file" "$format" "$keys" "$peer" "$variant" "$n" "$rate" \
            "$members" "$version" "$sum" >> "$MANIFEST"
        printf 'peers: wrote %s\n' "$file" >&2
    done < "$table"
done
