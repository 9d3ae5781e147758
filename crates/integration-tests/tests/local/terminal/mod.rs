//! Terminals: what only this machine can show of them. The conformance suite has what any world can.

mod asking;
mod controlling;
mod cwd;
mod descriptors;
mod ending;
mod environment;
mod exhaustion;
mod hanging;
mod hosts;
mod input;
mod orphans;
mod output;
mod owners;
mod session;
mod shells;
mod signals;
mod survivors;
mod threads;
mod unwaited;
