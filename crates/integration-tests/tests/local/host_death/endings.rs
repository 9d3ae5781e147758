//! A host ends in each way there is.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::scene::{GRACE, Scene};
use super::{Place, in_each_place};
use crate::fixture::alive;

in_each_place! {
    issue_3_a_host_that_returns_from_main_without_disposing,
    issue_3_a_host_that_exits_without_disposing,
    issue_3_a_host_that_panics,
    issue_3_a_host_that_aborts,
    issue_3_a_host_that_is_terminated,
    issue_3_a_host_whose_terminal_hangs_up,
    case_o10_a_host_that_is_killed,
    case_o10_a_host_that_is_killed_with_its_whole_process_group,
    issue_3_a_host_that_has_forked_a_child_which_lives_on,
    issue_3_a_host_that_executes_another_program_which_lives_on,
    issue_3_a_host_that_had_begun_to_terminate_its_tree,
}

/// A host that ends by its own doing.
#[track_caller]
fn by_itself(place: Place, death: &str) {
    let scene = Scene::new(place);
    let mut mortal = scene.start(death, GRACE);
    mortal.host.go_on();
    mortal.assert_ended(&scene, &[]);
}

/// A host that a signal ends, by its default action.
#[track_caller]
fn by(place: Place, signal: Signal) {
    let scene = Scene::new(place);
    let mortal = scene.start("killed", GRACE);
    mortal.signal(signal);
    mortal.assert_ended(&scene, &[]);
}

fn issue_3_a_host_that_returns_from_main_without_disposing(place: Place) {
    by_itself(place, "return");
}

fn issue_3_a_host_that_exits_without_disposing(place: Place) {
    by_itself(place, "exit");
}

fn issue_3_a_host_that_panics(place: Place) {
    by_itself(place, "panic");
}

fn issue_3_a_host_that_aborts(place: Place) {
    by_itself(place, "abort");
}

fn issue_3_a_host_that_is_terminated(place: Place) {
    by(place, Signal::SIGTERM);
}

fn issue_3_a_host_whose_terminal_hangs_up(place: Place) {
    by(place, Signal::SIGHUP);
}

fn case_o10_a_host_that_is_killed(place: Place) {
    by(place, Signal::SIGKILL);
}

/// Neither the members nor the wardens are in it.
fn case_o10_a_host_that_is_killed_with_its_whole_process_group(place: Place) {
    let scene = Scene::new(place);
    let mortal = scene.start_under(scene.host().under(["setsid"]), "killed", GRACE);
    killpg(Pid::from_raw(mortal.host.pid().cast_signed()), Signal::SIGKILL).expect("it leads a group");
    mortal.assert_ended(&scene, &[]);
}

/// The child holds copies of every socket, so no hang-up tells of the host's end.
fn issue_3_a_host_that_has_forked_a_child_which_lives_on(place: Place) {
    let scene = Scene::new(place);
    let mut mortal = scene.start("forked", GRACE);
    mortal.host.go_on();
    let child = mortal.host.wait_for("forked").parse().expect("a pid");
    mortal.signal(Signal::SIGKILL);
    mortal.assert_ended(&scene, &[child]);
    assert!(alive(child), "it is no member");
}

/// The process lives on, so only the hang-up tells that the host is gone.
fn issue_3_a_host_that_executes_another_program_which_lives_on(place: Place) {
    let scene = Scene::new(place);
    let mut mortal = scene.start("exec", GRACE);
    mortal.host.go_on();
    let host = mortal.host.wait_for("ready").parse().expect("a pid");
    mortal.assert_ended(&scene, &[host]);
    assert!(alive(host), "it is no member");
}

/// Whoever has got `SIGTERM` from the host does not get another one from a warden.
fn issue_3_a_host_that_had_begun_to_terminate_its_tree(place: Place) {
    let scene = Scene::new(place);
    let mut mortal = scene.start("terminating", GRACE);
    mortal.host.go_on();
    mortal.host.wait_for("terminating");
    scene.wait_until_asked("log");
    mortal.signal(Signal::SIGKILL);
    mortal.assert_ended(&scene, &[]);
}
