//! Filters made once of all their keys, near the least space there can be.
