//! `LocalRuntime::kill`: one tree, at once.

use dsh_subprocess::{Process, SignalName, SubprocessRuntime};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Case, Tier, alive, announced, finished, on_each_tier, within};

on_each_tier! {
    a_kill_ends_every_member_of_one_tree_and_no_other,
    a_kill_of_a_tree_that_is_gone_does_nothing,
    a_kill_is_the_owning_runtimes_alone,
}

#[track_caller]
fn assert_killed(process: &Process) {
    let outcome = finished(process);
    assert_eq!(outcome.signal().map(SignalName::as_str), Some("SIGKILL"));
    assert!(within(process.wait_for_exit(&CancellationToken::new())).expect("it is gone"));
}

/// Members that ignore `SIGTERM`, with a grace that nobody waits for.
fn a_kill_ends_every_member_of_one_tree_and_no_other(tier: Tier) {
    let case = Case::new(tier);
    let killed = case.spawn(case.probe(["tree", "3", "--depth", "2"]));
    let spared = case.spawn(case.probe(["tree", "2"]));
    announced(&killed, "ready");
    let members = announced(&spared, "ready");
    case.runtime.kill(&killed);
    assert_killed(&killed);
    assert!(members.iter().all(|&member| alive(member)));
    let stubborn = case.spawn(case.probe(["ignore-term"]));
    announced(&stubborn, "ready");
    // It has its grace, which the kill takes away.
    let termination = stubborn.terminate();
    case.runtime.kill(&stubborn);
    within(termination).expect("it ends");
    assert_killed(&stubborn);
    within(spared.terminate()).expect("it ends");
    case.assert_gone();
}

fn a_kill_of_a_tree_that_is_gone_does_nothing(tier: Tier) {
    let case = Case::new(tier);
    let (outcome, process) = case.run(case.probe(["exit", "3"]));
    case.runtime.kill(&process);
    assert_eq!(finished(&process), outcome);
    let failed = case
        .runtime
        .spawn(case.spec(["/nonexistent"]))
        .expect("the world is at fault");
    case.runtime.kill(&failed);
    within(failed.done()).expect_err("it could not start");
    within(case.runtime.dispose()).expect("nothing is left");
    case.runtime.kill(&process);
}

/// A handle of another runtime is left alone; each reference to the owner may kill.
fn a_kill_is_the_owning_runtimes_alone(tier: Tier) {
    let (case, stranger) = (Case::new(tier), Case::new(Tier::ProcessGroup));
    let process = case.spawn(case.probe(["sleep"]));
    let [pid] = announced(&process, "ready")[..] else {
        panic!("one process is ready");
    };
    stranger.runtime.kill(&process);
    stranger.runtime.kill_all();
    assert!(alive(pid));
    case.runtime.with_ambient(Vec::new()).kill(&process);
    assert_killed(&process);
    case.assert_gone();
}
