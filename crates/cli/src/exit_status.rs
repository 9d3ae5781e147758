//! The status this process exits with.
//!
//! The numbers are those of `env`, `timeout` and the shells, so that a script which wraps a command in `dsh-subprocess
//! run` goes on reading the same status.

use dsh_subprocess::{ErrorKind, Outcome, SignalName};
use nix::libc;
use nix::sys::signal::Signal;

/// The command did not end in its time.
pub(crate) const TIMED_OUT: u8 = 124;
/// Our own failure, a bad option, a bad working directory.
pub(crate) const OWN_FAILURE: u8 = 125;
/// The command was found and cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub(crate) const NOT_FOUND: u8 = 127;
/// What a program gives that dies of SIGPIPE: whoever reads our output went away.
pub(crate) const OUTPUT_CLOSED: u8 = of_signal_number(Signal::SIGPIPE as u8);

/// Returns the status for a command that ended by itself.
pub(crate) fn of_outcome(outcome: &Outcome) -> u8 {
    match outcome {
        // A world with wider codes than ours: never let a failure wrap around to 0.
        Outcome::Exited { code } => u8::try_from(*code).unwrap_or(u8::MAX),
        Outcome::Signaled { signal, .. } => signal_number(signal).map_or(OWN_FAILURE, of_signal_number),
        Outcome::Unknown => OWN_FAILURE,
    }
}

/// Returns the status for a command that did not start, or whose end is not known.
pub(crate) fn of_error(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::ProgramNotFound => NOT_FOUND,
        // Too long an argument list is a failure of exec like the others, and shells give it the same status.
        ErrorKind::ProgramNotExecutable
        | ErrorKind::ProgramFormat
        | ErrorKind::InterpreterNotFound
        | ErrorKind::ArgumentTooLong => NOT_EXECUTABLE,
        _ => OWN_FAILURE,
    }
}

/// Returns the status that tells of signal `number`.
pub(crate) const fn of_signal_number(number: u8) -> u8 {
    128 + number
}

/// Finds this machine's number of a signal. The seam names signals, since other worlds number them otherwise.
pub(crate) fn signal_number(signal: &SignalName) -> Option<u8> {
    let name = signal.as_str();
    if let Ok(signal) = name.parse::<Signal>() {
        return u8::try_from(signal as i32).ok();
    }
    let from = |base: i32, offset: &str| {
        offset
            .parse::<i32>()
            .ok()
            .and_then(|offset| base.checked_add(offset))
    };
    let number = if name == "SIGRTMIN" {
        Some(libc::SIGRTMIN())
    } else if name == "SIGRTMAX" {
        Some(libc::SIGRTMAX())
    } else if let Some(offset) = name.strip_prefix("SIGRTMIN+") {
        from(libc::SIGRTMIN(), offset)
    } else if let Some(offset) = name.strip_prefix("SIGRTMAX") {
        from(libc::SIGRTMAX(), offset)
    } else {
        from(0, name.strip_prefix("SIG")?)
    };
    number
        .filter(|number| (1..=64).contains(number))
        .and_then(|number| u8::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signaled(name: &'static str) -> u8 {
        of_outcome(&Outcome::Signaled {
            signal: name.into(),
            core_dumped: false,
        })
    }

    #[test]
    fn a_code_is_passed_on_and_never_wraps_to_success() {
        assert_eq!(of_outcome(&Outcome::Exited { code: 0 }), 0);
        assert_eq!(of_outcome(&Outcome::Exited { code: 255 }), 255);
        assert_eq!(of_outcome(&Outcome::Exited { code: 256 }), 255);
        assert_eq!(of_outcome(&Outcome::Exited { code: u32::MAX }), 255);
    }

    #[test]
    fn a_signal_is_told_as_128_and_its_number() {
        assert_eq!(signaled("SIGHUP"), 129);
        assert_eq!(signaled("SIGKILL"), 137);
        assert_eq!(signaled("SIGSEGV"), 139);
        assert_eq!(signaled("SIGTERM"), 143);
        assert_eq!(OUTPUT_CLOSED, 141);
    }

    #[test]
    fn real_time_signals_have_numbers_too() {
        let base = u8::try_from(128 + libc::SIGRTMIN()).expect("signals are below 65");
        assert_eq!(signaled("SIGRTMIN"), base);
        assert_eq!(signaled("SIGRTMIN+3"), base + 3);
        assert_eq!(signaled("SIGRTMAX"), 192);
        assert_eq!(signaled("SIGRTMAX-1"), 191);
        assert_eq!(signaled("SIG33"), 161);
    }

    #[test]
    fn a_status_that_nobody_knows_is_our_own_failure() {
        assert_eq!(of_outcome(&Outcome::Unknown), 125);
        for strange in ["SIGNONSENSE", "SIG0", "SIG65", "SIGRTMIN+2147483647", "x", ""] {
            assert_eq!(signaled(strange), 125, "{strange}");
        }
    }

    #[test]
    fn what_kept_a_command_from_starting_decides_the_status() {
        assert_eq!(of_error(ErrorKind::ProgramNotFound), 127);
        for kind in [
            ErrorKind::ProgramNotExecutable,
            ErrorKind::ProgramFormat,
            ErrorKind::InterpreterNotFound,
            ErrorKind::ArgumentTooLong,
        ] {
            assert_eq!(of_error(kind), 126, "{kind:?}");
        }
        for kind in [
            ErrorKind::CwdNotFound,
            ErrorKind::CwdNotDirectory,
            ErrorKind::CwdNotSearchable,
            ErrorKind::InvalidSpec,
            ErrorKind::ResourceExhausted,
            ErrorKind::OwnershipUnavailable,
        ] {
            assert_eq!(of_error(kind), 125, "{kind:?}");
        }
    }
}
