//! One shell command of an agent.
#![forbid(unsafe_code)]

pub mod render;
