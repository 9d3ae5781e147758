//! The options of a session on a terminal.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::options::{EXIT_STATUS, OwnershipOption};
use crate::quantity::{parse_drain, parse_grace, parse_retained, parse_timeout};

/// Runs one command on a terminal of its own, and ends whatever of its tree is left at its end.
///
/// Where standard input is a terminal, that is attached: keys, screen and size are passed on, and its settings are put back
/// whatever ends this process. Anything else is typed as it comes, and its end types nothing: a shell wants an `exit` or
/// a ^D among the bytes.
///
/// What the terminal shows is passed on byte for byte; then one line of facts goes to stderr. The environment is scrubbed, as
/// by run.
#[derive(Args)]
#[command(override_usage = "dsh-subprocess term [OPTIONS] [--] [COMMAND [ARG]...]", after_long_help = EXIT_STATUS)]
pub(crate) struct TermOptions {
    /// Lines of the terminal, 1 to 65535 [default: those of the attached terminal, or 24]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) rows: Option<u16>,

    /// Columns of the terminal, 1 to 65535 [default: those of the attached terminal, or 80]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) cols: Option<u16>,

    /// What the command is to take the terminal for; becomes TERM [default: TERM where a terminal is attached, or
    /// xterm-256color]
    #[arg(long, value_name = "TYPE", value_parser = OsStringValueParser::new().try_map(not_empty))]
    pub(super) term: Option<OsString>,

    /// Write what the terminal shows to this new file, in asciicast v2; what is typed is not recorded
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(super) record: Option<PathBuf>,

    /// Run in this directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(super) cwd: Option<PathBuf>,

    /// Set a variable for the command, whatever its name; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) env: Vec<OsString>,

    /// Remove a variable from the command's environment; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(super) unset: Vec<OsString>,

    /// End the tree after this long, as in 500ms, 1.5s, 2m, 1h [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    pub(super) timeout: Option<Duration>,

    /// Time between SIGTERM and SIGKILL when the tree is ended
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_grace)]
    pub(super) grace: Duration,

    /// How long output is awaited, after the command's end, from whoever still has the terminal open
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_drain)]
    pub(super) drain: Duration,

    /// With --json, bytes kept from the end of what the terminal shows, as in 4096, 64K, 1M
    #[arg(long, value_name = "SIZE", default_value = "65536", value_parser = parse_retained)]
    pub(super) max_bytes: usize,

    /// With --json, bytes kept from its beginning beside its end
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_retained)]
    pub(super) head_bytes: usize,

    /// The mechanism that owns the tree
    #[arg(long, value_name = "MECHANISM", value_enum, default_value_t = OwnershipOption::Auto)]
    pub(super) ownership: OwnershipOption,

    /// Print no line of facts
    #[arg(long)]
    pub(crate) quiet: bool,

    /// Print one JSON object on stdout, in every case, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,

    /// The program and its arguments [default: the user's shell]
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    pub(super) command: Vec<OsString>,
}

fn not_empty(value: OsString) -> Result<OsString, &'static str> {
    if value.is_empty() {
        return Err("it is empty");
    }
    Ok(value)
}
