//! `probe`: the program that the process tests spawn, one call per behaviour.
//!
//! A call that a test must wait for says so itself: it writes one line (`ready`, and the pids it speaks of) to standard
//! output. No call sleeps in order to wait for another; where time passes, the time is the behaviour asked for.
#![forbid(unsafe_code)]

mod adopt;
mod crowd;
mod facts;
mod gate;
mod host;
mod remains;
mod stream;
mod stubborn;
mod terminal;
mod tree;
mod words;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

/// How a call ends: its exit code, or a failure of the probe itself (which is told on stderr, with exit code 99).
type Answer = Result<ExitCode, Box<dyn Error>>;

/// The exit code of a probe that could not do what it was asked.
const BROKEN: u8 = 99;

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.is_empty() {
        eprintln!("usage: probe CALL [ARGUMENT…]");
        return ExitCode::from(BROKEN);
    }
    let call = args.remove(0);
    match run(&call.to_string_lossy(), args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("probe {}: {error}", call.to_string_lossy());
            ExitCode::from(BROKEN)
        }
    }
}

fn run(call: &str, raw: Vec<OsString>) -> Answer {
    // These calls are about bytes that need not be text.
    match call {
        "argv" => return words::argv(&raw),
        "echo" => return words::echo(&raw),
        _ => {}
    }
    let args = raw
        .into_iter()
        .map(OsString::into_string)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|argument| format!("argument {} is not UTF-8", argument.display()))?;
    match call {
        "exit" => words::exit(&args),
        "env" => words::env(),
        "pwd" => words::pwd(),
        "cat" => words::cat(),
        "fds" => facts::descriptors(),
        "ids" => facts::ids(),
        "sleep" => tree::sleep(),
        "tree" => tree::tree(&args),
        "tree-node" => tree::node(&args),
        "hold-stdout" => tree::hold_stdout(&args),
        "setsid-escape" => tree::escape(&args),
        "escape-step" => tree::escape_step(&args),
        "escaped" => tree::escaped(&args),
        "new-group" => tree::new_group(),
        "stop-member" => tree::stop_member(),
        "stop-self" => tree::stop_self(),
        "threads" => tree::threads(&args),
        "linger" => tree::linger(&args),
        "nap" => tree::nap(&args),
        "refork" => tree::refork(&args),
        "chains" => tree::chains(&args),
        "crowd" => crowd::crowd(&args),
        "witness" => crowd::witness(&args),
        "ignore-term" => stubborn::ignore_term(),
        "trap-term" => stubborn::trap_term(&args),
        "become-root" => stubborn::become_root(&args),
        "main-thread-exits" => remains::main_thread_exits(),
        "zombie-behind" => remains::zombie_behind(),
        "hold-dead" => remains::hold_dead(&args),
        "chatter" => stream::chatter(),
        "flood" => stream::flood(&args),
        "chunks" => stream::chunks(&args),
        "pieces" => stream::pieces(&args),
        "terminal" => terminal::terminal(&args),
        "gate" => gate::gate(&args),
        "adopt" => adopt::adopt(&args),
        "host" => host::host(args),
        other => Err(format!("there is no call named `{other}`").into()),
    }
}

/// Writes one line for whoever waits, at once. That nobody waits any more changes nothing for the rest of the call.
fn announce(line: impl AsRef<str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // One write for the whole line: other processes write to the same pipe.
    match out
        .write_all(format!("{}\n", line.as_ref()).as_bytes())
        .and_then(|()| out.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Returns the argument at `index` as a number.
fn number<T: std::str::FromStr>(args: &[String], index: usize, what: &str) -> Result<T, Box<dyn Error>> {
    let text = args.get(index).ok_or_else(|| format!("{what} is missing"))?;
    text.parse()
        .map_err(|_| format!("{what} is `{text}`: it must be a number").into())
}

/// Waits for a signal that ends the process, for ever.
fn forever() -> ! {
    loop {
        nix::unistd::pause();
    }
}
