//! Filters that can delete: a small counter for each bit.
