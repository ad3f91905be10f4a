# CIRCL's Rust crate poppy-filters, whose version 1 is DCSO's format.
# Variants: plain, space, speed, best (the optimisation levels of version 2), v1.
CARGO_TARGET_DIR=$PEERS/poppy nice -n 5 cargo build --quiet --release --locked --manifest-path "$HERE/Cargo.toml"
command_named poppy <<SCRIPT
exec $PEERS/poppy/release/poppy "\$@"
SCRIPT
