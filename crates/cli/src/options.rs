//! The command line, as a person writes it.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::mcp::McpOptions;
use crate::quantity::{parse_drain, parse_grace, parse_retained, parse_spill_cap, parse_timeout};
use crate::sh::ShOptions;
use crate::term::TermOptions;

/// Runs a command and owns its whole process tree: nothing it started is left behind.
#[derive(Parser)]
#[command(
    name = "dsh-subprocess",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Run(Box<RunOptions>),
    Sh(Box<ShOptions>),
    Mcp(Box<McpOptions>),
    Term(Box<TermOptions>),
    Exec(Box<ExecOptions>),
    Doctor(DoctorOptions),
    /// Prints the completions of a shell.
    Completions {
        /// The shell they are for.
        shell: clap_complete::Shell,
    },
    /// Prints a manual page, in roff.
    Man {
        /// The page: the command itself, or one of its subcommands.
        #[arg(value_enum, default_value_t = Page::Main)]
        page: Page,
    },
}

/// The manual pages there are.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Page {
    /// dsh-subprocess(1)
    Main,
    /// dsh-subprocess-run(1)
    Run,
    /// dsh-subprocess-sh(1)
    Sh,
    /// dsh-subprocess-mcp(1)
    Mcp,
    /// dsh-subprocess-term(1)
    Term,
    /// dsh-subprocess-exec(1)
    Exec,
    /// dsh-subprocess-doctor(1)
    Doctor,
}

/// Runs one command to its end, and ends whatever of its tree is left then.
///
/// The output is passed on as it comes, byte for byte; then one line of facts goes to stderr. Everything after the
/// first word that is no option belongs to the command; `--` before it is optional.
///
/// The environment is this process's own without credentials: names that hold KEY, PASSWORD, SECRET or TOKEN, and
/// whatever else looks like one. What --env names always reaches the command.
#[derive(Args)]
#[command(override_usage = "dsh-subprocess run [OPTIONS] [--] <COMMAND> [ARG]...", after_long_help = EXIT_STATUS)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one switch of the command line"
)]
pub(crate) struct RunOptions {
    /// Run in this directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,

    /// Set a variable for the command, whatever its name; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<OsString>,

    /// Remove a variable from the command's environment; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) unset: Vec<OsString>,

    /// End the tree after this long, as in 500ms, 1.5s, 2m, 1h [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    pub(crate) timeout: Option<Duration>,

    /// Time between SIGTERM and SIGKILL when the tree is ended
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_grace)]
    pub(crate) grace: Duration,

    /// How long output is awaited, after the command's end, from whoever still holds it open
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_drain)]
    pub(crate) drain: Duration,

    /// With --json, bytes kept from the end of each stream, as in 4096, 64K, 1M
    #[arg(long, value_name = "SIZE", default_value = "65536", value_parser = parse_retained)]
    pub(crate) max_bytes: usize,

    /// With --json, bytes kept from the beginning of each stream beside its end
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_retained)]
    pub(crate) head_bytes: usize,

    /// With --json, write a stream that exceeds --max-bytes to a file, up to this size [default: no file, or 1G with
    /// --keep-spill]
    #[arg(long, value_name = "SIZE", value_parser = parse_spill_cap)]
    pub(crate) spill_max_bytes: Option<NonZeroU64>,

    /// With --json, leave that file behind and say where it is
    #[arg(long)]
    pub(crate) keep_spill: bool,

    /// Give the command this text to read, or with `-` what this process reads [default: nothing]
    #[arg(long, value_name = "STRING|-", conflicts_with = "stdin_file")]
    pub(crate) stdin: Option<OsString>,

    /// Give the command this file to read
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) stdin_file: Option<PathBuf>,

    /// Send stderr where stdout goes, in the order the command wrote them
    #[arg(long)]
    pub(crate) merge_stderr: bool,

    /// The mechanism that owns the tree
    #[arg(long, value_name = "MECHANISM", value_enum, default_value_t = OwnershipOption::Auto)]
    pub(crate) ownership: OwnershipOption,

    /// Print no line of facts
    #[arg(long)]
    pub(crate) quiet: bool,

    /// Print one JSON object instead of the output, in every case
    #[arg(long)]
    pub(crate) json: bool,

    /// The program and its arguments
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,
}

/// The same for a run and for a session on a terminal.
pub(crate) const EXIT_STATUS: &str = "\
Exit status:
  the command's own; 128+N when signal N ended it
  124  timed out
  125  a bad option, a bad working directory, or a failure of dsh-subprocess itself
  126  the command was found and cannot be executed
  127  the command was not found
  128+N  dsh-subprocess was interrupted by signal N (129 HUP, 130 INT, 131 QUIT, 143 TERM)
  141  whoever reads the output went away";

/// Runs one command in this process's place, for programs that start their child themselves.
///
/// The command has this process's own standard streams, terminal and place in its process group; no byte passes through
/// here, and no other descriptor reaches it. Signals are passed on to its whole tree, and this process ends as the command
/// does. The tree ends with the command, with this process however that ends, and with this process's parent.
///
/// The environment is scrubbed, as by run. What a configuration gives this process in its environment is scrubbed as well,
/// unless --keep names it.
#[derive(Args)]
#[command(override_usage = "dsh-subprocess exec [OPTIONS] [--] <COMMAND> [ARG]...", after_long_help = EXEC_STATUS)]
pub(crate) struct ExecOptions {
    /// Run in this directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,

    /// What the environment loses: credentials by name and by value, by name alone, or nothing
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = ScrubOption::All)]
    pub(crate) scrub: ScrubOption,

    /// Let a variable through the scrub; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) keep: Vec<OsString>,

    /// Set a variable for the command, whatever its name; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<OsString>,

    /// Remove a variable from the command's environment; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) unset: Vec<OsString>,

    /// Time between SIGTERM and SIGKILL when the tree is ended
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_grace)]
    pub(crate) grace: Duration,

    /// End the tree when this process ends [default: this process's parent]
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) die_with: Option<i32>,

    /// The mechanism that owns the tree
    #[arg(long, value_name = "MECHANISM", value_enum, default_value_t = OwnershipOption::Auto)]
    pub(crate) ownership: OwnershipOption,

    /// The program and its arguments
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,
}

const EXEC_STATUS: &str = "\
Exit status:
  the command's own; a signal that ended the command ends dsh-subprocess, too
  125  a bad option, a bad working directory, a guardian that has ended, or a failure of dsh-subprocess itself
  126  the command was found and cannot be executed
  127  the command was not found";

/// What a person can ask the scrub for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScrubOption {
    /// Names and values that look like credentials
    All,
    /// Names alone
    Names,
    /// Nothing: the command gets the whole environment
    Off,
}

/// Tells how well this machine can own process trees, and what would improve it.
#[derive(Args)]
pub(crate) struct DoctorOptions {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The mechanisms a person can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OwnershipOption {
    /// The strongest one that works here
    Auto,
    /// A control group: nothing the command starts can leave it
    Cgroup,
    /// A small process beside the tree that adopts whatever is orphaned in it; needs no privilege
    Reaper,
    /// The process group and session: a daemon may survive
    ProcessGroup,
}
