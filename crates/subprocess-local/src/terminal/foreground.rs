//! Who has a terminal.

use std::sync::Arc;

use dsh_subprocess::{Error, ErrorKind, Foreground, InputWaiting, MayHaveStarted, TerminalSignal};
use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::foreground::{self, InputWaiting as Seen};
use dsh_subprocess_sys::pidfd::{self, Pid, Signal};
use dsh_subprocess_sys::{pty, table};

use super::Master;
use crate::owner;
use crate::tree::Tree;

/// Looks who has the terminal. It reads the process table.
pub(super) fn inspect(master: &Arc<Master>, tree: &Tree) -> Result<Option<Foreground>, Error> {
    let Some(group) = group(master, "inspect")? else {
        return Ok(None);
    };
    let members = members(tree, group);
    let input = match tree.leader() {
        Some(session) => match foreground::input_waiting(&master.id, session, &members) {
            // The proof is one only while the group has the terminal.
            Seen::Proven if self::group(master, "inspect")? != Some(group) => InputWaiting::NotWaiting,
            Seen::Proven => InputWaiting::Proven,
            Seen::NotWaiting if members.is_empty() => {
                InputWaiting::Unknown("no member of the foreground group could be seen".to_owned())
            }
            Seen::NotWaiting => InputWaiting::NotWaiting,
            Seen::Unknown(why) => InputWaiting::Unknown(why.to_string()),
        },
        None => InputWaiting::Unknown("the terminal's program is not known".to_owned()),
    };
    // The leader first; but it may be a zombie that its parent has not taken leave of yet.
    let leader = members.iter().filter(|member| **member == group);
    let named = leader
        .chain(&members)
        .find_map(|member| tree.machine.name(vec![*member]).pop());
    Ok(Some(Foreground::new(owner::number(group), input, named)))
}

/// Sends a signal to the group that has the terminal, and returns its id.
pub(super) fn signal(master: &Master, tree: &Tree, signal: TerminalSignal) -> Result<u32, Error> {
    let Some(group) = group(master, "signal")? else {
        return Err(error(
            ErrorKind::NoForeground,
            "no process group has the terminal".to_owned(),
        ));
    };
    let named = match signal {
        TerminalSignal::Interrupt => Signal::INT,
        TerminalSignal::Terminate => Signal::TERM,
        TerminalSignal::Kill => Signal::KILL,
        TerminalSignal::Stop => Signal::TSTP,
        TerminalSignal::HangUp => Signal::HUP,
        TerminalSignal::Quit => Signal::QUIT,
        TerminalSignal::WindowChange => Signal::WINCH,
        TerminalSignal::Continue => Signal::CONT,
        other => {
            return Err(error(
                ErrorKind::Unsupported,
                format!("{} is not sent to a foreground group here", other.name()),
            ));
        }
    };
    if signal == TerminalSignal::Kill && tree.leader() == Some(group) {
        return Err(error(
            ErrorKind::OwnGroup,
            format!(
                "the foreground group {} is the terminal's own program: terminate the session instead",
                owner::number(group)
            ),
        ));
    }
    let sent = match signal {
        // Sent by the terminal itself, to whichever group has it then.
        TerminalSignal::Interrupt | TerminalSignal::Quit | TerminalSignal::Stop => {
            match master.with("signal", |fd| pty::signal_foreground(fd, named))? {
                // Kernels that only look like Linux do not all have it.
                Err(Errno::NOTTY | Errno::INVAL | Errno::NOSYS) => by_descriptor(tree, group, named),
                sent => sent,
            }
        }
        _ => by_descriptor(tree, group, named),
    };
    match sent {
        Ok(()) => Ok(owner::number(group)),
        Err(Errno::SRCH) => Err(error(
            ErrorKind::NoForeground,
            format!(
                "the process group {} that had the terminal has ended",
                owner::number(group)
            ),
        )),
        Err(Errno::PERM) => Err(error(
            ErrorKind::PermissionDenied,
            format!(
                "no member of the foreground group {} may be sent {}",
                owner::number(group),
                signal.name()
            ),
        )),
        Err(errno) => Err(error(
            ErrorKind::Os,
            format!("{} could not be sent: {errno}", signal.name()),
        )),
    }
}

/// Signals the members of a group. A number is used for nothing: it may be a stranger's when it comes to that.
fn by_descriptor(tree: &Tree, group: Pid, signal: Signal) -> Result<(), Errno> {
    // All at once, those included that are being born, where the leader lives and the kernel can.
    if let Ok(leader) = pidfd::open(group)
        && members(tree, group).contains(&group)
        && pidfd::send_to_group(&leader, signal).is_ok()
    {
        return Ok(());
    }
    let mut answer = Err(Errno::SRCH);
    for pid in members(tree, group) {
        let Ok(member) = pidfd::open(pid) else { continue };
        // Looked at while it is held.
        if table::group_of(pid) == Some(group) {
            match pidfd::send(&member, signal) {
                Ok(()) => answer = Ok(()),
                Err(Errno::SRCH) => {}
                Err(errno) => answer = answer.or(Err(errno)),
            }
        }
    }
    answer
}

fn group(master: &Master, operation: &'static str) -> Result<Option<Pid>, Error> {
    let asked = master.with(operation, |fd| pty::foreground_group(fd))?;
    asked.map_err(|errno| {
        Error::new(
            ErrorKind::Os,
            operation,
            format!("the terminal's foreground group cannot be told: {errno}"),
        )
        .with_started(MayHaveStarted::Yes)
    })
}

/// The processes of the tree that are in a group. Whether its leader lives does not matter.
fn members(tree: &Tree, group: Pid) -> Vec<Pid> {
    let mut pids = tree.pids_by_descent();
    pids.retain(|pid| table::group_of(*pid) == Some(group));
    pids
}

fn error(kind: ErrorKind, message: String) -> Error {
    Error::new(kind, "signal", message).with_started(MayHaveStarted::Yes)
}
