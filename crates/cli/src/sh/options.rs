//! The options of a command text.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::options::{EXIT_STATUS, OwnershipOption};
use crate::quantity::{parse_grace, parse_spill_cap, parse_timeout, parse_window};

/// Runs one command text in a shell, as an agent's tool does, and prints what a model would see of it.
///
/// The text is the shell's to read, as in bash -c: quote it as one word. Its output is collected, folded as a terminal shows
/// it, and printed at the end, with the exit status as the last line. What the command leaves running is ended and named.
///
/// The environment is scrubbed, as by run; it switches off colours, pagers, editors and prompts, unless --env says otherwise.
#[derive(Args)]
#[command(override_usage = "dsh-subprocess sh [OPTIONS] [--] <COMMAND>", after_long_help = EXIT_STATUS)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one switch of the command line"
)]
pub(crate) struct ShOptions {
    /// Run in this directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(super) cwd: Option<PathBuf>,

    /// Set a variable for the command, whatever its name; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) env: Vec<OsString>,

    /// Remove a variable from the command's environment; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(super) unset: Vec<OsString>,

    /// End the tree after this long, as in 500ms, 1.5s, 2m, 1h
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_timeout)]
    pub(super) timeout: Duration,

    /// Set no time limit
    #[arg(long, conflicts_with = "timeout")]
    pub(super) no_timeout: bool,

    /// Time between SIGTERM and SIGKILL when the tree is ended
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_grace)]
    pub(super) grace: Duration,

    /// Bytes kept of each stream, as in 4096, 64K, 1M: a quarter from its beginning, the rest from its end
    #[arg(long, value_name = "SIZE", default_value = "64000", value_parser = parse_window)]
    pub(super) max_bytes: usize,

    /// Write a stream that exceeds --max-bytes to a file, leave it behind and say where it is
    #[arg(long)]
    pub(crate) keep_spill: bool,

    /// With --keep-spill, the largest such file [default: 64M]
    #[arg(long, value_name = "SIZE", requires = "keep_spill", value_parser = parse_spill_cap)]
    pub(super) spill_max_bytes: Option<NonZeroU64>,

    /// Give the command this text to read, or with `-` what this process reads [default: nothing]
    #[arg(long, value_name = "STRING|-", conflicts_with = "stdin_file")]
    pub(super) stdin: Option<OsString>,

    /// Give the command this file to read
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(super) stdin_file: Option<PathBuf>,

    /// Send stderr where stdout goes, in the order the command wrote them
    #[arg(long)]
    pub(super) merge_stderr: bool,

    /// The shell that reads the text
    #[arg(long, value_name = "PROGRAM", default_value = "bash", value_hint = clap::ValueHint::CommandName)]
    pub(super) shell: OsString,

    #[arg(
        long,
        value_name = "ID",
        help = "The agent's session, which the command is told as DSH_SESSION_ID"
    )]
    pub(super) session: Option<String>,

    /// The mechanism that owns the tree
    #[arg(long, value_name = "MECHANISM", value_enum, default_value_t = OwnershipOption::Auto)]
    pub(super) ownership: OwnershipOption,

    /// Print one JSON object with every fact instead, in every case
    #[arg(long)]
    pub(crate) json: bool,

    /// Take the text from this file, or with `-` from what this process reads: of any length
    #[arg(long, value_name = "FILE|-", conflicts_with = "command", value_hint = clap::ValueHint::FilePath)]
    pub(super) file: Option<PathBuf>,

    /// The text for the shell, in one word
    #[arg(
        value_name = "COMMAND",
        required_unless_present = "file",
        trailing_var_arg = true,
        value_hint = clap::ValueHint::CommandString
    )]
    pub(super) command: Vec<OsString>,
}
