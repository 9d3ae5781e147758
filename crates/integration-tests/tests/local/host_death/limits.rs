//! What is not the end of a host, what `process_group` does not promise, and where a mechanism is not to be had.

use nix::sys::signal::Signal;

use super::Place;
use super::scene::{GRACE, Scene};
use crate::fixture::{Host, Tier, alive, eventually, on_each_tier};

on_each_tier! {
    issue_3_a_child_does_not_end_with_the_thread_that_spawned_it,
}

/// It answers when that thread is gone.
fn issue_3_a_child_does_not_end_with_the_thread_that_spawned_it(tier: Tier) {
    let report = Host::new(tier).report(["by-thread"]);
    assert_eq!(report.get("answer"), "still");
    assert_eq!(report.get("outcome"), "exited with code 0");
}

/// Nobody sees its host's end, and it says so.
#[test]
fn on_process_group_issue_3_trees_outlive_a_killed_host_as_the_weaknesses_say() {
    let scene = Scene::new(Place {
        tier: Tier::ProcessGroup,
        as_nobody: false,
    });
    let report = scene.host().report(["run", "/bin/true"]);
    let promised = "if this host is killed, its trees run on";
    assert!(
        report.all("weakness").any(|weakness| weakness == promised),
        "{report:?}"
    );

    let mut mortal = scene.start("killed", GRACE);
    mortal.signal(Signal::SIGKILL);
    eventually("the host is dead", || !alive(mortal.host.pid()));
    mortal.host.wait_for_end_of_output();
    let members = scene.members("log");
    assert!(members.values().all(|&member| alive(member)), "{members:?}");
    assert!(scene.logged("log", "TERM").is_empty());
}

/// Those that outlive a host name what they do not outlive.
#[test]
fn on_reaper_issue_3_that_all_wardens_may_be_killed_at_once_is_a_weakness() {
    let report = Host::new(Tier::Reaper).report(["run", "/bin/true"]);
    assert!(
        report
            .all("weakness")
            .any(|weakness| weakness.contains("kill -9 -1")),
        "{report:?}"
    );
}

/// A table that shows another pid namespace names the wrong processes. The reaper would follow it, so it is not to be had;
/// where nobody insists on it, the host gets what works.
#[test]
fn issue_3_a_reaper_is_refused_where_the_process_table_is_of_another_pid_namespace() {
    let alone: &[&str] = &["unshare", "--map-root-user", "--pid", "--fork", "--kill-child"];
    let report = Host::new(Tier::Reaper)
        .under(alone.iter().copied())
        .report(["build"]);
    assert_eq!(report.get("refused"), "OwnershipUnavailable");
    let why = report.get("refused-text");
    assert!(why.contains("/proc") && why.contains("pid namespace"), "{why}");

    let report = Host::new(Tier::Reaper)
        .peculiar("--ownership=auto")
        .under(alone.iter().copied())
        .report(["run", "/bin/true"]);
    assert_ne!(report.get("mechanism"), "reaper");
    assert_eq!(report.get("outcome"), "exited with code 0");
    assert_eq!(report.get("disposed"), "true");
}
