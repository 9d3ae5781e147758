//! What a provider of a world, and a consumer of one, test with.
//!
//! * [`conformance`]: the contract of [`SubprocessRuntime`](dsh_subprocess::SubprocessRuntime) in code, for whoever
//!   implements it.
//! * [`scripted`]: a world without any process, for the tests of whoever uses it.
#![forbid(unsafe_code)]

pub mod conformance;
pub mod scripted;
