//! Filters that forget what is old.
