//! The command line (in the making).
fn main() {}
