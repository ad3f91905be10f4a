# Apache DataSketches' Rust crate.
# Variants: str (&str), slice (&[u8]), raw (bytes as the library's other languages hash them), i64, u64, i32, u32.
CARGO_TARGET_DIR=$PEERS/datasketches-rust nice -n 5 cargo build --quiet --release --locked --manifest-path "$HERE/Cargo.toml"
command_named datasketches-rust <<SCRIPT
exec $PEERS/datasketches-rust/release/datasketches-rust "\$@"
SCRIPT
