//! Calls of members that are hard to be rid of, and that write down what comes to them.

use std::fs::File;
use std::io::Write;
use std::process::{Command, ExitCode};

use nix::sys::signal::{Signal, raise};
use nix::unistd::setsid;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::raw::WithRawSiginfo;

use crate::{Answer, announce};

/// More than a host's window of 1,000 bytes holds.
const OVERFLOW: usize = 5000;

/// `crowd LOG`: starts a child, a leader of a session, a daemon by a double fork and a member that stops itself, all of them
/// witnesses, writes more than a small window holds, and is a witness itself.
pub(crate) fn crowd(args: &[String]) -> Answer {
    let log = args.first().ok_or("the log is missing")?;
    for member in [
        &["child"] as &[&str],
        &["session", "--setsid"],
        &["daemon", "--daemon"],
        &["stopped", "--stop"],
    ] {
        Command::new("/proc/self/exe")
            .args(["witness", log])
            .args(member)
            .spawn()?;
    }
    announce("x".repeat(OVERFLOW))?;
    witness(&[log.clone(), "target".to_owned()])
}

/// `witness LOG NAME [--setsid | --daemon | --stop]`: adds the line `NAME ready PID` to the log, and `NAME TERM` for each
/// `SIGTERM` that comes; only `SIGKILL` ends it. It leads a session of its own, is a child that outlives such a leader, or
/// stops once it is ready.
pub(crate) fn witness(args: &[String]) -> Answer {
    let [log, name, manner @ ..] = args else {
        return Err("the log and a name are wanted".into());
    };
    let manner = manner.first().map(String::as_str);
    if matches!(manner, Some("--setsid" | "--daemon")) {
        setsid()?;
    }
    if manner == Some("--daemon") {
        Command::new("/proc/self/exe")
            .args(["witness", log, name])
            .spawn()?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut log = File::options().append(true).create(true).open(log)?;
    // This kind keeps two signals in a row apart.
    let mut signals = SignalsInfo::<WithRawSiginfo>::new([libc::SIGTERM])?;
    let own = std::process::id();
    log.write_all(format!("{name} ready {own}\n").as_bytes())?;
    if manner == Some("--stop") {
        raise(Signal::SIGSTOP)?;
    }
    for _ in signals.forever() {
        log.write_all(format!("{name} TERM {own}\n").as_bytes())?;
    }
    Err("the signals ended".into())
}
