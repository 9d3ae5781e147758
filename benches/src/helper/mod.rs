//! What the benches spawn: this program, called differently, so that nothing else needs to be built or found.

mod sleepers;
mod stamps;
mod typewriter;
mod writer;

use std::ffi::OsString;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};

pub(crate) use stamps::{Clock, Stamps, now};
pub(crate) use typewriter::{Mode, READY};

/// Marks a call, which no row is named like.
const MARK: &str = "call:";

/// A call of this program as one of its own helpers.
#[derive(Debug)]
pub(crate) struct Call {
    name: String,
    arguments: Vec<String>,
}

/// Returns the call that this process is, if it is one.
pub(crate) fn call() -> Option<Call> {
    let mut words = std::env::args_os().skip(1).map(OsString::into_string);
    let name = words.next()?.ok()?.strip_prefix(MARK)?.to_owned();
    Some(Call {
        name,
        arguments: words.filter_map(Result::ok).collect(),
    })
}

/// Returns the command line of a call: this program's path, then its arguments.
pub(crate) fn command(name: &str, arguments: &[&str]) -> Result<Vec<String>> {
    let program = std::env::current_exe().context("this program cannot be found")?;
    let program = program
        .into_os_string()
        .into_string()
        .ok()
        .context("the path of this program is not UTF-8")?;
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    Ok([program, format!("{MARK}{name}")]
        .into_iter()
        .chain(arguments)
        .collect())
}

impl Call {
    /// Returns an argument.
    pub(crate) fn argument<T: FromStr>(&self, index: usize) -> Result<T> {
        let text = self
            .arguments
            .get(index)
            .with_context(|| format!("{} lacks argument {index}", self.name))?;
        text.parse()
            .ok()
            .with_context(|| format!("{} cannot take {text:?}", self.name))
    }
}

/// Does what was called for.
pub(crate) fn answer(call: &Call) -> Result<()> {
    match call.name.as_str() {
        "write" => writer::write(call.argument(0)?, &vec![b'.'; writer::CHUNK]),
        "print" => typewriter::print(call.argument(0)?, &call.argument::<String>(1)?),
        "echo" => typewriter::echo(),
        "sleepers" => sleepers::lead(call.argument(0)?),
        "kill-and-reap" => sleepers::kill_and_reap(call.argument(0)?),
        "linger" => stamps::linger(),
        "compare" => crate::candidate::serve(call),
        "collecting-host" => crate::collect::host(&call.argument::<String>(0)?, call.argument(1)?),
        "dying-host" => crate::death::host(&call.argument::<String>(0)?),
        "idle-host" => crate::idle::children::host(&call.argument::<String>(0)?),
        "idle-terminals-host" => crate::idle::terminals::host(&call.argument::<String>(0)?),
        other => bail!("there is no call named {other}"),
    }
}
