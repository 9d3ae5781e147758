//! A member that cannot be killed: the wait has a bound, the error names it, and its end is an event all the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use dsh_subprocess::{ErrorKind, SubprocessRuntime};
use tokio_util::sync::CancellationToken;

use crate::fixture::{
    Case, Freezer, Host, Tier, alive, announced, eventually, finished, probe_for_everyone, within,
};

fn a_frozen_member_is_a_named_survivor_until_it_is_thawed(tier: Tier) {
    let case = Case::with(tier, |builder| builder.kill_bound(Duration::from_millis(300)));
    let mut spec = case.probe(["tree", "2"]);
    spec.grace = Duration::from_millis(100);
    let process = case.spawn(spec);
    let members = announced(&process, "ready");
    let frozen = members[0];
    let freezer = Freezer::freeze(frozen);

    let error = within(process.terminate()).expect_err("a frozen process takes no signal");
    assert_eq!(error.kind(), ErrorKind::Survivors, "{error}");
    assert_eq!(
        error
            .survivors()
            .iter()
            .filter_map(|member| member.pid)
            .collect::<Vec<_>>(),
        [frozen]
    );
    assert!(error.to_string().contains(&frozen.to_string()), "{error}");
    assert!(!alive(members[1]), "the others were ended");
    // The target itself is gone, and says so.
    assert!(finished(&process).signal().is_some());
    let error = within(case.runtime.dispose()).expect_err("disposal is bounded, too");
    assert_eq!(error.kind(), ErrorKind::Survivors, "{error}");
    assert!(alive(frozen));

    freezer.thaw();
    eventually("the thawed member takes its SIGKILL", || !alive(frozen));
    // The runtime went on owning it. A wait that is asked before it has seen the end still names the survivor.
    eventually("the runtime sees the end", || {
        within(process.wait_for_exit(&CancellationToken::new())).is_ok_and(|gone| gone)
    });
    within(process.terminate()).expect("there is nothing left to end");
    case.assert_gone();
}

#[test]
fn as_root_on_cgroup_a_frozen_member_is_a_named_survivor_until_it_is_thawed() {
    a_frozen_member_is_a_named_survivor_until_it_is_thawed(Tier::Cgroup);
}

#[test]
fn as_root_on_process_group_a_frozen_member_is_a_named_survivor_until_it_is_thawed() {
    a_frozen_member_is_a_named_survivor_until_it_is_thawed(Tier::ProcessGroup);
}

/// An ordinary user may not signal a process that became root by a setuid program.
#[test]
fn as_root_on_process_group_a_setuid_member_is_a_named_survivor_until_it_ends() {
    let directory = probe_for_everyone();
    let program = directory.path().join("probe");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("it is ours");
    let report = Host::new(Tier::ProcessGroup)
        .unprivileged()
        .peculiar("--kill-bound-ms=300")
        .report(["unkillable", program.to_str().expect("text")]);
    assert_eq!(
        report.get("terminated"),
        "Survivors",
        "{:?}",
        report.find("terminated-text")
    );
    assert_eq!(report.get("survivor"), report.get("member"));
    assert_eq!(report.get("outcome"), "exited with code 0");
    assert_eq!(report.get("gone"), "true");
}

/// A later termination is no repetition of what was in vain: whoever can be reached by then is killed.
#[test]
fn as_root_on_process_group_item_68_a_later_terminate_kills_what_is_still_alive() {
    let directory = probe_for_everyone();
    let program = directory.path().join("probe");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("it is ours");
    let report = Host::new(Tier::ProcessGroup)
        .unprivileged()
        .peculiar("--kill-bound-ms=300")
        .report(["unkillable-once", program.to_str().expect("text")]);
    assert_eq!(report.get("first"), "Survivors", "{report:?}");
    assert_eq!(report.get("second"), "ended", "{report:?}");
    assert_eq!(report.get("outcome"), "ended by SIGKILL");
}

/// Every tree is waited for before the failures are told, all of them together, and what does not fail is ended.
fn item_80_disposal_names_every_tree_that_did_not_end(tier: Tier) {
    let case = Case::with(tier, |builder| builder.kill_bound(Duration::from_millis(300)));
    let start = || {
        let mut spec = case.probe(["sleep"]);
        spec.grace = Duration::from_millis(100);
        let process = case.spawn(spec);
        let pid = announced(&process, "ready")[0];
        (process, pid)
    };
    let (frozen, lively) = ([start(), start()], start());
    let freezers = frozen.each_ref().map(|(_, pid)| Freezer::freeze(*pid));
    let error = within(case.runtime.dispose()).expect_err("two trees take no signal");
    assert_eq!(error.kind(), ErrorKind::Several, "{error}");
    let mut named: Vec<u32> = error.survivors().iter().filter_map(|member| member.pid).collect();
    named.sort_unstable();
    let mut wanted = frozen.each_ref().map(|(_, pid)| *pid);
    wanted.sort_unstable();
    assert_eq!(named, wanted);
    for pid in wanted {
        assert!(error.to_string().contains(&pid.to_string()), "{error}");
    }
    assert!(!alive(lively.1), "the third was ended");
    drop(freezers);
    for (process, pid) in &frozen {
        assert!(finished(process).signal().is_some());
        eventually("the thawed target is gone", || !alive(*pid));
    }
    case.assert_gone();
}

#[test]
fn as_root_on_cgroup_item_80_disposal_names_every_tree_that_did_not_end() {
    item_80_disposal_names_every_tree_that_did_not_end(Tier::Cgroup);
}

#[test]
fn as_root_on_process_group_item_80_disposal_names_every_tree_that_did_not_end() {
    item_80_disposal_names_every_tree_that_did_not_end(Tier::ProcessGroup);
}

/// A host that cannot even list who is left does not say that nobody is.
fn survivors_that_cannot_be_listed_are_not_counted_as_none(tier: Tier) {
    for (free, leader) in [(0, "leader-stays"), (0, "leader-ends"), (1, "leader-ends")] {
        let mut host = Host::new(tier).peculiar("--kill-bound-ms=300").start([
            "hungry-end",
            &free.to_string(),
            "100",
            leader,
            "/bin/bash",
            "-c",
            r#""$0" sleep & read -r end"#,
            env!("CARGO_BIN_EXE_probe"),
        ]);
        let member: u32 = host.wait_for("members-ready").parse().expect("a pid");
        let freezer = Freezer::freeze(member);
        host.go_on();
        assert_eq!(host.wait_for("gone-error"), "Survivors", "{free} free, {leader}");
        let text = host.wait_for("gone-error-text");
        assert!(!text.contains("0 processes"), "{text}");
        assert!(alive(member));
        freezer.thaw();
        eventually("the thawed member takes its SIGKILL", || !alive(member));
        host.wait_for("outcome");
        host.end();
    }
}

#[test]
fn as_root_on_cgroup_survivors_that_cannot_be_listed_are_not_counted_as_none() {
    survivors_that_cannot_be_listed_are_not_counted_as_none(Tier::Cgroup);
}

#[test]
fn as_root_on_process_group_survivors_that_cannot_be_listed_are_not_counted_as_none() {
    survivors_that_cannot_be_listed_are_not_counted_as_none(Tier::ProcessGroup);
}
