//! A warden holds nothing of the host's but what it was sent.

use nix::sys::signal::Signal;

use super::scene::{GRACE, LONG, Scene, signal_to};
use super::{Place, in_each_place, wardens};
use crate::fixture::{alive, row};

in_each_place! {
    issue_3_a_warden_has_a_session_of_its_own_and_nothing_that_its_host_leaks,
    issue_3_the_output_of_a_host_ends_with_it_while_wardens_are_at_a_stubborn_tree,
}

/// A host may hold descriptors that every program it executes gets, such as libraries open.
fn issue_3_a_warden_has_a_session_of_its_own_and_nothing_that_its_host_leaks(place: Place) {
    let scene = Scene::new(place);
    // Each of them is the null device.
    let host = scene.host().peculiar("--leak=20");
    let mortal = scene.start_under(host, "killed", GRACE);
    for &warden in &mortal.wardens {
        let held = wardens::descriptors(warden);
        let null = held.iter().filter(|held| held.as_os_str() == "/dev/null").count();
        assert_eq!(null, 3, "its own input, output and error: {held:?}");
        assert_eq!(row(warden).map(|row| row.session), Some(warden));
    }
    mortal.signal(Signal::SIGKILL);
    mortal.assert_ended(&scene, &[]);
}

/// As in `x=$(host)`: the reader is not kept waiting.
fn issue_3_the_output_of_a_host_ends_with_it_while_wardens_are_at_a_stubborn_tree(place: Place) {
    let scene = Scene::new(place);
    let mut mortal = scene.start("exit", LONG);
    mortal.host.go_on();
    mortal.host.wait_for_end_of_output();
    scene.wait_until_asked("log");
    let members: Vec<u32> = scene.members("log").into_values().collect();
    assert!(
        members.iter().all(|&member| alive(member)),
        "they have their grace"
    );
    assert!(mortal.wardens.iter().any(|&warden| alive(warden)));
    // And the wardens end as soon as the tree does.
    for member in members {
        signal_to(member, Signal::SIGKILL);
    }
    mortal.assert_ended(&scene, &[]);
}
