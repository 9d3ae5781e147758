//! Thousands of trees, each of which meets a fault: the host has as much afterwards as before. Issue 3.

use std::thread;

use crate::fixture::{Tier, on_each_tier};
use crate::steps::{Ground, groups};

/// Hosts of each tier at once: what takes long about a fault is mostly waiting.
const HOSTS: usize = 8;
/// Trees of each host. They are more than 10,000 on all of them.
const CYCLES: &str = "425";
/// What a live runtime may have at most beside what it began with: idle wardens, spare descriptors, a spilled stream.
const ROOM: usize = 64;

on_each_tier! {
    issue_3_faults_leave_nothing_behind,
}

fn issue_3_faults_leave_nothing_behind(tier: Tier) {
    thread::scope(|scope| {
        let hosts: Vec<_> = (0..HOSTS)
            .map(|_| scope.spawn(move || a_host_meets_faults(tier)))
            .collect();
        let failed = hosts.into_iter().filter_map(|host| host.join().err()).count();
        assert_eq!(failed, 0, "hosts of {HOSTS}");
    });
}

/// What is chosen follows from a seed, which is printed; `DSH_FAULTS_SEED` takes one that was.
fn a_host_meets_faults(tier: Tier) {
    let (ground, before) = (Ground::new(), groups());
    let spills = ground.spills.path().to_str().expect("text");
    let seed = std::env::var("DSH_FAULTS_SEED").ok();
    let report = ground
        .host(tier)
        .peculiar("--kill-bound-ms=300")
        .under([env!("CARGO_BIN_EXE_probe"), "adopt"])
        .report(["faults", CYCLES, spills].into_iter().chain(seed.as_deref()));
    println!("seed {}", report.get("seed"));
    for met in report.all("met") {
        println!("{met}");
    }
    assert_eq!(report.get("exited"), "0", "{report:?}");
    assert_eq!(report.get("after"), report.get("before"), "{report:?}");
    // While the runtime was there, too.
    let at_first = report.get("before").split(' ').next().expect("a word");
    let at_first: usize = at_first.parse().expect("a number");
    assert!(
        report.number::<usize>("most-descriptors") <= at_first + ROOM,
        "{report:?}"
    );
    // Neither a member nor a warden is left.
    assert!(report.find("alone").is_some(), "{report:?}");
    let left = ground.left(report.get("adopted"), &before);
    assert!(left.is_empty(), "{left:?}");
}
