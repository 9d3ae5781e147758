//! Signals that this process gets in the command's place.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{getpid, getsid};

use crate::signals;

/// Those that are passed on: what a process manager, a shell or a person sends to a program that is to react.
///
/// The rest keeps its usual effect on this process. A stop (`SIGTSTP`, `SIGTTIN`, `SIGTTOU`) must stop it together with the
/// command's group, or the shell's job control would wait for it; a fault (`SIGSEGV`, …) is its own.
const PASSED_ON: [Signal; 10] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGTERM,
    Signal::SIGCONT,
    Signal::SIGWINCH,
    Signal::SIGPWR,
];

/// `si_code` of what the kernel itself sends (sigaction(2)).
const SI_KERNEL: i32 = 0x80;

/// The signals that were not ignored, from [`take`](Self::take) on until this process ends. They have no effect of their
/// own any more.
pub(super) struct Signals {
    descriptor: SignalFd,
    leads_session: bool,
}

/// One that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    number: i32,
    sender: Sender,
    /// Whether this process leads its session.
    leads_session: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Kernel,
    /// 0 where it is not in this pid namespace.
    Process(u32),
}

impl Signals {
    /// Takes them over. They are blocked on this thread, and so on every thread that it starts; the command, whose mask is
    /// cleared, is not touched.
    ///
    /// One that was ignored when this process started stays ignored: that is how `nohup` asks for it. (Blocked, it would
    /// be queued in spite of that.)
    ///
    /// # Errors
    ///
    /// There is no descriptor left.
    pub(super) fn take() -> io::Result<Self> {
        let ignored = signals::ignored();
        let taken: SigSet = PASSED_ON
            .into_iter()
            .filter(|&signal| !ignored.contains(signal))
            .collect();
        taken.thread_block()?;
        Ok(Self {
            descriptor: SignalFd::with_flags(&taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?,
            // 0 where the session's leader is in another pid namespace.
            leads_session: getsid(None).is_ok_and(|session| session == getpid()),
        })
    }

    /// Returns the next one that has arrived. `None` when there is none now.
    pub(super) fn next(&self) -> Option<Received> {
        // It can fail for want of kernel memory; the signal stays where it is.
        let received = self.descriptor.read_signal().ok().flatten()?;
        Some(Received {
            number: received.ssi_signo.cast_signed(),
            sender: match received.ssi_code {
                SI_KERNEL => Sender::Kernel,
                _ => Sender::Process(received.ssi_pid),
            },
            leads_session: self.leads_session,
        })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Received {
    pub(super) fn number(self) -> i32 {
        self.number
    }

    /// Returns the process that sent it, where that can be told.
    pub(super) fn sender(self) -> Option<u32> {
        match self.sender {
            Sender::Kernel | Sender::Process(0) => None,
            Sender::Process(pid) => Some(pid),
        }
    }

    /// Tells whether the kernel sent it to this process's whole group, and so to the command: what was typed at the
    /// terminal (`SIGINT`, `SIGQUIT`), the terminal's new size, and its end.
    ///
    /// The end of a terminal is told to the leader of its session alone. A timer that was set before this program was
    /// executed is this process's alone, too.
    pub(super) fn reached_the_group(self) -> bool {
        let typed = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGWINCH];
        let end = [Signal::SIGHUP, Signal::SIGCONT];
        let is_one = |of: &[Signal]| of.iter().any(|&signal| signal as i32 == self.number);
        self.sender == Sender::Kernel && (is_one(&typed) || is_one(&end) && !self.leads_session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(signal: Signal, sender: Sender, leads_session: bool) -> Received {
        Received {
            number: signal as i32,
            sender,
            leads_session,
        }
    }

    #[test]
    fn what_was_typed_has_reached_the_command() {
        for leads in [false, true] {
            for signal in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGWINCH] {
                assert!(received(signal, Sender::Kernel, leads).reached_the_group());
                assert!(!received(signal, Sender::Process(7), leads).reached_the_group());
            }
        }
    }

    #[test]
    fn the_end_of_a_terminal_has_reached_the_command_unless_we_lead_the_session() {
        assert!(received(Signal::SIGHUP, Sender::Kernel, false).reached_the_group());
        assert!(!received(Signal::SIGHUP, Sender::Kernel, true).reached_the_group());
        assert!(!received(Signal::SIGHUP, Sender::Process(0), false).reached_the_group());
    }

    #[test]
    fn a_timer_that_was_set_before_is_ours_to_pass_on() {
        assert!(!received(Signal::SIGALRM, Sender::Kernel, false).reached_the_group());
    }

    #[test]
    fn a_sender_without_a_number_here_is_nobody() {
        assert_eq!(
            received(Signal::SIGTERM, Sender::Process(0), false).sender(),
            None
        );
        assert_eq!(received(Signal::SIGTERM, Sender::Kernel, false).sender(), None);
        assert_eq!(
            received(Signal::SIGTERM, Sender::Process(7), false).sender(),
            Some(7)
        );
    }
}
