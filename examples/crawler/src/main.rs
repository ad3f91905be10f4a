//! A polite web crawler whose visited set is a petal filter.

fn main() {}
