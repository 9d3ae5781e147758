//! Sessions whose owner is killed, or does not answer: the handle says so, and nothing waits for ever.

use dsh_subprocess::{ErrorKind, MayHaveStarted, TerminalSize};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::session::Terminals;
use crate::fixture::{Case, Tier, alive, eventually, row, within};

#[track_caller]
fn signal_to(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).expect("it is there, and ours");
}

/// Its tree is ended by the warden above, which can tell nobody how.
#[test]
fn on_reaper_issue_3_a_session_whose_warden_is_killed_is_over_and_says_so() {
    let case = Case::new(Tier::Reaper);
    let mut session = case.ready(case.terminal_spec(case.probe(["terminal", "raw", "sleep"])));
    let [program] = session.announced("ready")[..] else {
        panic!("one program")
    };
    let stuck = session.write(vec![b'x'; 200_000]);
    signal_to(row(program).expect("it runs").parent, Signal::SIGKILL);
    let error = within(session.done()).expect_err("nobody knows how it ended");
    assert_eq!(error.kind(), ErrorKind::OwnershipLost, "{error}");
    session.rest();
    let error = within(stuck).expect_err("nobody reads");
    assert_eq!(error.kind(), ErrorKind::Exited, "{error}");
    let size = TerminalSize { rows: 5, cols: 6 };
    let error = within(session.resize(size)).expect_err("it is over");
    assert_eq!(error.kind(), ErrorKind::Exited, "{error}");
    let error = within(session.terminate()).expect_err("nobody can tell whether it is gone");
    assert_eq!(error.kind(), ErrorKind::OwnershipLost, "{error}");
    eventually("the program is ended", || !alive(program));
    let next = case.open(case.terminal_spec(case.probe(["exit", "6"])));
    assert_eq!(next.outcome().code(), Some(6), "the runtime goes on");
    case.assert_gone();
}

/// Nothing was started, and the next one finds everything in order once the warden goes on.
#[test]
fn on_reaper_issue_3_a_terminal_is_refused_while_the_runtime_warden_does_not_answer() {
    let case = Case::new(Tier::Reaper);
    let first = case.open(case.terminal_spec(case.probe(["sleep"])));
    let tree = row(first.pid().expect("it is known")).expect("it runs").parent;
    let runtime = row(tree).expect("it owns the program").parent;
    // A tree warden is made ahead of each launch. Those that are there are taken first.
    signal_to(runtime, Signal::SIGSTOP);
    let mut taken = Vec::new();
    let error = loop {
        match case.try_terminal(case.terminal_spec(case.probe(["sleep"]))) {
            Ok(terminal) => taken.push(terminal),
            Err(error) => break error,
        }
        assert!(taken.len() < 10, "somebody makes wardens");
    };
    signal_to(runtime, Signal::SIGCONT);
    assert_eq!(error.kind(), ErrorKind::OwnershipLost, "{error}");
    assert_eq!(error.started(), MayHaveStarted::No, "{error}");
    let next = case.open(case.terminal_spec(case.probe(["exit", "6"])));
    assert_eq!(next.outcome().code(), Some(6));
    first.end();
    for terminal in taken {
        within(terminal.terminate()).expect("the session ends");
    }
    case.assert_gone();
}
