//! Background work with an owner.
#![forbid(unsafe_code)]
