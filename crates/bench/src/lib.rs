//! Benches (in the making).
