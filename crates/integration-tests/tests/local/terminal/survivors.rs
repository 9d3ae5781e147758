//! A member of a session that cannot be killed: the wait has a bound, and another attempt is made when it is asked for.

use std::time::Duration;

use dsh_subprocess::{Error, ErrorKind, SubprocessRuntime};

use super::session::Terminals;
use crate::fixture::{Case, Freezer, Tier, alive, eventually, within};

/// The error names who is left, and no one else.
#[track_caller]
fn assert_names(error: &Error, survivor: u32) {
    assert_eq!(error.kind(), ErrorKind::Survivors, "{error}");
    let named: Vec<_> = error.survivors().iter().map(|member| member.pid).collect();
    assert_eq!(named, [Some(survivor)]);
    assert!(error.to_string().contains(&survivor.to_string()), "{error}");
}

fn item_96_a_frozen_member_is_a_named_survivor_until_it_is_thawed(tier: Tier) {
    let case = Case::with(tier, |builder| builder.kill_bound(Duration::from_millis(200)));
    let mut spec = case.terminal_spec(case.probe(["tree", "2"]));
    spec.grace = Duration::from_millis(100);
    let mut session = case.open(spec);
    let [frozen, other] = session.announced("ready")[..] else {
        panic!("two members")
    };
    let freezer = Freezer::freeze(frozen);
    let error = within(session.terminate()).expect_err("a frozen process takes no signal");
    assert_names(&error, frozen);
    assert!(!alive(other), "the others were ended");
    assert!(session.outcome().signal().is_some(), "and so was the program");
    let error = within(session.terminate()).expect_err("another attempt fails, too");
    assert_names(&error, frozen);
    let error = within(case.runtime.dispose()).expect_err("disposal is bounded");
    assert_eq!(error.kind(), ErrorKind::Survivors, "{error}");
    assert!(alive(frozen));

    freezer.thaw();
    eventually("the thawed member takes its SIGKILL", || !alive(frozen));
    // An attempt that is made before the runtime has seen the end may still name it.
    eventually("the runtime sees the end", || within(session.terminate()).is_ok());
    case.assert_gone();
}

#[test]
fn as_root_on_cgroup_item_96_a_frozen_member_is_a_named_survivor_until_it_is_thawed() {
    item_96_a_frozen_member_is_a_named_survivor_until_it_is_thawed(Tier::Cgroup);
}

#[test]
fn as_root_on_reaper_item_96_a_frozen_member_is_a_named_survivor_until_it_is_thawed() {
    item_96_a_frozen_member_is_a_named_survivor_until_it_is_thawed(Tier::Reaper);
}

#[test]
fn as_root_on_process_group_item_96_a_frozen_member_is_a_named_survivor_until_it_is_thawed() {
    item_96_a_frozen_member_is_a_named_survivor_until_it_is_thawed(Tier::ProcessGroup);
}
