//! A host that ran out of something: item 25. Errors of a kind of their own, and the host lives on.

use dsh_subprocess_local::KernelFeature;

use crate::fixture::{Host, Report, Tier, on_each_tier};

#[track_caller]
fn assert_survived(report: &Report) {
    assert_eq!(report.get("before"), "exited with code 0");
    assert_eq!(
        report.get("starved"),
        "ResourceExhausted",
        "{}",
        report.get("starved-text")
    );
    assert_eq!(report.get("inert"), "true");
    assert_eq!(report.get("after"), "exited with code 0");
}

on_each_tier! {
    item_25_no_descriptors_left_is_an_error_of_its_own,
    item_25_few_descriptors_are_enough_for_one_child_at_a_time,
    a_tree_gets_its_term_from_a_host_without_descriptors,
    a_tree_gets_its_kill_from_a_host_without_descriptors,
    a_spill_directory_that_cannot_be_finished_is_removed,
}

/// No descriptor is left (`EMFILE`).
fn item_25_no_descriptors_left_is_an_error_of_its_own(tier: Tier) {
    let report = Host::new(tier).report(["starved", "descriptors"]);
    assert_survived(&report);
    assert!(
        report.get("starved-text").contains("descriptor"),
        "{}",
        report.get("starved-text")
    );
}

/// A host that starts with hardly any descriptor either has a runtime that works, or an error; it never dies.
fn item_25_few_descriptors_are_enough_for_one_child_at_a_time(tier: Tier) {
    let report = Host::new(tier)
        .peculiar("--nofile=40")
        .report(["exit-codes", "50"]);
    assert_eq!(report.all("outcome").count(), 50);
    for outcome in report.all("outcome") {
        assert_eq!(outcome, "exited with code 7");
    }
}

/// No process is left (`EAGAIN`). The limit does not bind root.
#[test]
fn item_25_no_processes_left_is_an_error_of_its_own() {
    let report = Host::new(Tier::ProcessGroup)
        .unprivileged()
        .report(["starved", "processes"]);
    assert_survived(&report);
    assert!(
        report.get("starved-text").contains("process"),
        "{}",
        report.get("starved-text")
    );
}

/// Starts `$2` copies of the call `$1` as background jobs, each with its output in the file of its number, and says `ready`
/// once all of them have; then waits for the end of the input. With `-m` first, each job has a group of its own.
const JOBS: &str = r#"
    call=$1 count=$2 directory=$3 i=0
    while [ $i -lt $count ]; do
        "$0" $call >"$directory/$i" 2>&1 </dev/null &
        i=$((i+1))
    done
    while [ $(cat "$directory"/* | grep -c ready) -lt $count ]; do sleep 0.02; done
    echo ready
    read -r end"#;

/// Ends a tree of background jobs from a host that has few or no descriptors left, and returns what the jobs wrote.
#[track_caller]
fn end_hungry(way: Way, free: usize, grace_ms: u64, leader: &str, monitor: bool, call: &str) -> Vec<String> {
    const COUNT: usize = 100;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (free, grace, count) = (free.to_string(), grace_ms.to_string(), COUNT.to_string());
    let path = directory.path().to_str().expect("text");
    let bash: &[&str] = if monitor {
        &["/bin/bash", "-m", "-c"]
    } else {
        &["/bin/bash", "-c"]
    };
    let mut scenario = vec!["hungry-end", free.as_str(), grace.as_str(), leader];
    scenario.extend(bash);
    scenario.extend([JOBS, env!("CARGO_BIN_EXE_probe"), call, count.as_str(), path]);
    let mut host = way.host().start(scenario);
    host.wait_for("members-ready");
    host.go_on();
    let outcome = host.wait_for("outcome");
    // The host itself is all that lives.
    let own = host.pid();
    let living = host.living();
    let report = host.end();
    let what = format!("{way:?}, {free} free, {leader}, monitor {monitor}: {report:?}");
    if leader == "leader-stays" {
        assert_eq!(outcome, "ended by SIGTERM", "{what}");
    }
    assert_eq!(report.find("gone"), Some("true"), "{what}");
    assert_eq!(living, [own], "{what}");
    // Whoever cannot be counted is not passed over in silence.
    match report.find("members") {
        Some(members) => {
            let target = usize::from(leader == "leader-stays");
            let members: usize = members.parse().expect("a number");
            assert!((COUNT + target..=COUNT + 1).contains(&members), "{what}");
        }
        None => assert_eq!(report.get("members-error"), "ResourceExhausted", "{what}"),
    }
    (0..COUNT)
        .map(|job| std::fs::read_to_string(directory.path().join(job.to_string())).expect("it wrote"))
        .collect()
}

/// A tier, and the kernel features that its signals depend on: with all of them, and without.
#[derive(Clone, Copy, Debug)]
struct Way(Tier, Option<KernelFeature>);

impl Way {
    fn all(tier: Tier) -> Vec<Self> {
        match tier {
            Tier::Cgroup => vec![Self(tier, None), Self(tier, Some(KernelFeature::CgroupKill))],
            Tier::Reaper | Tier::ProcessGroup => vec![Self(tier, None)],
        }
    }

    fn host(self) -> Host {
        let host = Host::new(self.0);
        match self.1 {
            Some(feature) => host.peculiar(format!("--without={feature}")),
            None => host,
        }
    }
}

/// Every member is asked, however few descriptors there are to reach it by: the grace is longer than any test.
fn a_tree_gets_its_term_from_a_host_without_descriptors(tier: Tier) {
    for free in [20, 2, 1, 0] {
        for leader in ["leader-stays", "leader-ends"] {
            for monitor in [false, true] {
                for way in Way::all(tier) {
                    let jobs = end_hungry(way, free, 300_000, leader, monitor, "trap-term termed 0");
                    let asked = jobs.iter().filter(|job| job.ends_with("\ntermed\n")).count();
                    assert_eq!(
                        asked,
                        jobs.len(),
                        "{way:?}, {free} free, {leader}, monitor {monitor}"
                    );
                }
            }
        }
    }
}

/// And every member is killed that does not obey.
fn a_tree_gets_its_kill_from_a_host_without_descriptors(tier: Tier) {
    for free in [20, 1, 0] {
        for leader in ["leader-stays", "leader-ends"] {
            for way in Way::all(tier) {
                end_hungry(way, free, 300, leader, true, "ignore-term");
            }
        }
    }
}

/// A directory is made, and then no descriptor is left for what goes into it: nothing of it stays.
fn a_spill_directory_that_cannot_be_finished_is_removed(tier: Tier) {
    let mut withdrawn = 0;
    for free in 0..12 {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let report = Host::new(tier)
            .peculiar(format!("--spill-parent={}", parent.path().display()))
            .report(["hungry-spill", &free.to_string()]);
        assert_eq!(report.get("outcome"), "exited with code 0", "{free} free");
        assert_eq!(report.get("total"), "100006", "{free} free");
        match report.get("spill") {
            "available 100006" => {}
            lost if lost.starts_with("withdrawn ") => withdrawn += 1,
            other => panic!("{other} with {free} free"),
        }
        assert_eq!(report.get("disposed"), "true");
        let left: Vec<_> = std::fs::read_dir(parent.path()).expect("it is ours").collect();
        assert!(left.is_empty(), "{free} free, {}: {left:?}", report.get("spill"));
    }
    assert!((1..12).contains(&withdrawn), "{withdrawn} of 12 had no file");
}
