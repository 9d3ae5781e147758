//! From the command line to what is served: everything that can be refused before anything is started.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dsh_mcp::server::SessionEnd;
use dsh_shell::{Config, LeftBehindPolicy, WorldPath, WorldString};
use dsh_subprocess::Scrub;

use super::options::{LeftBehindOption, LogOption, McpOptions};
use crate::exec::Variables;
use crate::failure::Failure;
use crate::options::{OwnershipOption, ScrubOption};
use crate::quantity::spoken;
use crate::request::{overlay, working_directory};

/// What is served, checked.
pub(super) struct Request {
    /// How commands run.
    pub(super) config: Config,
    /// What their environment loses.
    pub(super) scrub: Scrub,
    /// What owns them.
    pub(super) ownership: OwnershipOption,
    /// What becomes of a session's jobs.
    pub(super) session_end: SessionEnd,
    /// Where to listen. `None`: on the standard streams.
    pub(super) http: Option<Http>,
    /// What is told.
    pub(super) log: LogOption,
}

/// A place to listen at, and who is served there.
pub(super) struct Http {
    pub(super) address: SocketAddr,
    /// `None`: the usual place.
    pub(super) token_file: Option<PathBuf>,
    pub(super) allowed_origins: Vec<String>,
    pub(super) allowed_hosts: Vec<String>,
}

impl Request {
    /// Checks the options.
    pub(super) fn new(options: McpOptions) -> Result<Self, Failure> {
        let cwd = directory(&working_directory(options.cwd.as_deref())?)?;
        let overlay = overlay(options.env, Vec::new())?;
        let Variables { scrub, overlay } = Variables::new(ScrubOption::All, options.keep, overlay)?;
        if options.timeout > options.max_timeout {
            return Err(Failure::bad_option(format!(
                "--timeout is {}, which is above --max-timeout, {}",
                spoken(options.timeout),
                spoken(options.max_timeout)
            )));
        }
        let http = options.http.map(|address| Http {
            address,
            token_file: options.token_file,
            allowed_origins: options.allow_origin,
            allowed_hosts: options.allow_host,
        });
        if let Some(http) = &http {
            reachable(http, options.allow_remote)?;
        }
        let config = Config {
            program: vec![WorldString::from(options.shell)],
            cwd: Some(cwd),
            timeout: options.timeout,
            max_timeout: options.max_timeout,
            max_output_bytes: options.max_bytes,
            grace: options.grace,
            left_behind: match options.left_behind {
                LeftBehindOption::End => LeftBehindPolicy::End,
                LeftBehindOption::Job => LeftBehindPolicy::Keep,
            },
            env: overlay,
            ..Config::default()
        };
        config
            .validate()
            .map_err(|error| Failure::bad_option(error.to_string()))?;
        Ok(Self {
            config,
            scrub,
            ownership: options.ownership,
            session_end: if options.keep_jobs {
                SessionEnd::KeepJobs
            } else {
                SessionEnd::EndJobs
            },
            http,
            log: options.log,
        })
    }
}

/// Refuses an address that others reach, unless that is wanted, and one that nobody could name.
fn reachable(http: &Http, allow_remote: bool) -> Result<(), Failure> {
    let address = http.address;
    if !address.ip().is_loopback() && !allow_remote {
        return Err(Failure::bad_option(format!(
            "--http {address}: other machines reach this address, the protocol is not encrypted, and whoever reads the token on \
             its way can run any command; --allow-remote says that this is wanted"
        )));
    }
    if address.ip().is_unspecified() && http.allowed_hosts.is_empty() {
        return Err(Failure::bad_option(format!(
            "--http {address}: it stands for every address of this machine, and clients reach those by names that are not known \
             here; --allow-host says which"
        )));
    }
    Ok(())
}

/// Refuses a directory that no command could run in: better now, and to whoever wrote it, than at each command.
fn directory(path: &Path) -> Result<WorldPath, Failure> {
    let refused = |kind: &str, cause: &dyn std::fmt::Display| {
        Failure::new(kind, format!("working directory {}: {cause}", path.display()))
    };
    let metadata = fs::metadata(path).map_err(|error| refused("cwd_not_found", &error))?;
    if !metadata.is_dir() {
        return Err(refused("cwd_not_directory", &"it is not a directory"));
    }
    Ok(WorldPath::from(path))
}
