//! Filters that do not err on a universe known beforehand.
