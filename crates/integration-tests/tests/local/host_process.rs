//! Hosts that are special as a process: nested in another tree, forked, restricted, or gone.

use crate::fixture::{Case, Host, Report, Tier, alive, announced, eventually, on_each_tier, within};

on_each_tier! {
    a_runtime_inside_a_tree_ends_with_it,
    a_forked_child_is_refused_and_harms_nothing,
    trees_end_with_the_last_reference_to_their_runtime,
    a_host_that_is_refused_clone3_and_close_range_spawns,
    o6_c_a_refused_setsid_never_turns_the_signal_on_the_host,
    a_host_whose_kernel_knows_no_pidfd_flags_owns_what_outlives_the_leader,
    item_66_a_refused_group_signal_falls_back_to_single_processes,
    item_15_relative_entries_of_the_path_are_from_the_hosts_directory,
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
        Tier::Cgroup | Tier::Reaper => {
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
    assert_eq!(report.get("child-tried"), "everything");
    assert_eq!(report.get("child-status"), "0");
    assert_eq!(report.get("trees-alive"), "3");
    assert_eq!(report.get("echo"), "1", "the parent's streams are watched");
    assert_eq!(report.get("echo-outcome"), "exited with code 0");
    assert_eq!(report.get("tokened-outcome"), "ended by SIGTERM");
    assert_eq!(report.get("scoped-outcome"), "ended by SIGTERM");
    assert_eq!(report.get("parent"), "exited with code 0");
    assert_eq!(report.get("disposed"), "true");
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
            assert!(told || tier.owns_all(), "{report:?}");
        }
        None => assert_eq!(report.get("failed"), "PermissionDenied", "{report:?}"),
    }
}

/// `PIDFD_NONBLOCK` came with Linux 5.10: a kernel before it refuses the flag, not the call.
fn a_host_whose_kernel_knows_no_pidfd_flags_owns_what_outlives_the_leader(tier: Tier) {
    let mut host = Host::new(tier)
        .peculiar("--einval=pidfd_open-flags")
        .start(["survivors", "5"]);
    let helpers: Vec<u32> = host
        .wait_for("helpers")
        .split(' ')
        .map(|pid| pid.parse().expect("a pid"))
        .collect();
    assert_eq!(host.wait_for("members"), "5");
    host.wait_for("ready");
    assert!(helpers.iter().all(|&helper| alive(helper)));
    host.go_on();
    assert_eq!(host.wait_for("gone"), "true");
    assert!(!helpers.iter().any(|&helper| alive(helper)), "{helpers:?}");
    host.end();
}

/// Where a whole group may not be signalled, each of its processes is.
fn item_66_a_refused_group_signal_falls_back_to_single_processes(tier: Tier) {
    let report = Host::new(tier).peculiar("--eperm=signal-group").report([
        "run",
        "--until=ready",
        env!("CARGO_BIN_EXE_probe"),
        "tree",
        "3",
    ]);
    // The grace is 30 s: it was SIGTERM that reached the target, and nothing has outlived it.
    assert_eq!(report.get("outcome"), "ended by SIGTERM");
    assert_eq!(report.get("gone"), "true");
    assert_eq!(report.get("disposed"), "true");
}

/// Relative and empty entries are looked up in the host's own directory, and the answer is absolute.
fn item_15_relative_entries_of_the_path_are_from_the_hosts_directory(tier: Tier) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().canonicalize().expect("it is there");
    let program = |path: &str| {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("it is ours");
        std::fs::copy("/bin/true", &path).expect("it is ours");
        path.display().to_string()
    };
    let (in_bin, in_home) = (program("bin/dsh-tool"), program("dsh-here"));
    let chdir = format!("--chdir={}", home.display());
    let resolve = |command: &str, path: &str| {
        Host::new(tier)
            .under(["env", &chdir])
            .report(["resolve", command, path])
    };
    assert_eq!(resolve("dsh-tool", "/nonexistent:bin").get("found"), in_bin);
    for path in [":/nonexistent", "/nonexistent:", "/nonexistent::/bin", "."] {
        let report = resolve("dsh-here", path);
        let found = std::path::Path::new(report.get("found"));
        assert!(found.is_absolute(), "{path}: {report:?}");
        assert_eq!(
            found.canonicalize().expect("it is there").display().to_string(),
            in_home,
            "{path}"
        );
    }
    assert_eq!(resolve("dsh-here", "bin").get("missed"), "ProgramNotFound");
}

/// A mechanism that is asked for and cannot work is an error that says why, never another mechanism in silence.
#[test]
fn as_root_a_forced_control_group_is_refused_to_an_ordinary_user() {
    let report = Host::new(Tier::Cgroup).unprivileged().report(["build"]);
    assert_refused(&report);
}

/// The same where no control group is mounted at all, whoever asks.
#[test]
fn a_forced_control_group_is_refused_without_a_mount() {
    let report = Host::new(Tier::Cgroup)
        .under(["unshare", "--map-root-user", "--mount", "sh", "-c"])
        .under(["mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"", "sh"])
        .report(["build"]);
    assert_refused(&report);
}

#[track_caller]
fn assert_refused(report: &Report) {
    assert_eq!(report.get("refused"), "OwnershipUnavailable", "{report:?}");
    let text = report.get("refused-text");
    let (_, why) = text
        .split_once("the cgroup mechanism does not work here: ")
        .unwrap_or_else(|| panic!("{text}"));
    assert!(why.contains("cgroup") && why.len() > "cgroup".len(), "{text}");
}

/// An ordinary user gets a tier that works without being asked for one.
#[test]
fn an_ordinary_user_gets_a_working_tier() {
    let report = Host::new(Tier::ProcessGroup)
        .unprivileged()
        .peculiar("--ownership=auto")
        .report(["run", "--until=ready", "/proc/self/exe", "tree", "3"]);
    assert!(
        ["cgroup", "reaper"].contains(&report.get("mechanism")),
        "{report:?}"
    );
    assert_eq!(report.get("outcome"), "ended by SIGTERM");
    assert_eq!(report.get("gone"), "true");
    assert_eq!(report.get("disposed"), "true");
}
