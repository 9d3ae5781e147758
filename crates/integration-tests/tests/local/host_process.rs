//! Hosts that are special as a process: nested in another tree, forked, restricted, or gone.

use crate::fixture::{Case, Host, Tier, announced, eventually, on_each_tier, within};

on_each_tier! {
    a_runtime_inside_a_tree_ends_with_it,
    a_forked_child_is_refused_and_harms_nothing,
    trees_end_with_the_last_reference_to_their_runtime,
    a_host_that_is_refused_clone3_and_close_range_spawns,
    o6_c_a_refused_setsid_never_turns_the_signal_on_the_host,
}

/// A host with trees of its own is itself a member of a tree, and ends with all of them.
fn a_runtime_inside_a_tree_ends_with_it(tier: Tier) {
    let case = Case::new(tier);
    let ownership = format!("--ownership={}", tier.mechanism());
    let mut spec = case.probe([
        "host",
        &ownership,
        "nested",
        env!("CARGO_BIN_EXE_probe"),
        "tree",
        "3",
    ]);
    spec.stdin = dsh_subprocess::Stdin::Pipe;
    let mut process = case.spawn(spec);
    let input = process.stdin();
    let inner = announced(&process, "ready");
    assert_eq!(inner.len(), 3);
    // The host, its target and the three below it.
    assert_eq!(case.living().len(), 5);
    let end = within(process.terminate());
    match tier {
        Tier::Cgroup => {
            end.expect("the tree ends");
            case.assert_gone();
        }
        // The inner target leads a session of its own; what the tier says of daemons holds for it.
        Tier::ProcessGroup => {
            end.expect("what the mechanism holds is gone");
            let left = case.living();
            let survivors = within(process.survivors()).expect("the table can be read");
            assert!(
                left.iter()
                    .all(|pid| survivors.iter().any(|member| member.pid == Some(*pid))),
                "{left:?} {survivors:?}"
            );
        }
    }
    drop(input);
}

/// A forked child of the host has no runtime, and cannot harm the parent's.
fn a_forked_child_is_refused_and_harms_nothing(tier: Tier) {
    let report = Host::new(tier).report(["forked"]);
    assert_eq!(
        report.get("child"),
        "ForkedProcess",
        "{:?}",
        report.find("child-text")
    );
    assert_eq!(report.get("child-status"), "0");
    assert_eq!(report.get("tree-alive"), "true");
    assert_eq!(report.get("parent"), "exited with code 0");
}

/// With the last reference gone, the trees of a runtime end.
fn trees_end_with_the_last_reference_to_their_runtime(tier: Tier) {
    let mut host = Host::new(tier).start(["orphan"]);
    let tree = host.wait_for("tree");
    host.wait_for("ready");
    let own = host.pid();
    eventually("the tree ends", || host.living() == [own]);
    assert_eq!(tree.split(' ').count(), 3);
    host.end();
}

/// A seccomp profile that knows newer system calls not: the older ones do.
fn a_host_that_is_refused_clone3_and_close_range_spawns(tier: Tier) {
    for refused in [
        &["--enosys=clone3"][..],
        &["--enosys=close_range"],
        &["--enosys=clone3", "--enosys=close_range"],
    ] {
        let host = refused
            .iter()
            .fold(Host::new(tier), |host, &refused| host.peculiar(refused))
            .peculiar("--leak=20");
        let report = host.report(["run", env!("CARGO_BIN_EXE_probe"), "fds"]);
        assert_eq!(
            report.get("outcome"),
            "exited with code 0",
            "{refused:?}: {report:?}"
        );
        let list = report.get("stdout").replace("\\n", "\n");
        assert_eq!(list.lines().count(), 3, "{list}");
        assert_eq!(report.get("gone"), "true");
    }
}

/// Where the child cannot have a session of its own, nothing is signalled by a group that is not its own (O6 c).
fn o6_c_a_refused_setsid_never_turns_the_signal_on_the_host(tier: Tier) {
    let report = Host::new(tier).peculiar("--eperm=setsid").report([
        "run",
        "--grace-ms=200",
        "--until=ready",
        env!("CARGO_BIN_EXE_probe"),
        "sleep",
    ]);
    // The host lived to tell (`report` checks its exit status).
    match report.find("outcome") {
        Some(outcome) => {
            assert_eq!(outcome, "ended by SIGTERM");
            // A control group signals by other means; a group that is not the child's own would be the host's.
            let told = report
                .all("weakness")
                .any(|weakness| weakness.contains("session"));
            assert!(told || tier == Tier::Cgroup, "{report:?}");
        }
        None => assert_eq!(report.get("failed"), "PermissionDenied", "{report:?}"),
    }
}

/// An ordinary user gets a tier that works without being asked for one.
#[test]
fn an_ordinary_user_gets_a_working_tier() {
    let report = Host::new(Tier::ProcessGroup)
        .unprivileged()
        .peculiar("--ownership=auto")
        .report(["run", "--until=ready", "/proc/self/exe", "tree", "3"]);
    assert!(
        ["cgroup", "process_group"].contains(&report.get("mechanism")),
        "{report:?}"
    );
    assert_eq!(report.get("outcome"), "ended by SIGTERM");
    assert_eq!(report.get("gone"), "true");
    assert_eq!(report.get("disposed"), "true");
}
