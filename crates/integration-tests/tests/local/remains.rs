//! Processes that are half dead: what the table shows of them is not what they are.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use dsh_subprocess::{Outcome, SignalName, Stdin};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio_util::sync::CancellationToken;

use crate::cost::assert_idle;
use crate::fixture::{
    Case, Host, Tier, alive, announced, eventually, finished, line_of, on_each_tier, row, within,
};

on_each_tier! {
    threads_are_no_members,
    a_target_whose_first_thread_has_ended_is_alive,
    a_member_whose_first_thread_has_ended_is_alive,
}

/// Tells whether any thread of a process is left; that the first one is a zombie says nothing of the others.
fn has_threads(pid: u32) -> bool {
    std::fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() > 1)
}

/// A thread has a number of its own in the same space as processes; it is not one. Neither before nor after the target's
/// end.
fn threads_are_no_members(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.bash(r#""$PROBE" threads 7 & read -r end"#);
    spec.stdin = Stdin::Pipe;
    spec.drain = std::time::Duration::ZERO;
    let mut process = case.spawn(spec);
    let input = process.stdin();
    let [member] = announced(&process, "ready")[..] else {
        panic!("one pid")
    };
    let members = || -> Vec<u32> {
        let members = within(process.members()).expect("the tree can be read");
        members.iter().filter_map(|member| member.pid).collect()
    };
    assert_eq!(members(), [process.pid().expect("it is known"), member]);
    drop(input);
    finished(&process);
    assert_eq!(members(), [member]);
    within(process.terminate()).expect("the tree ends");
    let ended = within(process.ended()).expect("it is known");
    assert_eq!(
        ended.iter().filter_map(|member| member.pid).collect::<Vec<_>>(),
        [member]
    );
    case.assert_gone();
}

/// The target goes on on another thread: it is a member, not done, and obeys `SIGTERM`.
fn a_target_whose_first_thread_has_ended_is_alive(tier: Tier) {
    let case = Case::new(tier);
    let process = case.spawn(case.probe(["main-thread-exits"]));
    let [pid] = announced(&process, "ready")[..] else {
        panic!("one pid")
    };
    assert_eq!(row(pid).map(|row| row.state), Some('Z'));
    let members = within(process.members()).expect("the tree can be read");
    assert_eq!(
        members.iter().filter_map(|member| member.pid).collect::<Vec<_>>(),
        [pid]
    );
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    assert!(!within(process.wait_for_exit(&cancelled)).expect("it is only cancelled"));
    // The grace is 300 s.
    within(process.terminate()).expect("the tree ends");
    assert_eq!(
        finished(&process),
        Outcome::Signaled {
            signal: SignalName::from("SIGTERM"),
            core_dumped: false,
        }
    );
    assert!(!has_threads(pid));
}

/// The same for a member that outlives the target: it keeps the tree open, is named, and is ended.
fn a_member_whose_first_thread_has_ended_is_alive(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.bash(r#""$PROBE" main-thread-exits & read -r end"#);
    spec.stdin = Stdin::Pipe;
    spec.drain = std::time::Duration::ZERO;
    let mut process = case.spawn(spec);
    let input = process.stdin();
    let [member] = announced(&process, "ready")[..] else {
        panic!("one pid")
    };
    drop(input);
    finished(&process);
    let members = within(process.members()).expect("the tree can be read");
    assert_eq!(
        members.iter().filter_map(|member| member.pid).collect::<Vec<_>>(),
        [member]
    );
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    assert!(!within(process.wait_for_exit(&cancelled)).expect("it is only cancelled"));
    within(process.terminate()).expect("the tree ends");
    assert!(!has_threads(member));
    let ended = within(process.ended()).expect("it is known");
    assert_eq!(
        ended.iter().filter_map(|member| member.pid).collect::<Vec<_>>(),
        [member]
    );
}

/// A zombie whose parent has left and never looks is nobody: the tree is gone with its target, unasked.
#[test]
fn item_70_a_group_of_zombies_is_gone() {
    let case = Case::new(Tier::ProcessGroup);
    let mut spec = case.bash(r#""$PROBE" zombie-behind & read -r end"#);
    spec.stdin = Stdin::Pipe;
    let mut process = case.spawn(spec);
    let input = process.stdin();
    let line = line_of(&process, "zombie");
    let [zombie, parent] = line
        .split(' ')
        .map(|pid| pid.parse().expect("a pid"))
        .collect::<Vec<u32>>()[..]
    else {
        panic!("two pids: {line}")
    };
    let there = row(zombie).expect("nobody took its status");
    assert_eq!((there.state, Some(there.session)), ('Z', process.pid()));
    drop(input);
    finished(&process);
    assert!(within(process.wait_for_exit(&CancellationToken::new())).expect("the tree is gone"));
    assert!(
        within(process.members())
            .expect("the table can be read")
            .is_empty()
    );
    assert_eq!(row(zombie).map(|row| row.state), Some('Z'), "it is still there");
    assert!(alive(parent), "it is in a session of its own");
}

/// A debugger that does not look keeps a dead target's status to itself. The host waits for it, and does not spin.
fn a_dead_target_that_a_tracer_holds_costs_nothing(tier: Tier) {
    let mut host = Host::new(tier).start(["watch", env!("CARGO_BIN_EXE_probe"), "sleep"]);
    let target: u32 = host.wait_for("ready").parse().expect("a pid");
    let mut tracer = Command::new(env!("CARGO_BIN_EXE_probe"))
        .args(["hold-dead", &target.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the probe starts");
    let mut line = String::new();
    BufReader::new(tracer.stdout.take().expect("it is piped"))
        .read_line(&mut line)
        .expect("the probe writes text");
    assert_eq!(line, "ready\n");
    kill(Pid::from_raw(target.cast_signed()), Signal::SIGKILL).expect("it is ours");
    eventually("the target is dead", || {
        row(target).is_some_and(|row| row.state == 'Z')
    });
    assert_idle(&host);
    drop(tracer.stdin.take());
    assert!(tracer.wait().expect("it is a child of this process").success());
    assert_eq!(host.wait_for("outcome"), "ended by SIGKILL");
    assert_eq!(host.wait_for("gone"), "true");
    host.end();
}

#[test]
fn as_root_on_cgroup_a_dead_target_that_a_tracer_holds_costs_nothing() {
    a_dead_target_that_a_tracer_holds_costs_nothing(Tier::Cgroup);
}

#[test]
fn as_root_on_process_group_a_dead_target_that_a_tracer_holds_costs_nothing() {
    a_dead_target_that_a_tracer_holds_costs_nothing(Tier::ProcessGroup);
}
