//! A world that answers late and has no ids: nothing is known before the world says it.

use std::time::Duration;

use dsh_subprocess::{
    EnvOverlay, Error, ErrorKind, Lookup, MayHaveStarted, Mechanism, Outcome, SubprocessRuntime,
};
use dsh_subprocess_testkit::scripted::{Place, Reaction, Script, ScriptedWorld};
use tokio_util::sync::CancellationToken;

use crate::setup::{ms, now, spec};

#[test]
fn a_spawn_returns_before_anything_has_started() {
    let world = ScriptedWorld::stepped();
    world.program(
        "app",
        Script::new()
            .waits(Duration::from_secs(600))
            .starts()
            .stdout("up")
            .exits(0),
    );
    let process = world.spawn(spec("app")).expect("a valid spec");
    world.advance(Duration::from_secs(599));
    assert!(now(process.started()).is_none() && now(process.done()).is_none());
    assert_eq!(process.collected_stdout().expect("collected").total(), 0);
    world.advance(Duration::from_secs(1));
    assert_eq!(
        now(process.started()).expect("started").expect("it runs").pid,
        None
    );
    assert_eq!(
        now(process.done()).expect("done").expect("an outcome").code(),
        Some(0)
    );
    assert_eq!(process.pid(), None);
    assert_eq!(process.collected_stdout().expect("collected").text(), "up");
}

#[test]
fn an_id_of_another_world_is_known_once_the_target_runs() {
    let world = ScriptedWorld::stepped();
    world.program(
        "app",
        Script::new().wait_for("placement").starts_as(4_000_000_000),
    );
    let process = world.spawn(spec("app")).expect("a valid spec");
    world.advance(Duration::from_secs(60));
    assert_eq!(process.pid(), None);
    world.open("placement");
    world.advance(Duration::ZERO);
    assert_eq!(process.pid(), Some(4_000_000_000));
    let members = process.members();
    assert!(
        now(members).is_none(),
        "the answer was there before it could have come"
    );
    let members = process.members();
    world.advance(ms(1));
    let members = now(members).expect("an answer").expect("members");
    assert_eq!(
        (members[0].pid, members[0].command.as_str()),
        (Some(4_000_000_000), "app")
    );
}

#[test]
fn a_question_takes_as_long_as_the_world_is_far_away() {
    let world = ScriptedWorld::stepped();
    world
        .program("app", Script::new())
        .set_latency(Duration::from_secs(2));
    let process = world.spawn(spec("app")).expect("a valid spec");
    let mut question = process.ownership();
    world.advance(ms(1999));
    assert!(now(&mut question).is_none());
    world.advance(ms(1));
    let ownership = now(&mut question).expect("an answer").expect("the world answers");
    assert_eq!(
        ownership.mechanism,
        Mechanism::Remote(Box::new(Mechanism::JobObject))
    );
}

#[test]
fn a_failed_start_is_told_when_the_world_knows_it() {
    let world = ScriptedWorld::stepped();
    let failure =
        Error::new(ErrorKind::Transport, "spawn", "the node went away").with_started(MayHaveStarted::Unknown);
    world.program("app", Script::new().waits(ms(5)).fails(failure));
    let process = world.spawn(spec("app")).expect("a valid spec");
    let gone = CancellationToken::new();
    assert!(now(process.wait_for_exit(&gone)).is_none());
    world.advance(ms(5));
    let error = now(process.done()).expect("done").expect_err("it failed");
    assert_eq!(
        (error.kind(), error.started()),
        (ErrorKind::Transport, MayHaveStarted::Unknown)
    );
    assert!(now(process.wait_for_exit(&gone)).expect("gone").expect("known"));
}

#[test]
fn directories_and_programs_are_the_worlds_own() {
    let world = ScriptedWorld::stepped();
    world
        .program("app", Script::new().exits(0))
        .place(r"C:\build\src", Place::Directory);
    let mut elsewhere = spec("app");
    elsewhere.cwd = r"D:\gone".into();
    for (spec, kind) in [
        (spec("nonesuch"), ErrorKind::ProgramNotFound),
        (elsewhere, ErrorKind::CwdNotFound),
    ] {
        let process = world.spawn(spec).expect("a valid spec");
        assert!(
            now(process.done()).is_none(),
            "the failure was known before the world was asked"
        );
        world.advance(Duration::ZERO);
        assert_eq!(
            now(process.done()).expect("done").expect_err("it fails").kind(),
            kind
        );
    }
}

#[test]
fn a_lookup_is_answered_late_and_can_be_cancelled() {
    let world = ScriptedWorld::stepped();
    world.program("app", Script::new());
    let lookup = || Lookup {
        command: "app".into(),
        env: EnvOverlay::new(),
        cancel: CancellationToken::new(),
    };
    let mut answer = world.resolve_executable(lookup());
    assert!(now(&mut answer).is_none());
    world.advance(ms(1));
    assert_eq!(
        now(answer).expect("an answer").expect("found"),
        "world://bin/app".into()
    );

    let cancelled = lookup();
    let cancel = cancelled.cancel.clone();
    let mut answer = world.resolve_executable(cancelled);
    assert!(now(&mut answer).is_none());
    cancel.cancel();
    assert_eq!(
        now(answer).expect("an answer").expect_err("cancelled").kind(),
        ErrorKind::Cancelled
    );
}

#[test]
fn item_176_a_termination_before_the_start_gives_the_signals_outcome() {
    let world = ScriptedWorld::stepped();
    world.program("app", Script::new().waits(ms(50)).starts().exits(0));
    let spec = spec("app");
    let cancel = spec.cancel.clone();
    let process = world.spawn(spec).expect("a valid spec");
    world.advance(ms(10));
    cancel.cancel();
    world.advance(Duration::ZERO);
    let started = now(process.started())
        .expect("started")
        .expect_err("it never ran");
    assert_eq!(
        (started.kind(), started.started()),
        (ErrorKind::Cancelled, MayHaveStarted::No)
    );
    let outcome = now(process.done()).expect("done").expect("an outcome");
    assert_eq!(
        outcome,
        Outcome::Signaled {
            signal: "SIGTERM".into(),
            core_dumped: false
        }
    );
    world.run();
    assert_eq!(now(process.done()).expect("done").expect("an outcome"), outcome);
}

#[test]
fn a_disposal_ends_what_has_not_started_yet() {
    let world = ScriptedWorld::stepped();
    world.program("slow", Script::new().wait_for("never").starts());
    world.program("stubborn", Script::new().on_term(Reaction::Ignores));
    let (slow, stubborn) = (world.spawn(spec("slow")), world.spawn(spec("stubborn")));
    world.advance(Duration::ZERO);
    let mut disposal = world.dispose();
    assert_eq!(
        world.spawn(spec("slow")).expect_err("disposed").kind(),
        ErrorKind::Disposed
    );
    world.advance(ms(2999));
    assert!(
        now(&mut disposal).is_none(),
        "the grace of a stubborn tree is not over"
    );
    world.advance(ms(1));
    now(disposal).expect("disposed").expect("all ended");
    assert_eq!(
        now(slow.expect("a valid spec").done())
            .expect("done")
            .expect("an outcome")
            .code(),
        None
    );
    let outcome = now(stubborn.expect("a valid spec").done())
        .expect("done")
        .expect("an outcome");
    assert_eq!(outcome.signal().expect("a signal").as_str(), "SIGKILL");
}

#[test]
#[should_panic(expected = "before its target starts")]
fn a_script_that_writes_before_it_starts_is_a_mistake_of_the_test() {
    let world = ScriptedWorld::stepped();
    world.program("app", Script::new().stdout("early").starts());
    drop(world.spawn(spec("app")));
}
