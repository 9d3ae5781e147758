//! A pooled control group serves one tree after another, and nothing meant for the first reaches the next.

use dsh_subprocess_local::KernelFeature;

use crate::fixture::{Case, Host, Tier, alive, announced, finished, line_of, on_each_tier, within};

on_each_tier! {
    item_64_nothing_is_sent_to_a_number_once_its_tree_is_gone,
}

/// The number of a tree that is gone leads a stranger's group: neither a later termination nor the tree's own pending
/// deadline, nor the end of its runtime, reaches it. In a pid namespace where the host may choose the next number.
fn item_64_nothing_is_sent_to_a_number_once_its_tree_is_gone(tier: Tier) {
    let report = in_a_namespace(tier).report(["reuse"]);
    assert_eq!(report.get("outcome"), "ended by SIGTERM");
    assert_eq!(report.get("reused"), "true");
    assert_eq!(report.get("members"), "0");
    assert_eq!(report.get("stubborn"), "ended by SIGKILL");
    assert_eq!(report.get("stranger"), "alive");
}

/// A host that may choose the numbers of processes.
fn in_a_namespace(tier: Tier) -> Host {
    let namespace: &[&str] = match tier {
        Tier::Cgroup => &["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"],
        Tier::Reaper | Tier::ProcessGroup => &[
            "unshare",
            "--map-root-user",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ],
    };
    Host::new(tier).under(namespace.iter().copied())
}

/// The same while the tree still has a member: nobody keeps the target's number taken, and nothing is sent to it.
fn issue_3_a_late_terminate_spares_who_got_the_number_of_the_target(tier: Tier) {
    let report = in_a_namespace(tier).report(["reuse-early"]);
    // The end of its input is what it waited for.
    assert_eq!(report.get("outcome"), "exited with code 1");
    assert_eq!(report.get("reused"), "true");
    assert_eq!(report.get("members"), report.get("member"));
    assert_eq!(report.get("left"), "0");
    assert_eq!(report.get("stranger"), "alive");
}

#[test]
fn as_root_on_cgroup_issue_3_a_late_terminate_spares_who_got_the_number_of_the_target() {
    issue_3_a_late_terminate_spares_who_got_the_number_of_the_target(Tier::Cgroup);
}

#[test]
fn on_reaper_issue_3_a_late_terminate_spares_who_got_the_number_of_the_target() {
    issue_3_a_late_terminate_spares_who_got_the_number_of_the_target(Tier::Reaper);
}

#[test]
fn as_root_on_cgroup_a_late_terminate_leaves_the_next_tenant_of_the_group_alive() {
    for features in [
        &[][..],
        &[KernelFeature::CgroupKill],
        &[KernelFeature::CloneIntoCgroup],
    ] {
        let case = Case::with(Tier::Cgroup, |builder| {
            features
                .iter()
                .fold(builder, |builder, &feature| builder.without(feature))
        });
        let mut earlier = Vec::new();
        for _ in 0..5 {
            let (outcome, process) = case.run(case.probe(["exit", "0"]));
            assert!(outcome.success());
            earlier.push(process);
        }
        let next = case.spawn(case.probe(["tree", "3"]));
        let members = announced(&next, "ready");
        for process in &earlier {
            within(process.terminate()).expect("it is gone already");
            assert!(within(process.members()).expect("it is known").is_empty());
        }
        for &member in &members {
            assert!(alive(member));
        }
        within(next.terminate()).expect("the tree ends");
        assert!(finished(&next).signal().is_some());
        case.assert_gone();
    }
}

#[test]
fn as_root_on_cgroup_usage_of_the_next_tenant_starts_at_zero() {
    let case = Case::new(Tier::Cgroup);
    // Burns a visible amount of processor time, counted, not timed.
    let (_, first) = case.run(case.bash("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"));
    let (_, second) = case.run(case.probe(["exit", "0"]));
    let spent = |process: &dsh_subprocess::Process| {
        let usage = within(process.usage()).expect("it is known");
        usage.user.expect("it is measured") + usage.system.expect("it is measured")
    };
    assert!(
        spent(&second) < spent(&first),
        "{:?} after {:?}",
        spent(&second),
        spent(&first)
    );
}

/// A tree may make groups of its own below its leaf: they are its members' all the same, and go with it.
#[test]
fn as_root_on_cgroup_groups_made_by_a_tree_are_ended_and_removed() {
    let case = Case::new(Tier::Cgroup);
    let script = r#"
        own=$(sed -n 's/^0:://p' /proc/self/cgroup)
        for mount in /sys/fs/cgroup/unified /sys/fs/cgroup; do [ -e $mount/cgroup.procs ] && break; done
        mkdir -p "$mount$own/inner/most"
        "$PROBE" sleep &
        echo $! >"$mount$own/inner/most/cgroup.procs"
        echo $$ >"$mount$own/inner/cgroup.procs"
        echo "group $mount$own"
        wait"#;
    for _ in 0..3 {
        let process = case.spawn(case.bash(script));
        let inner = std::path::PathBuf::from(line_of(&process, "group")).join("inner");
        let [member] = announced(&process, "ready")[..] else {
            panic!("one member")
        };
        assert!(inner.is_dir());
        let members = within(process.members()).expect("the tree can be read");
        assert!(
            members.iter().any(|there| there.pid == Some(member)),
            "{members:?}"
        );
        within(process.terminate()).expect("the tree ends");
        case.assert_gone();
        // Before another tree gets the leaf, which may be at once.
        let (outcome, _) = case.run(case.probe(["exit", "0"]));
        assert!(outcome.success());
        assert!(!inner.exists(), "{} is left", inner.display());
    }
}

#[test]
fn as_root_on_cgroup_groups_are_removed_with_the_runtime() {
    let case = Case::new(Tier::Cgroup);
    let process = case.spawn(case.probe(["sleep"]));
    announced(&process, "ready");
    let pid = process.pid().expect("it is known");
    let membership = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it runs");
    let path = membership
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .expect("version 2 is mounted")
        .to_owned();
    let root = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
        .into_iter()
        .find(|root| std::path::Path::new(root).join("cgroup.procs").exists())
        .expect("version 2 is mounted");
    let leaf = std::path::PathBuf::from(format!("{root}{path}"));
    assert!(leaf.is_dir());
    within(dsh_subprocess::SubprocessRuntime::dispose(&case.runtime)).expect("all trees end");
    let own = leaf.parent().expect("a leaf is below the runtime's own group");
    assert!(!leaf.exists() && !own.exists(), "{} is left", own.display());
}

/// A host that simply ends, with its runtime dropped and no tree alive, leaves no group behind.
#[test]
fn as_root_on_cgroup_a_host_that_exits_leaves_no_group() {
    let left = |pid: u32| -> Vec<std::path::PathBuf> {
        let name = format!("dsh-subprocess-{pid}-");
        ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
            .into_iter()
            .filter_map(|root| std::fs::read_dir(root).ok())
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.file_name()
                    .is_some_and(|file| file.to_string_lossy().starts_with(&name))
            })
            .collect()
    };
    for _ in 0..20 {
        let host = Host::new(Tier::Cgroup).start(["exit-codes", "1"]);
        let pid = host.pid();
        host.end();
        assert_eq!(left(pid), Vec::<std::path::PathBuf>::new());
    }
}
