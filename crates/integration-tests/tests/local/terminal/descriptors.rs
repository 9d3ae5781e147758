//! Nothing of a terminal stays behind its session: case O23.

use nix::unistd::geteuid;

use crate::fixture::{Host, Tier, on_each_tier};

on_each_tier! {
    o23_nothing_stays_of_sessions_whose_handles_are_dropped,
    o23_nothing_stays_of_sessions_whose_output_nobody_has_read,
    o23_nothing_stays_of_sessions_whose_output_is_taken_and_dropped,
    o23_nothing_stays_of_sessions_that_are_read_to_their_end,
}

/// A file system of terminals that is the host's alone, since other tests make and end terminals at the same time.
const ALONE: &str = "mount -t devpts devpts /dev/pts && exec \"$@\"";

/// 600 sessions, 200 that cannot start, and the host has as many descriptors and terminals as before.
#[track_caller]
fn nothing_stays(tier: Tier, manner: &str) {
    let user: &[&str] = if geteuid().is_root() {
        &["unshare", "--mount"]
    } else {
        &["unshare", "--mount", "--map-root-user"]
    };
    let report = Host::new(tier)
        .under(user.iter().copied())
        .under(["/bin/sh", "-c", ALONE, "sh"])
        .report(["terminal-descriptors", manner, "600", "200"]);
    assert_eq!(report.get("good"), "600");
    assert_eq!(report.get("bad"), "200");
    assert_eq!(report.number::<u32>("terminals-before"), 0);
    assert_eq!(report.number::<u32>("terminals-after"), 0);
    let (before, after): (u32, u32) = (report.number("before"), report.number("after"));
    assert!(
        after <= before + 2,
        "{before} descriptors became {after}: {:?}",
        report.all("open").collect::<Vec<_>>()
    );
}

fn o23_nothing_stays_of_sessions_whose_handles_are_dropped(tier: Tier) {
    nothing_stays(tier, "dropped");
}

/// The handles are kept, all of them.
fn o23_nothing_stays_of_sessions_whose_output_nobody_has_read(tier: Tier) {
    nothing_stays(tier, "unread");
}

fn o23_nothing_stays_of_sessions_whose_output_is_taken_and_dropped(tier: Tier) {
    nothing_stays(tier, "output-dropped");
}

fn o23_nothing_stays_of_sessions_that_are_read_to_their_end(tier: Tier) {
    nothing_stays(tier, "read");
}
