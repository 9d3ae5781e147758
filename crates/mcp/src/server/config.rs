//! What a deployment decides.

use std::time::Duration;

/// The limits and habits of an [`McpServer`](crate::server::McpServer).
///
/// What concerns commands (their timeouts, how much of their output is kept, the grace) is the
/// [shell's configuration](dsh_shell::Config); how many jobs a session may have is the
/// [jobs' limits](dsh_jobs::Limits).
///
/// ```
/// use std::time::Duration;
/// use dsh_mcp::server::ServerConfig;
///
/// let config = ServerConfig { progress_interval: Duration::from_secs(5), ..ServerConfig::default() };
/// assert!(config.validate().is_ok());
/// let refused = ServerConfig { page_bytes: 2 << 20, ..ServerConfig::default() }.validate().unwrap_err();
/// assert_eq!(refused.to_string(), "page_bytes is 2097152: it must be from 1 to 524288");
/// ```
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The name that the server gives itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What clients may tell their model about the server; `None` tells nothing.
    pub instructions: Option<String>,
    /// The shortest time between two progress notifications of one call: more than zero, at most a day.
    pub progress_interval: Duration,
    /// What becomes of a session's jobs when it ends.
    pub session_end: SessionEnd,
    /// How many truncated outputs of commands that were waited for can still be read, per session: from 1 to 1,024. The oldest
    /// goes first, and its file with it.
    pub kept_outputs: usize,
    /// Bytes of a page of output where the client names no length: from 1 to [`MAX_PAGE_BYTES`].
    pub page_bytes: usize,
    /// How many tool calls of one session may run at once: from 1 to 4,096.
    pub max_calls: usize,
    /// The longest line, in bytes, that a session over byte streams takes for a message: from 64 KiB to 1 GiB. A longer one is
    /// answered with an error and skipped.
    pub max_line_bytes: usize,
}

/// The longest page of output that a client can ask for, in bytes. As it is sent it is a third longer at most, which is below
/// the 1 MiB that there are clients who take no more of.
pub const MAX_PAGE_BYTES: usize = 512 << 10;

/// What becomes of a session's jobs when it ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SessionEnd {
    /// They are ended: `SIGTERM`, the shell's grace, `SIGKILL`.
    #[default]
    EndJobs,
    /// They run on, until they end by themselves or the registry or the world is disposed of. Nobody can reach them any more:
    /// a job belongs to the session that started it.
    KeepJobs,
}

/// A configuration that no server could run with. The text names the value and its bounds.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(super) String);

const INSTRUCTIONS: &str = "Commands run in a shell of their own each: no state but the file system is kept between calls. \
No terminal is there and standard input is at its end, so nothing can prompt. Credentials in the server's environment are \
not passed on to commands. A command that takes longer than its timeout is \
ended with everything it started; start servers and other long work with run_in_background, then follow it with job_output \
and end it with job_kill. Output that is too long is shortened in the middle; the whole of it can be read as a resource.";

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            name: "dsh-subprocess".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: Some(INSTRUCTIONS.to_owned()),
            progress_interval: Duration::from_secs(1),
            session_end: SessionEnd::EndJobs,
            kept_outputs: 32,
            page_bytes: 64 << 10,
            max_calls: 256,
            max_line_bytes: 8 << 20,
        }
    }
}

impl ServerConfig {
    /// Checks what no server could run with.
    ///
    /// # Errors
    ///
    /// The first value out of its bounds, by its name.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for (name, value) in [("name", &self.name), ("version", &self.version)] {
            if value.is_empty() {
                return Err(ConfigError(format!("{name} is empty")));
            }
        }
        bounded_time("progress_interval", self.progress_interval)?;
        bounded("kept_outputs", self.kept_outputs, 1, 1024)?;
        bounded("page_bytes", self.page_bytes, 1, MAX_PAGE_BYTES)?;
        bounded("max_calls", self.max_calls, 1, 4096)?;
        bounded("max_line_bytes", self.max_line_bytes, 64 << 10, 1 << 30)
    }
}

pub(super) fn bounded(name: &str, value: usize, least: usize, most: usize) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ConfigError(format!(
        "{name} is {value}: it must be from {least} to {most}"
    )))
}

/// Checks a time that is more than zero and at most a day.
pub(super) fn bounded_time(name: &str, value: Duration) -> Result<(), ConfigError> {
    const MOST: Duration = Duration::from_secs(24 * 3600);
    if !value.is_zero() && value <= MOST {
        return Ok(());
    }
    Err(ConfigError(format!(
        "{name} is {value:?}: it must be more than zero and at most {} s",
        MOST.as_secs()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_out_of_bounds_is_named() {
        let refusal = |change: fn(&mut ServerConfig)| {
            let mut config = ServerConfig::default();
            change(&mut config);
            config.validate().expect_err("a value is wrong").to_string()
        };
        assert_eq!(refusal(|config| config.name.clear()), "name is empty");
        assert!(
            refusal(|config| config.progress_interval = Duration::ZERO)
                .starts_with("progress_interval is 0ns")
        );
        assert_eq!(
            refusal(|config| config.kept_outputs = 0),
            "kept_outputs is 0: it must be from 1 to 1024"
        );
        assert!(refusal(|config| config.max_calls = 0).starts_with("max_calls is 0"));
        assert!(refusal(|config| config.max_line_bytes = 1).starts_with("max_line_bytes is 1"));
    }
}
