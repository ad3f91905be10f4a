//! Test helpers (in the making).
