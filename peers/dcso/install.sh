# DCSO's `bloom`, Debian's package.
# Variants: plain (the bytes of the line), gzip (the same, the file compressed).
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
    # It prints the lines that it found, in order; compared with all lines.
    "$bloom" "${gzip[@]}" check "$3" < "$4" | awk '
        FILENAME == "-" { found[++n] = $0; next }
        { sub(/\r$/, "") } # The program removes a CR.
        at < n && $0 == found[at + 1] { at++; print 1; next }
        { print 0 }' - "$4" ;;
*) echo "dcso: version, write or check" >&2; exit 2 ;;
esac
SCRIPT
