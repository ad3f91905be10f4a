//! The core library (in the making).
