//! The client transport, with servers that behave and servers that do not.

mod closing;
mod ending;
mod environment;
mod fixture;
mod framing;
mod lines;
mod refusals;
mod sessions;
mod stderr;
