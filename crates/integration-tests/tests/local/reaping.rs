//! Children are reaped, whoever looks: case O11, and hosts that reap on their own.

use dsh_subprocess_local::KernelFeature;

use crate::fixture::{Host, Tier, on_each_tier};

on_each_tier! {
    o11_children_of_dropped_handles_are_reaped,
    a_rival_reaper_never_makes_an_exit_code_wrong,
    an_ignored_sigchld_never_makes_an_exit_code_wrong,
}

/// A hundred children whose handles are dropped at once, with nothing else run in the host.
fn o11_children_of_dropped_handles_are_reaped(tier: Tier) {
    let report = Host::new(tier).report(["drop-handles", "100"]);
    assert_eq!(report.get("left"), "", "children left, running or zombie");
    assert_eq!(report.get("later"), "exited with code 7");
}

/// Another part of the host that waits for any child costs no exit code on a kernel that keeps it, and never turns
/// into a 0 elsewhere.
fn a_rival_reaper_never_makes_an_exit_code_wrong(tier: Tier) {
    let exact = Host::new(tier)
        .peculiar("--rival-reaper")
        .report(["exit-codes", "100"]);
    assert_eq!(exact.all("outcome").count(), 100);
    for outcome in exact.all("outcome") {
        assert_eq!(outcome, "exited with code 7");
    }
    let without = format!("--without={}", KernelFeature::PidfdGetInfo);
    let unknown = Host::new(tier)
        .peculiar(without)
        .peculiar("--rival-reaper")
        .report(["exit-codes", "100"]);
    assert_eq!(unknown.all("outcome").count(), 100);
    for outcome in unknown.all("outcome") {
        let allowed = ["exited with code 7", "ended, with a status that is not known"];
        assert!(allowed.contains(&outcome), "{outcome}");
    }
}

/// With `SIGCHLD` ignored the kernel reaps by itself.
fn an_ignored_sigchld_never_makes_an_exit_code_wrong(tier: Tier) {
    let ignored = ["env", "--ignore-signal=CHLD"];
    let exact = Host::new(tier).under(ignored).report(["exit-codes", "50"]);
    assert_eq!(exact.all("outcome").count(), 50);
    for outcome in exact.all("outcome") {
        assert_eq!(outcome, "exited with code 7");
    }
    let without = format!("--without={}", KernelFeature::PidfdGetInfo);
    let unknown = Host::new(tier)
        .under(ignored)
        .peculiar(without)
        .report(["exit-codes", "50"]);
    for outcome in unknown.all("outcome") {
        let allowed = ["exited with code 7", "ended, with a status that is not known"];
        assert!(allowed.contains(&outcome), "{outcome}");
    }
}
