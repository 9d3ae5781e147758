//! Interactive shells, which ignore `SIGTERM`: they end by the hang-up of their terminal, and with it as they do at a user's.

use std::fs;
use std::path::Path;

use dsh_subprocess::{InputWaiting, TerminalSignal};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::session::{Session, Terminals, open_gate, signal};
use crate::fixture::{Case, Tier, alive, eventually, on_each_tier, row, within};

on_each_tier! {
    item_93_an_interactive_shell_ends_without_the_kill_and_runs_its_exit_trap,
    item_93_an_interactive_shell_ends_with_the_jobs_it_has,
    item_93_a_shell_at_a_fresh_prompt_ends_without_the_kill,
    issue_4_a_foreground_group_whose_leader_is_dead_is_found,
    item_97_jobs_of_an_interactive_shell_end_with_it,
    o27_c_a_shell_whose_directory_was_removed_answers,
}

/// An interactive bash that reads nobody's settings, at its prompt.
#[track_caller]
fn at_the_prompt(case: &Case, home: &Path) -> Session {
    let mut spec = case.terminal_spec(case.spec(["/bin/bash", "--norc", "-i"]));
    spec.cwd = home.into();
    spec.env.insert("PS1".into(), Some("prompt> ".into()));
    spec.env
        .insert("HISTFILE".into(), Some(home.join("history").into()));
    let mut session = case.open(spec);
    session.until("prompt> ");
    session
}

/// Waits until the shell waits for input.
#[track_caller]
fn wait_for_input(session: &Session) {
    eventually("the shell waits for input", || {
        within(session.inspect_foreground())
            .expect("the session lives")
            .is_some_and(|foreground| foreground.input.is_proven())
    });
}

/// Types a command, and waits for the prompt after it.
#[track_caller]
fn run(session: &mut Session, command: &str) -> String {
    session.types(format!("{command}\n"));
    session.until("prompt> ")
}

fn item_93_an_interactive_shell_ends_without_the_kill_and_runs_its_exit_trap(tier: Tier) {
    let case = Case::new(tier);
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut session = at_the_prompt(&case, home.path());
    run(&mut session, "trap 'echo bye >farewell' EXIT");
    wait_for_input(&session);
    // The grace is 300 s.
    session.end();
    case.assert_gone();
    assert_ne!(signal(&session.outcome()), Some("SIGKILL"));
    let farewell = fs::read_to_string(home.path().join("farewell")).expect("the trap has run");
    assert_eq!(farewell, "bye\n");
    let history = fs::read_to_string(home.path().join("history")).expect("the history is saved");
    assert!(history.contains("farewell"), "{history}");
}

/// It has printed its prompt, and does not read yet: what it is told then is not lost on it.
fn item_93_a_shell_at_a_fresh_prompt_ends_without_the_kill(tier: Tier) {
    let case = Case::new(tier);
    let home = tempfile::tempdir().expect("a temporary directory");
    for _ in 0..40 {
        let session = at_the_prompt(&case, home.path());
        session.end();
        assert_ne!(signal(&session.outcome()), Some("SIGKILL"));
    }
    case.assert_gone();
}

/// In the background, stopped, and in the foreground.
fn item_93_an_interactive_shell_ends_with_the_jobs_it_has(tier: Tier) {
    let case = Case::new(tier);
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut session = at_the_prompt(&case, home.path());
    run(&mut session, "sleep 300 &");
    session.types("\"$PROBE\" sleep\n");
    session.until("ready ");
    session.types("\u{1a}");
    session.until("Stopped");
    session.until("prompt> ");
    session.types("\"$PROBE\" sleep\n");
    session.until("ready ");
    assert!(case.living().len() >= 4);
    session.end();
    case.assert_gone();
    assert_ne!(signal(&session.outcome()), Some("SIGKILL"));
}

/// The first command of a pipeline leads its group. It ends first; the shell takes its status when it runs again.
fn issue_4_a_foreground_group_whose_leader_is_dead_is_found(tier: Tier) {
    let case = Case::new(tier);
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut session = at_the_prompt(&case, home.path());
    run(&mut session, "mkfifo gate");
    session.types("sh -c 'read go <gate' | \"$PROBE\" sleep\n");
    let [sleeper] = session.announced("ready")[..] else {
        panic!("one member")
    };
    let group = row(sleeper).expect("it runs").group;
    assert_ne!(group, sleeper);
    let shell = Pid::from_raw(session.pid().expect("it is known").cast_signed());
    kill(shell, Signal::SIGSTOP).expect("it is ours");
    eventually("the shell has stopped", || {
        session.pid().and_then(row).is_some_and(|row| row.state == 'T')
    });
    open_gate(&home.path().join("gate"), "go");
    eventually("the leader is a zombie", || {
        row(group).is_some_and(|row| row.state == 'Z')
    });
    assert_found(&session, group, sleeper);
    kill(shell, Signal::SIGCONT).expect("it is ours");
    eventually("the shell has taken its status", || row(group).is_none());
    assert_found(&session, group, sleeper);
    let killed = within(session.signal_foreground(TerminalSignal::Kill)).expect("the job lives");
    assert_eq!(killed, group);
    session.until("prompt> ");
    assert!(!alive(sleeper));
    wait_for_input(&session);
    session.end();
    case.assert_gone();
}

#[track_caller]
fn assert_found(session: &Session, group: u32, member: u32) {
    let foreground = within(session.inspect_foreground()).expect("the session lives");
    let foreground = foreground.expect("a group has the terminal");
    assert_eq!(foreground.process_group_id, group);
    assert_eq!(foreground.member.and_then(|member| member.pid), Some(member));
    assert_eq!(foreground.input, InputWaiting::NotWaiting);
}

fn item_97_jobs_of_an_interactive_shell_end_with_it(tier: Tier) {
    let case = Case::new(tier);
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut session = at_the_prompt(&case, home.path());
    run(&mut session, "sleep 300 &");
    run(&mut session, "sleep 300 & disown");
    session.types("exit 7\n");
    assert_eq!(session.outcome().code(), Some(7));
    session.gone();
    case.assert_gone();
}

/// It tells of the missing directory, and goes on in another one.
fn o27_c_a_shell_whose_directory_was_removed_answers(tier: Tier) {
    let case = Case::new(tier);
    let home = tempfile::tempdir().expect("a temporary directory");
    let (work, other) = (home.path().join("work"), home.path().join("other"));
    fs::create_dir(&work).expect("it is ours");
    fs::create_dir(&other).expect("it is ours");
    let mut session = at_the_prompt(&case, &work);
    fs::remove_dir_all(&work).expect("it is ours");
    let answer = run(&mut session, "ls -d \"$PWD\"; echo alive=$?");
    assert!(
        answer.contains("No such file") && answer.contains("alive=2"),
        "{answer}"
    );
    let answer = run(&mut session, &format!("cd '{}'; pwd -P", other.display()));
    let there = other.canonicalize().expect("it is there");
    assert!(answer.contains(&format!("\n{}\r\n", there.display())), "{answer}");
    wait_for_input(&session);
    session.end();
    case.assert_gone();
}
