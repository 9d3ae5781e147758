//! The testkit.
#![forbid(unsafe_code)]
