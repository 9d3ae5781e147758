//! What an idle warden costs.

use std::fs;

use crate::fixture::{LONG, Runtime};

/// The share of the machine's memory that a process has, in KiB.
fn share(pid: u32) -> u32 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the warden is there");
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .expect("a sum");
    line.trim()
        .strip_suffix(" kB")
        .and_then(|kib| kib.trim().parse().ok())
        .expect("a number")
}

#[test]
fn an_idle_warden_has_at_most_150_kib() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let fresh = share(tree.warden);
    // One that has had a tree of many keeps no more.
    let _target = tree.run("for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait", LONG);
    let busy = share(tree.warden);
    tree.kill();
    let used = share(tree.warden);
    let of_runtime = share(tree.runtime());
    println!(
        "tree warden: {fresh} KiB fresh, {busy} KiB with a tree, {used} KiB after; runtime warden: {of_runtime} KiB"
    );
    for kib in [fresh, busy, used, of_runtime] {
        assert!(kib <= 150, "{kib} KiB");
    }
}
