//! A warden is killed before the host: what it held is ended or held by another one, and the host goes on.

use dsh_subprocess::{ErrorKind, MayHaveStarted, SubprocessRuntime};
use nix::sys::signal::Signal;

use super::scene::{GRACE, LONG, Scene, signal_to};
use super::{Place, in_each_place, wardens};
use crate::fixture::{Case, Tier, alive, eventually, group_of, row, within};

in_each_place! {
    issue_3_a_killed_runtime_warden_is_replaced_and_the_next_one_sees_the_host_end,
}

/// In each place that has tree wardens.
mod issue_3_a_killed_tree_warden {
    use super::{Place, Tier};

    #[test]
    fn on_reaper() {
        super::a_killed_tree_warden(Place {
            tier: Tier::Reaper,
            as_nobody: false,
        });
    }

    #[test]
    fn as_root_as_nobody_on_reaper() {
        super::a_killed_tree_warden(Place {
            tier: Tier::Reaper,
            as_nobody: true,
        });
    }
}

/// The handle says that the owner was lost, the tree is ended all the same, and the host lives and spawns on.
fn a_killed_tree_warden(place: Place) {
    let scene = Scene::new(place);
    // The graces of its own tree warden are gone with it: the runtime warden's counts.
    let mut host = scene.host().start(["bereft", &scene.path("log"), LONG]);
    let target: u32 = host.wait_for("target").parse().expect("a pid");
    scene.wait_for_crowd("log");
    let warden = row(target).expect("the target is there").parent;
    signal_to(warden, Signal::SIGKILL);
    assert_eq!(host.wait_for("lost"), "OwnershipLost");
    assert_eq!(host.wait_for("not-gone"), "OwnershipLost");
    assert_eq!(host.wait_for("next"), "exited with code 0");
    let members = scene.members("log");
    eventually("every member is gone", || {
        !members.values().any(|&member| alive(member))
    });
    scene.assert_asked_once("log");
    assert!(alive(host.pid()));
}

/// On `reaper` the tree wardens end their trees; on `cgroup` nothing of a tree depends on its warden. In both cases the host
/// has another warden started, and tells it all that the first one knew.
fn issue_3_a_killed_runtime_warden_is_replaced_and_the_next_one_sees_the_host_end(place: Place) {
    let scene = Scene::new(place);
    let mut host = scene.host().start(["bereft", &scene.path("log"), GRACE]);
    let target = host.wait_for("target").parse().expect("a pid");
    scene.wait_for_crowd("log");
    let mut made = scene.made();
    if place.tier == Tier::Cgroup {
        let leaf = group_of(target);
        made.push(leaf.parent().expect("it is in the runtime's").to_owned());
    }
    let members = scene.members("log");
    let first = wardens::of_the_runtime(host.pid()).expect("the host has a warden");
    signal_to(first, Signal::SIGKILL);
    if place.tier == Tier::Reaper {
        eventually("every member is gone", || {
            !members.values().any(|&member| alive(member))
        });
        scene.assert_asked_once("log");
        // Its own warden has seen to it, and tells what it saw.
        assert_eq!(host.wait_for("outcome"), "ended by SIGKILL");
        assert_eq!(host.wait_for("gone"), "true");
        assert_eq!(host.wait_for("next"), "exited with code 0");
    }
    eventually("another warden holds what is to be removed", || {
        wardens::of_the_runtime(host.pid()).is_some_and(|second| {
            let held = wardens::descriptors(second);
            second != first && made.iter().all(|made| held.contains(made))
        })
    });
    let second = wardens::of(host.pid());
    if place.tier == Tier::Cgroup {
        assert!(members.values().all(|&member| alive(member)), "it is the group's");
        assert!(scene.logged("log", "TERM").is_empty(), "nobody was asked");
    }
    signal_to(host.pid(), Signal::SIGKILL);
    eventually("every member is gone", || host.living().is_empty());
    scene.assert_asked_once("log");
    eventually("the wardens have ended", || {
        !second.iter().any(|&warden| alive(warden))
    });
    scene.assert_removed();
}

/// With the host right behind it, nobody can start another one: the tree wardens go on alone.
#[test]
fn on_reaper_issue_3_trees_end_when_the_runtime_warden_and_the_host_are_killed() {
    let scene = Scene::new(Place {
        tier: Tier::Reaper,
        as_nobody: false,
    });
    let mortal = scene.start("killed", GRACE);
    let warden = wardens::of_the_runtime(mortal.host.pid()).expect("the host has a warden");
    signal_to(warden, Signal::SIGKILL);
    mortal.signal(Signal::SIGKILL);
    mortal.assert_gone(&[]);
    scene.assert_asked_once("log");
    mortal.assert_no_warden();
}

/// A runtime warden that was stopped makes no tree warden. A spawn waits for one as long as it would for its target, says that
/// nothing was started, and the next finds everything in order once the warden goes on.
#[test]
fn on_reaper_issue_3_a_stopped_runtime_warden_holds_a_spawn_up_for_one_bound_only() {
    // Other tests may be in this process.
    let others = wardens::of(std::process::id());
    let case = Case::new(Tier::Reaper);
    let made = wardens::of(std::process::id());
    let runtime = made
        .iter()
        .copied()
        .find(|&warden| {
            !others.contains(&warden) && row(warden).is_some_and(|row| !made.contains(&row.parent))
        })
        .expect("the runtime has a warden");
    signal_to(runtime, Signal::SIGSTOP);
    // The idle tree warden takes this; the one that is made ahead after it is never forked.
    let first = case.spawn(case.probe(["sleep"]));
    let second = case
        .runtime
        .spawn(case.probe(["exit", "0"]))
        .expect("the spec is valid");
    let error = within(second.started()).expect_err("nobody could start it");
    signal_to(runtime, Signal::SIGCONT);
    assert_eq!(error.kind(), ErrorKind::OwnershipLost, "{error}");
    assert_eq!(error.started(), MayHaveStarted::No, "{error}");
    assert!(error.to_string().contains("does not answer"), "{error}");
    let (outcome, _) = case.run(case.probe(["exit", "0"]));
    assert!(outcome.success());
    within(first.terminate()).expect("the tree ends");
    case.assert_gone();
}
