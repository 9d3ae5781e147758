//! Chains of processes that do nothing but fork and leave: nobody outruns the kill. Issue 3.

use std::time::Duration;

use dsh_subprocess::{Outcome, Stdin};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Case, Tier, announced, finished, within};

/// Each process of a chain makes the next one and ends at once; each leads a session of its own.
const CHAINS: &str = "16";

/// However short the grace is, and whether or not the target is there to be signalled: the tree is gone, and the call comes
/// back.
fn sixteen_chains_without_delay_are_ended(tier: Tier) {
    for (grace_ms, leader_leaves) in [(1, false), (1, true), (20, false), (20, true), (200, true)] {
        let case = Case::new(tier);
        let mut spec = case.probe(["chains", CHAINS]);
        spec.stdin = Stdin::Pipe;
        spec.grace = Duration::from_millis(grace_ms);
        spec.drain = Duration::ZERO;
        let mut process = case.spawn(spec);
        let input = process.stdin();
        announced(&process, "ready");
        if leader_leaves {
            drop(input);
            assert_eq!(finished(&process), Outcome::Exited { code: 0 });
            let cancelled = CancellationToken::new();
            cancelled.cancel();
            assert!(!within(process.wait_for_exit(&cancelled)).expect("it is only cancelled"));
        }
        within(process.terminate()).expect("the tree ends");
        case.assert_gone();
        assert!(within(process.members()).expect("it is known").is_empty());
    }
}

#[test]
fn as_root_on_cgroup_issue_3_sixteen_chains_without_delay_are_ended() {
    sixteen_chains_without_delay_are_ended(Tier::Cgroup);
}

#[test]
fn on_reaper_issue_3_sixteen_chains_without_delay_are_ended() {
    sixteen_chains_without_delay_are_ended(Tier::Reaper);
}
