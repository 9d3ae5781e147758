//! The shell of an agent: one command at a time, each in a process tree of its own, in whichever world it is given.
//!
//! * [`ShellRequest`] is what a caller asks for, [`ShellSpec`] what that comes to with a [`Config`], and [`Shell`] runs it.
//! * [`RunResult`] is what became of it: how the shell ended, why, what it printed, what it left behind.
//! * [`Execution`] is a command while it runs. It is a [job](dsh_jobs::Work), too.
//! * [`render`] makes of a result what a model reads. Execution knows nothing of it.
//!
//! A command that starts something with `&` is over when its shell is: what it left behind is ended or goes on as a job, as
//! [configured](LeftBehindPolicy), and is mentioned either way. No prompt can hang one beyond its deadline: it has no
//! terminal, and reads the end of its input at once.
//!
//! The vocabulary of the seam that these types speak is here, too, so that a user of the shell needs no other crate.
#![forbid(unsafe_code)]

mod argv;
mod background;
mod config;
mod environment;
mod error;
mod execution;
mod facts;
mod reading;
pub mod render;
mod request;
mod result;
mod shell;
mod supervision;
mod view;

pub use background::{JOB_KIND, hand_over};
pub use config::{Config, ConfigError, LeftBehindPolicy, Settings};
pub use dsh_subprocess::{
    EnvOverlay, Error, ErrorKind, MayHaveStarted, Member, Outcome, OutputRead, OutputReader, Process,
    SignalName, Snapshot, SpillLife, SpillState, SpilledStream, StreamName, SubprocessRuntime, TextCursor,
    TextRead, WorldPath, WorldString,
};
pub use environment::model_environment;
pub use error::{Partial, ShellError};
pub use execution::{Ended, Execution, ScopedExecution, Status};
pub use facts::{Call, Contributor};
pub use reading::BackgroundRead;
pub use request::{OnExpiry, ShellRequest, ShellSpec};
pub use result::{Cause, Collected, Fate, LeftBehind, RunResult};
pub use shell::Shell;
pub use view::view;

/// Runs the examples of the page about the shell.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/shell.md")]
struct ShellPage;
