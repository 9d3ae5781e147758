//! The options of the server.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::options::OwnershipOption;
use crate::quantity::{parse_grace, parse_timeout, parse_window};

/// Serves the Model Context Protocol: agents run their commands through it, each in a process tree that is owned.
///
/// It speaks on standard input and output, to the client that started it, and ends with that client; with --http it listens
/// for any number of clients that have its token.
///
/// The environment of the commands is this process's own without credentials. What a client's configuration gives this process
/// in its environment is scrubbed as well, unless --keep names it.
#[derive(Args)]
#[command(override_usage = "dsh-subprocess mcp [OPTIONS]", after_long_help = MCP_STATUS)]
pub(crate) struct McpOptions {
    /// Listen on this address instead, as in 127.0.0.1:8080; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(super) http: Option<SocketAddr>,

    /// The file with the token that clients must show; it is made where it is missing [default: mcp-token below
    /// $XDG_RUNTIME_DIR/dsh-subprocess or $XDG_STATE_HOME/dsh-subprocess]
    #[arg(long, value_name = "FILE", requires = "http", value_hint = clap::ValueHint::FilePath)]
    pub(super) token_file: Option<PathBuf>,

    /// Listen on an address that other machines reach: the protocol is not encrypted, and whoever reads the token on its way
    /// can run any command
    #[arg(long, requires = "http")]
    pub(super) allow_remote: bool,

    /// Serve pages of this origin in browsers, named by scheme, host and port; may be given several times
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(super) allow_origin: Vec<String>,

    /// Answer to this name beside the address itself and localhost, as in build.example.org; may be given several times
    #[arg(long, value_name = "HOST", requires = "http")]
    pub(super) allow_host: Vec<String>,

    /// Run commands in this directory, unless they name another [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(super) cwd: Option<PathBuf>,

    /// End a command after this long that names no timeout
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_timeout)]
    pub(super) timeout: Duration,

    /// The longest timeout; a longer one is shortened to it
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_timeout)]
    pub(super) max_timeout: Duration,

    /// Bytes kept of each stream in memory, as in 4096, 64K, 1M: a quarter from its beginning, the rest from its end
    #[arg(long, value_name = "SIZE", default_value = "64000", value_parser = parse_window)]
    pub(super) max_bytes: usize,

    /// Time between SIGTERM and SIGKILL when a tree is ended
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_grace)]
    pub(super) grace: Duration,

    /// What becomes of processes that outlive their command
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = LeftBehindOption::Job)]
    pub(super) left_behind: LeftBehindOption,

    /// Let the jobs of a session that ends run on, at most as long as this process
    #[arg(long, requires = "http")]
    pub(super) keep_jobs: bool,

    /// The shell that reads the commands
    #[arg(long, value_name = "PROGRAM", default_value = "bash", value_hint = clap::ValueHint::CommandName)]
    pub(super) shell: OsString,

    /// Set a variable for every command, whatever its name; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) env: Vec<OsString>,

    /// Let a variable of this process through the scrub; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(super) keep: Vec<OsString>,

    /// The mechanism that owns the trees
    #[arg(long, value_name = "MECHANISM", value_enum, default_value_t = OwnershipOption::Auto)]
    pub(super) ownership: OwnershipOption,

    /// What is told on stderr; never a command, its output, or a secret
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogOption::Warn)]
    pub(super) log: LogOption,
}

/// What a person can ask for processes that outlive their command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LeftBehindOption {
    /// They are ended
    End,
    /// They go on as a job of the session
    Job,
}

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LogOption {
    /// Nothing
    Off,
    /// What failed
    Error,
    /// And what may be wrong
    Warn,
    /// And the beginning and end of sessions
    Info,
    /// And single steps
    Debug,
}

fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "it is no IP address with a port; write it as in 127.0.0.1:8080 or [::1]:8080")
}

const MCP_STATUS: &str = "\
Exit status:
  0    the client closed its end
  125  a bad option, an address or a token file that cannot be used, or a failure of dsh-subprocess itself
  128+N  dsh-subprocess was interrupted by signal N (129 HUP, 130 INT, 131 QUIT, 143 TERM)";
