//! The file engine (in the making).
