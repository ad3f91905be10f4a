# DCSO's `bloom`, as Debian packs it.
# Variants: plain (the bytes of the line), gzip (the same, the file packed).
debian dcso golang-github-dcso-bloom-cli
command_named dcso <<SCRIPT
bloom=$PEERS/debian/dcso/usr/bin/bloom
SCRIPT
cat >> "$PEERS/bin/dcso" <<'SCRIPT'
verb=${1:-}
gzip=()
[ "${2:-}" = gzip ] && gzip=(--gzip)
case $verb in
version) "$bloom" --version 2>&1 ;;
write) rm -f "$6" && "$bloom" "${gzip[@]}" create -n "$3" -p "$4" "$6" && "$bloom" "${gzip[@]}" insert "$6" < "$5" ;;
check)
    # It prints the lines it holds, in order: told apart from the others by walking both lists.
    "$bloom" "${gzip[@]}" check "$3" < "$4" | awk '
        FILENAME == "-" { held[++n] = $0; next }
        { sub(/\r$/, "") } # The program drops a CR, and prints none.
        at < n && $0 == held[at + 1] { at++; print 1; next }
        { print 0 }' - "$4" ;;
*) echo "dcso: version, write or check" >&2; exit 2 ;;
esac
SCRIPT
