//! The work of the house (in the making).
fn main() {}
