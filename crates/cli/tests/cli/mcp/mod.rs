//! `dsh-subprocess mcp`: the server as a process, spoken to in lines that are written by hand.

mod client;
mod ending;
mod environment;
mod http;
mod refused;
mod stdio;
