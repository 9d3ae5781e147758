//! A call that shows whether a command has left anybody behind.

use std::process::{Command, ExitCode};

use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::wait::{WaitStatus, wait};

use crate::{Answer, announce};

/// `adopt COMMAND…`: runs another command and says `adopted PID` and how it ended, `exited CODE` or `ended SIGNAL`; then it
/// waits for every process that descends from it, and says `alone`.
///
/// Whoever loses its parent becomes this process's child (prctl(2), `PR_SET_CHILD_SUBREAPER`), whatever session, group or
/// daemon it has made of itself. So the kernel tells that nobody is left, and nobody has to look.
pub(crate) fn adopt(args: &[String]) -> Answer {
    let (program, arguments) = args.split_first().ok_or("the command is missing")?;
    set_child_subreaper(true)?;
    let command = Command::new(program).args(arguments).spawn()?;
    let pid = i32::try_from(command.id())?;
    announce(format!("adopted {pid}"))?;
    loop {
        match wait() {
            Ok(WaitStatus::Exited(child, code)) if child.as_raw() == pid => {
                announce(format!("exited {code}"))?;
            }
            Ok(WaitStatus::Signaled(child, signal, _)) if child.as_raw() == pid => {
                announce(format!("ended {signal}"))?;
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::ECHILD) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    announce("alone")?;
    Ok(ExitCode::SUCCESS)
}
