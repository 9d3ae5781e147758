//! Ending as the command ended.

use dsh_subprocess::Outcome;
use nix::sys::prctl;
use signal_hook::low_level;

use crate::exit_status;

/// Ends this process by the signal that ended the command. Returns what to exit with where the command exited by itself, or
/// where the signal cannot end this process.
pub(crate) fn mirror(outcome: &Outcome) -> u8 {
    if let Outcome::Signaled { signal, .. } = outcome
        && let Some(number) = exit_status::signal_number(signal)
        // No signal that it sends itself ends the first process of a pid namespace (`pid_namespaces(7)`).
        && std::process::id() != 1
    {
        // The core to look at is the command's.
        let _ = prctl::set_dumpable(false);
        // It returns for a signal that ends nobody, or that has no name.
        let _ = low_level::emulate_default_handler(number.into());
    }
    exit_status::of_outcome(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_signal_is_an_exit_status() {
        assert_eq!(mirror(&Outcome::Exited { code: 7 }), 7);
        assert_eq!(mirror(&Outcome::Unknown), 125);
    }

    #[test]
    fn a_signal_without_a_default_action_of_its_own_is_told_by_the_status() {
        let outcome = Outcome::Signaled {
            signal: "SIGRTMIN+3".into(),
            core_dumped: false,
        };
        assert_eq!(mirror(&outcome), exit_status::of_outcome(&outcome));
    }
}
