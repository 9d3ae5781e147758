//! Sessions on terminals end with their host as all trees do. Their terminals are hung up by its end, too.

use nix::sys::signal::Signal;

use super::scene::{GRACE, Scene, signal_to};
use super::{Place, in_each_place, wardens};
use crate::fixture::{LiveHost, alive, eventually};

in_each_place! {
    case_o10_sessions_end_with_a_host_that_is_killed,
    issue_4_sessions_end_with_a_host_that_exits_without_disposing,
    issue_4_sessions_end_with_a_host_that_aborts,
    issue_4_sessions_end_with_a_host_that_has_forked_a_child_which_lives_on,
    issue_4_sessions_end_with_a_host_that_executes_another_program_which_lives_on,
    issue_4_sessions_end_with_a_host_that_had_begun_to_terminate_one,
}

/// A host with sessions, before its end.
#[track_caller]
fn start(scene: &Scene, death: &str) -> (LiveHost, Vec<u32>) {
    let mut host = scene
        .host()
        .start(["terminal-mortal", death, &scene.path("log"), GRACE]);
    host.wait_for("ready");
    scene.wait_for_crowd("log");
    let wardens = wardens::of(host.pid());
    assert!(!wardens.is_empty());
    (host, wardens)
}

/// Every member was asked once, and all are gone but those that are none; nothing else is left.
#[track_caller]
fn assert_ended(scene: &Scene, host: &LiveHost, wardens: &[u32], survivors: &[u32]) {
    eventually("every member is gone", || {
        host.living().iter().all(|pid| survivors.contains(pid))
    });
    scene.assert_asked_once("log");
    scene.assert_removed();
    eventually("the wardens have ended", || {
        !wardens.iter().any(|&warden| alive(warden))
    });
}

#[track_caller]
fn by_itself(place: Place, death: &str) {
    let scene = Scene::new(place);
    let (mut host, wardens) = start(&scene, death);
    host.go_on();
    assert_ended(&scene, &host, &wardens, &[]);
}

fn case_o10_sessions_end_with_a_host_that_is_killed(place: Place) {
    let scene = Scene::new(place);
    let (host, wardens) = start(&scene, "killed");
    signal_to(host.pid(), Signal::SIGKILL);
    assert_ended(&scene, &host, &wardens, &[]);
}

fn issue_4_sessions_end_with_a_host_that_exits_without_disposing(place: Place) {
    by_itself(place, "exit");
}

fn issue_4_sessions_end_with_a_host_that_aborts(place: Place) {
    by_itself(place, "abort");
}

/// The child holds the terminals open, so that none is hung up.
fn issue_4_sessions_end_with_a_host_that_has_forked_a_child_which_lives_on(place: Place) {
    let scene = Scene::new(place);
    let (mut host, wardens) = start(&scene, "forked");
    host.go_on();
    let child = host.wait_for("forked").parse().expect("a pid");
    signal_to(host.pid(), Signal::SIGKILL);
    assert_ended(&scene, &host, &wardens, &[child]);
    assert!(alive(child), "it is no member");
}

fn issue_4_sessions_end_with_a_host_that_executes_another_program_which_lives_on(place: Place) {
    let scene = Scene::new(place);
    let (mut host, wardens) = start(&scene, "exec");
    host.go_on();
    let own = host.wait_for("ready").parse().expect("a pid");
    assert_ended(&scene, &host, &wardens, &[own]);
    assert!(alive(own), "it is no member");
}

/// Whoever has got `SIGTERM` from the host does not get another one from a warden.
fn issue_4_sessions_end_with_a_host_that_had_begun_to_terminate_one(place: Place) {
    let scene = Scene::new(place);
    let (mut host, wardens) = start(&scene, "terminating");
    host.go_on();
    host.wait_for("terminating");
    signal_to(host.pid(), Signal::SIGKILL);
    assert_ended(&scene, &host, &wardens, &[]);
}
