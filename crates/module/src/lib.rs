//! A stand-in, so that the tests compile until the module is there.
