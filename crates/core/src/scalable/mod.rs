//! Filters that grow with what is put into them.
