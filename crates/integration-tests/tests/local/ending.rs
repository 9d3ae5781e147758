//! Ending a whole tree: cases O3 to O7, and what the reference left alive (items 60 and 73).

use std::time::{Duration, Instant};

use dsh_subprocess::{Outcome, SignalName, SubprocessRuntime};
use tokio_util::sync::CancellationToken;

use crate::fixture::{
    BOUND, Case, Tier, alive, announced, finished, line_of, on_each_tier, row, text, within,
};

fn terminated() -> Outcome {
    Outcome::Signaled {
        signal: SignalName::from("SIGTERM"),
        core_dumped: false,
    }
}

on_each_tier! {
    o3_pipeline_members_end_with_their_shell,
    o4_member_that_ignores_term_is_killed_after_the_leader_died,
    item_63_the_kill_outlives_the_settlement_of_the_target,
    o5_termination_waits_for_a_cleaning_member,
    o6_a_command_that_kills_its_group_leaves_the_host_alone,
    o6_b_termination_right_after_the_spawn_hits_only_that_tree,
    o7_member_removes_its_lock_on_termination,
    item_73_jobs_with_groups_of_their_own_end,
    item_73_jobs_end_after_their_leader,
    item_73_daemon_is_ended_or_named,
    a_stopped_member_ends_on_term,
    item_60_cancelling_after_the_leaders_exit_ends_the_survivors,
    a_tree_that_forks_all_the_time_ends,
    a_deep_tree_is_listed_and_ends,
    item_29_disposal_ends_every_tree_and_refuses_the_next,
    a_member_that_outlives_its_leader_is_never_overlooked,
}

/// Every member of a pipeline ends, not only the shell; by a call and by the token alike.
fn o3_pipeline_members_end_with_their_shell(tier: Tier) {
    for cancel in [false, true] {
        let case = Case::new(tier);
        // The line reaches us through both: all three run.
        let spec = case.bash(r#""$PROBE" sleep | cat | cat"#);
        let token = spec.cancel.clone();
        let process = case.spawn(spec);
        announced(&process, "ready");
        assert!(case.living().len() >= 4);
        if cancel {
            token.cancel();
            assert!(within(process.wait_for_exit(&CancellationToken::new())).expect("the tree ends"));
        } else {
            within(process.terminate()).expect("the tree ends");
        }
        case.assert_gone();
        assert_eq!(finished(&process), terminated());
        assert!(text(&process).starts_with("ready "));
    }
}

/// The leader's death on `SIGTERM` does not call off the `SIGKILL` for the rest.
fn o4_member_that_ignores_term_is_killed_after_the_leader_died(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.bash(r#""$PROBE" ignore-term & sleep 300"#);
    spec.grace = Duration::from_millis(200);
    let process = case.spawn(spec);
    announced(&process, "ready");
    within(process.terminate()).expect("the tree ends");
    case.assert_gone();
    assert_eq!(finished(&process), terminated());
}

/// `done` is settled before the grace is over, and the deadline stands.
fn item_63_the_kill_outlives_the_settlement_of_the_target(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.bash(r#""$PROBE" ignore-term & sleep 300"#);
    spec.grace = Duration::from_millis(500);
    spec.drain = Duration::ZERO;
    let process = case.spawn(spec);
    let [member] = announced(&process, "ready")[..] else {
        panic!("one member")
    };
    // Nothing but the ladder is awaited: it goes on with nobody looking.
    drop(process.terminate());
    assert_eq!(finished(&process), terminated());
    drop(process);
    crate::fixture::eventually("the member is killed", || !alive(member));
    case.assert_gone();
}

/// "Gone" waits for the member that still cleans up, and what it said last is collected.
fn o5_termination_waits_for_a_cleaning_member(tier: Tier) {
    let case = Case::new(tier);
    let process = case.spawn(case.spec(["/bin/sh", "-c", r#""$PROBE" trap-term cleaned 300; :"#]));
    let [member] = announced(&process, "ready")[..] else {
        panic!("one member")
    };
    within(process.terminate()).expect("the tree ends");
    // Nothing was killed: the grace is 300 s.
    assert!(!alive(member));
    case.assert_gone();
    assert_eq!(finished(&process), terminated());
    assert!(text(&process).ends_with("\ncleaned\n"), "{:?}", text(&process));
}

/// A command that signals its own process group reaches itself only.
fn o6_a_command_that_kills_its_group_leaves_the_host_alone(tier: Tier) {
    let case = Case::new(tier);
    let (outcome, _) = case.run(case.bash("kill -TERM 0; sleep 300"));
    assert_eq!(outcome, terminated());
    let (outcome, _) = case.run(case.probe(["exit", "0"]));
    assert!(outcome.success());
}

/// A termination at any moment of the spawn ends that tree, and nobody else's.
fn o6_b_termination_right_after_the_spawn_hits_only_that_tree(tier: Tier) {
    let case = Case::new(tier);
    let sibling = case.spawn(case.probe(["sleep"]));
    let [sibling_pid] = announced(&sibling, "ready")[..] else {
        panic!("one sibling")
    };
    for round in 0..200 {
        let process = case
            .runtime
            .spawn(case.spec(["/bin/sleep", "300"]))
            .expect("the spec is valid");
        // From right after the spawn to well inside the program, 3 ms later.
        std::thread::sleep(Duration::from_micros(15 * round));
        within(process.terminate()).expect("the tree ends");
        assert_eq!(finished(&process), terminated());
    }
    assert_eq!(case.living(), [sibling_pid]);
    within(sibling.terminate()).expect("the tree ends");
    case.assert_gone();
}

/// A handler of a member gets its time, so that it removes its lock.
fn o7_member_removes_its_lock_on_termination(tier: Tier) {
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut spec = case.spec(["/bin/sh", "-c", r#"bash -c 'touch lock; trap "rm -f lock; exit 143" TERM; echo ready; while :; do sleep 0.05; done'; :"#]);
    spec.cwd = directory.path().into();
    let process = case.spawn(spec);
    line_of(&process, "ready");
    assert!(directory.path().join("lock").exists());
    let begun = Instant::now();
    within(process.terminate()).expect("the tree ends");
    // Far below the grace, which is 300 s: the handler's own time, on a loaded machine.
    assert!(begun.elapsed() < BOUND);
    assert!(!directory.path().join("lock").exists());
    case.assert_gone();
}

/// A job of `set -m` is in a process group of its own, in the same session.
fn item_73_jobs_with_groups_of_their_own_end(tier: Tier) {
    for script in [r#"set -m; "$PROBE" sleep & wait"#, r#"exec "$PROBE" new-group"#] {
        let case = Case::new(tier);
        let process = case.spawn(case.bash(script));
        let [job] = announced(&process, "ready")[..] else {
            panic!("one job")
        };
        let leader = process.pid().expect("it is known");
        let there = row(job).expect("the job runs");
        assert_eq!(
            (there.group, there.session),
            (job, leader),
            "a group of its own, in the leader's session"
        );
        within(process.terminate()).expect("the tree ends");
        case.assert_gone();
    }
}

/// The same when the leader is gone already, so that only the job is left.
fn item_73_jobs_end_after_their_leader(tier: Tier) {
    let case = Case::new(tier);
    let spec = case.bash(r#"set -m; sleep 300 </dev/null >/dev/null 2>&1 & echo "job $!""#);
    let process = case.spawn(spec);
    assert!(finished(&process).success());
    let [job] = announced(&process, "job")[..] else {
        panic!("one job")
    };
    assert!(alive(job));
    within(process.terminate()).expect("the tree ends");
    assert!(!alive(job));
}

/// A daemon in a session of its own: ended where the mechanism holds it, named where it does not.
fn item_73_daemon_is_ended_or_named(tier: Tier) {
    for leave in [
        &["setsid-escape", "--close"][..],
        &["setsid-escape", "--close", "--leave"],
    ] {
        let case = Case::new(tier);
        let process = case.spawn(case.probe(leave.iter().copied()));
        let [daemon] = announced(&process, "ready")[..] else {
            panic!("one daemon")
        };
        let there = row(daemon).expect("the daemon runs");
        assert_ne!(
            there.session,
            process.pid().expect("it is known"),
            "it left the session"
        );
        let end = within(process.terminate());
        match tier {
            Tier::Cgroup | Tier::Reaper => {
                end.expect("the tree ends");
                case.assert_gone();
                assert!(within(process.survivors()).expect("it is known").is_empty());
            }
            Tier::ProcessGroup => {
                let weaknesses = within(process.ownership()).expect("it is known").weaknesses;
                assert!(
                    weaknesses.iter().any(|weakness| weakness.contains("session")),
                    "{weaknesses:?}"
                );
                end.expect("what the mechanism holds is gone");
                assert!(alive(daemon), "nobody could end it");
                let survivors = within(process.survivors()).expect("the table can be read");
                assert!(
                    survivors.iter().any(|member| member.pid == Some(daemon)),
                    "{daemon}: {survivors:?}"
                );
            }
        }
    }
}

/// A stopped process cannot act on `SIGTERM` until it is continued.
fn a_stopped_member_ends_on_term(tier: Tier) {
    let case = Case::new(tier);
    let process = case.spawn(case.probe(["stop-member"]));
    let [member] = announced(&process, "stopped")[..] else {
        panic!("one member")
    };
    assert_eq!(row(member).map(|row| row.state), Some('T'));
    // The grace is 300 s: only `SIGTERM` can be what ends it.
    within(process.terminate()).expect("the tree ends");
    case.assert_gone();
}

/// The token stays armed until the tree is gone, also after the leader's exit settled `done`.
fn item_60_cancelling_after_the_leaders_exit_ends_the_survivors(tier: Tier) {
    let case = Case::new(tier);
    let spec = case.bash(r#""$PROBE" sleep >/dev/null 2>&1 & echo "left $!""#);
    let token = spec.cancel.clone();
    let process = case.spawn(spec);
    assert!(finished(&process).success());
    let [survivor] = announced(&process, "left")[..] else {
        panic!("one survivor")
    };
    assert!(alive(survivor));
    token.cancel();
    assert!(within(process.wait_for_exit(&CancellationToken::new())).expect("the tree ends"));
    case.assert_gone();
}

/// A tree that keeps changing its processes is ended as a whole.
fn a_tree_that_forks_all_the_time_ends(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.probe(["refork"]);
    spec.grace = Duration::from_millis(100);
    let process = case.spawn(spec);
    line_of(&process, "ready");
    within(process.terminate()).expect("the tree ends");
    case.assert_gone();
}

/// Deep and broad trees end as one; `members` lists all of them, the target first.
fn a_deep_tree_is_listed_and_ends(tier: Tier) {
    let case = Case::new(tier);
    let process = case.spawn(case.probe(["tree", "5", "--depth", "4"]));
    let mut pids = announced(&process, "ready");
    assert_eq!(pids.len(), 20);
    let members: Vec<u32> = within(process.members())
        .expect("the tree can be read")
        .iter()
        .filter_map(|member| member.pid)
        .collect();
    assert_eq!(members.first().copied(), process.pid());
    pids.extend(process.pid());
    pids.sort_unstable();
    let mut sorted = members;
    sorted.sort_unstable();
    assert_eq!(sorted, pids);
    within(process.terminate()).expect("the tree ends");
    case.assert_gone();
    assert!(
        within(process.members())
            .expect("the tree can be read")
            .is_empty()
    );
}

/// A look at the members in the very moment of the leader's exit finds those that stay, however often.
fn a_member_that_outlives_its_leader_is_never_overlooked(tier: Tier) {
    let case = Case::new(tier);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let mut spec = case.probe(["hold-stdout"]);
                    spec.drain = Duration::ZERO;
                    let process = case.spawn(spec);
                    assert!(finished(&process).success());
                    let members = within(process.members()).expect("the tree can be read");
                    assert_eq!(members.len(), 1, "{members:?}");
                    within(process.terminate()).expect("the tree ends");
                    assert!(!members[0].pid.is_some_and(alive), "{members:?}");
                    let ended = within(process.ended()).expect("it is known");
                    assert_eq!(ended.len(), 1, "{members:?} and {ended:?}");
                }
            });
        }
    });
    case.assert_gone();
}

/// After disposal nothing is left, and nothing starts (item 29).
fn item_29_disposal_ends_every_tree_and_refuses_the_next(tier: Tier) {
    let case = Case::new(tier);
    let stubborn = {
        let mut spec = case.probe(["ignore-term"]);
        spec.grace = Duration::from_millis(200);
        case.spawn(spec)
    };
    let trees: Vec<_> = (0..5).map(|_| case.spawn(case.probe(["tree", "3"]))).collect();
    announced(&stubborn, "ready");
    for tree in &trees {
        announced(tree, "ready");
    }
    within(case.runtime.dispose()).expect("all trees end");
    case.assert_gone();
    let error = case
        .runtime
        .spawn(case.probe(["exit", "0"]))
        .expect_err("the runtime is disposed of");
    assert_eq!(error.kind(), dsh_subprocess::ErrorKind::Disposed);
    within(case.runtime.dispose()).expect("a second disposal waits for the same end");
}

/// A chain of sessions that never stands still cannot leave a control group.
#[test]
fn as_root_on_cgroup_a_chain_of_forks_and_sessions_ends() {
    for features in [&[][..], &[dsh_subprocess_local::KernelFeature::CgroupKill]] {
        let case = Case::with(Tier::Cgroup, |builder| {
            features
                .iter()
                .fold(builder, |builder, &feature| builder.without(feature))
        });
        let mut spec = case.probe(["refork", "--setsid"]);
        spec.grace = Duration::from_millis(100);
        let process = case.spawn(spec);
        line_of(&process, "ready");
        within(process.terminate()).expect("the tree ends");
        case.assert_gone();
    }
}
