//! The MCP server: a shell, its jobs and their outputs, for whoever speaks the Model Context Protocol.
//!
//! [`McpServer::serve`] has one session over any two byte streams, [`McpServer::serve_http`] many over HTTP. Both have the
//! same tools (`bash`, `job_output`, `job_kill`, `job_list`, `process_info`) and the same resources
//! (`dsh-output:///{id}/{stream}`), and in both a job belongs to the session that started it:
//!
//! * No other session can list, read or end it; to those it looks like a job that does not exist.
//! * It ends with the session, unless [configured](SessionEnd) otherwise. So does a command that is being waited for.
//!
//! Who began with a handshake is told of each job's end in a log message, once, and that there are other outputs to read.
//! Revisions of the protocol without one have no such messages: there `job_output` tells of the end, and
//! `subscriptions/listen` of outputs.
//!
//! A non-zero exit, a signal, a timeout and an abort are results. What could not be done at all is an answer marked as an error,
//! whose text names the input and the cause. Nothing that a command is given or prints is ever logged here; rmcp logs messages
//! at its levels `info` and below, so a subscriber should keep the target `rmcp` at `warn` or above.

mod announce;
mod config;
mod handler;
mod http;
mod link;
mod outputs;
mod resources;
mod serve;
mod session;
mod stream;
mod tools;
mod traffic;

pub use config::{ConfigError, MAX_PAGE_BYTES, ServerConfig, SessionEnd};
pub use http::{BearerToken, HttpConfig, TokenError};
use serve::Inner;
pub use serve::{McpServer, ServeError};
