//! A host that ran out of something: item 25. Errors of a kind of their own, and the host lives on.

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
