//! A host that is itself a member of a tree: an outer runtime's `SIGTERM` reaches its wardens, too.

use dsh_subprocess::Stdin;

use super::Place;
use super::scene::{GRACE, Scene};
use crate::fixture::{Case, Tier, announced, group_of, within};

/// The outer tree's grace is far longer than any wait here. So it is over in time only if the wardens outlive their
/// `SIGTERM`, end the inner tree, and then themselves.
#[track_caller]
fn an_inner_tree_ends_by_its_own_wardens(outer: Tier, inner: Tier) {
    let case = Case::new(outer);
    let scene = Scene::new(Place {
        tier: inner,
        as_nobody: false,
    });
    let mut spec = case.probe([
        "host",
        &format!("--ownership={}", inner.mechanism()),
        &format!("--spill-parent={}", scene.path("spills")),
        "mortal",
        "killed",
        &scene.path("log"),
        GRACE,
    ]);
    spec.stdin = Stdin::Pipe;
    for (variable, place) in [("XDG_RUNTIME_DIR", "records"), ("XDG_STATE_HOME", "kept")] {
        spec.env
            .insert(variable.into(), Some(scene.path(place).as_str().into()));
    }
    let mut process = case.spawn(spec);
    let input = process.stdin();
    announced(&process, "ready");
    scene.wait_for_crowd("log");
    let target = announced(&process, "target")[0];
    let group = (inner == Tier::Cgroup).then(|| group_of(target));
    within(process.terminate()).expect("the tree ends");
    case.assert_gone();
    scene.assert_removed();
    assert_eq!(scene.kept(), 1);
    assert!(group.is_none_or(|group| !group.exists()));
    drop(input);
}

#[test]
fn on_reaper_issue_3_a_reaper_inside() {
    an_inner_tree_ends_by_its_own_wardens(Tier::Reaper, Tier::Reaper);
}

#[test]
fn as_root_on_reaper_issue_3_a_cgroup_inside() {
    an_inner_tree_ends_by_its_own_wardens(Tier::Reaper, Tier::Cgroup);
}

#[test]
fn as_root_on_cgroup_issue_3_a_reaper_inside() {
    an_inner_tree_ends_by_its_own_wardens(Tier::Cgroup, Tier::Reaper);
}

#[test]
fn as_root_on_cgroup_issue_3_a_cgroup_inside() {
    an_inner_tree_ends_by_its_own_wardens(Tier::Cgroup, Tier::Cgroup);
}
