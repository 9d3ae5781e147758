//! Calls about the terminal that a program is on.

use std::fs::{File, read_to_string};
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use nix::unistd::{getpgrp, getpid, getsid};
use rustix::stdio::stdin;
use rustix::termios::{
    LocalModes, OptionalActions, isatty, tcgetattr, tcgetpgrp, tcgetsid, tcgetwinsize, tcsetattr,
};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use crate::{Answer, announce, forever, stream, tree};

/// `terminal CALL…`: does what needs a terminal at standard input.
pub(crate) fn terminal(args: &[String]) -> Answer {
    let (call, rest) = args.split_first().ok_or("the call is missing")?;
    match call.as_str() {
        "size" => size(),
        "watch-size" => watch_size(),
        "facts" => facts(),
        "signals" => signals(),
        "lines" => lines(),
        "raw" => raw(rest),
        other => Err(format!("there is no call `{other}` for a terminal").into()),
    }
}

/// `size`: writes the rows and columns of the window, before anything else.
fn size() -> Answer {
    announce_size()?;
    Ok(ExitCode::SUCCESS)
}

/// `watch-size`: writes the size, and again for each `SIGWINCH`; stays.
fn watch_size() -> Answer {
    let mut changes = Signals::new([libc::SIGWINCH])?;
    announce_size()?;
    for _ in changes.forever() {
        announce_size()?;
    }
    forever()
}

fn announce_size() -> io::Result<()> {
    let size = tcgetwinsize(stdin())?;
    announce(format!("{} {}", size.ws_row, size.ws_col))
}

/// `facts`: writes one word for each that holds of `terminals` (standard input, output and error are terminals), `session`
/// (it leads its session and its group), `foreground` (its group has the terminal), `controlling` (the terminal is its
/// session's) and `signals` (none is ignored or blocked).
fn facts() -> Answer {
    let pid = getpid();
    let terminal = File::open("/dev/tty");
    let all = [
        (
            "terminals",
            isatty(io::stdin()) && isatty(io::stdout()) && isatty(io::stderr()),
        ),
        ("session", getsid(None)? == pid && getpgrp() == pid),
        (
            "foreground",
            tcgetpgrp(stdin())?.as_raw_nonzero().get() == pid.as_raw(),
        ),
        (
            "controlling",
            terminal.is_ok() && tcgetsid(stdin())?.as_raw_nonzero().get() == pid.as_raw(),
        ),
        ("signals", signals_are_default()?),
    ];
    let holding: Vec<&str> = all
        .iter()
        .filter_map(|&(fact, holds)| holds.then_some(fact))
        .collect();
    announce(holding.join(" "))?;
    Ok(ExitCode::SUCCESS)
}

/// Looks into `/proc/self/status` (`proc_pid_status(5)`) for signals that are ignored or blocked.
fn signals_are_default() -> io::Result<bool> {
    // The Rust runtime ignores this one before `main`.
    let own = 1_u64 << (libc::SIGPIPE - 1);
    let status = read_to_string("/proc/self/status")?;
    Ok(["SigIgn:", "SigBlk:"].iter().all(|name| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .is_some_and(|mask| mask & !own == 0)
    }))
}

/// `signals`: says `ready`, writes `got NAME` for each signal that a terminal's group may be sent, and stays.
fn signals() -> Answer {
    let mut signals = Signals::new([
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGTSTP,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGWINCH,
        libc::SIGCONT,
    ])?;
    announce("ready")?;
    for signal in signals.forever() {
        announce(format!(
            "got {}",
            signal_name(signal).unwrap_or("a signal without a name")
        ))?;
    }
    forever()
}

/// `lines`: turns the echo off, says `ready`, and copies its input, which comes line by line.
fn lines() -> Answer {
    let mut modes = tcgetattr(stdin())?;
    modes.local_modes -= LocalModes::ECHO;
    tcsetattr(stdin(), OptionalActions::Now, &modes)?;
    announce("ready")?;
    copy()
}

/// `raw CALL…`: lets every byte pass as it is, in both directions, says `ready`, and does the call.
fn raw(call: &[String]) -> Answer {
    let mut modes = tcgetattr(stdin())?;
    modes.make_raw();
    let (call, rest) = call.split_first().ok_or("the call is missing")?;
    match call.as_str() {
        "cat-after-resize" => {
            let mut changes = Signals::new([libc::SIGWINCH])?;
            tcsetattr(stdin(), OptionalActions::Now, &modes)?;
            announce("ready")?;
            changes.forever().next();
            copy()
        }
        call => {
            tcsetattr(stdin(), OptionalActions::Now, &modes)?;
            announce("ready")?;
            match call {
                "cat" => copy(),
                "pieces" => stream::pieces(rest),
                "sleep" => tree::sleep(),
                other => Err(format!("there is no call `{other}` for a raw terminal").into()),
            }
        }
    }
}

/// Copies standard input to standard output as it comes: the library's own output would wait for the end of a line.
fn copy() -> Answer {
    let mut input = io::stdin().lock();
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        output.write_all(bytes)?;
        let count = bytes.len();
        input.consume(count);
    }
}
