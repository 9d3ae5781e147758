//! What a consumer's test can see of what the consumer asked for.

use std::time::Duration;

use dsh_subprocess::{ErrorOutput, Output, Stdin, SubprocessRuntime};
use dsh_subprocess_testkit::scripted::{Reaction, Script, ScriptedMember, ScriptedWorld, TerminationCause};
use tokio::io::AsyncWriteExt;

use crate::setup::{ms, now, spec};

#[test]
fn a_request_is_recorded_word_for_word() {
    let world = ScriptedWorld::stepped();
    world.program("app", Script::new().exits(0));
    let mut asked = spec("app");
    asked.argv.push("--flag".into());
    asked.env.insert("API_TOKEN".into(), Some("given".into()));
    drop(world.spawn(asked).expect("a valid spec"));
    let requests = world.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].spec.argv, ["app".into(), "--flag".into()]);
    assert_eq!(requests[0].spec.cwd, r"C:\build\src".into());
    let names: Vec<_> = requests[0].environment.names().map(ToString::to_string).collect();
    assert_eq!(
        names,
        ["API_TOKEN", "PATH"],
        "the environment of this machine crossed"
    );
}

#[test]
fn a_refused_spawn_is_not_recorded() {
    let world = ScriptedWorld::stepped();
    let mut empty = spec("app");
    empty.argv.clear();
    assert!(world.spawn(empty).is_err());
    assert!(world.requests().is_empty());
}

#[test]
fn every_termination_is_recorded_with_its_cause_and_the_signals_with_their_time() {
    let world = ScriptedWorld::stepped();
    world.program(
        "app",
        Script::new()
            .bears(ScriptedMember::new(3, "helper"))
            .on_term(Reaction::Ignores),
    );
    let spec = spec("app");
    let cancel = spec.cancel.clone();
    let process = world.spawn(spec).expect("a valid spec");
    world.advance(ms(10));
    cancel.cancel();
    world.advance(ms(5));
    drop(process.terminate());
    drop(world.dispose());
    world.run();
    let request = &world.requests()[0];
    let causes: Vec<_> = request
        .terminations
        .iter()
        .map(|request| (request.at, request.cause))
        .collect();
    let expected = [
        (ms(10), TerminationCause::Cancel),
        (ms(15), TerminationCause::Terminate),
        (ms(15), TerminationCause::Dispose),
    ];
    assert_eq!(causes, expected);
    let signals: Vec<_> = request
        .signals
        .iter()
        .map(|sent| (sent.at, sent.to, sent.signal.as_str()))
        .collect();
    assert_eq!(
        signals,
        [
            (ms(10), Some(3), "SIGTERM"),
            (ms(10), None, "SIGTERM"),
            (ms(3010), None, "SIGKILL")
        ]
    );
}

#[test]
fn the_drop_of_the_last_reference_kills_what_is_left() {
    let world = ScriptedWorld::stepped();
    world.program("app", Script::new().on_term(Reaction::Ignores));
    let process = world.spawn(spec("app")).expect("a valid spec");
    world.advance(Duration::ZERO);
    drop(world);
    let outcome = now(process.done()).expect("done").expect("an outcome");
    assert_eq!(outcome.signal().expect("a signal").as_str(), "SIGKILL");
}

#[test]
fn what_a_target_reads_is_recorded_and_compared() {
    let world = ScriptedWorld::stepped();
    world.program(
        "app",
        Script::new()
            .expects("hello\n")
            .expects("bye\n")
            .reads_to_end()
            .exits(0),
    );
    let ask = |first: &str| {
        let mut asked = spec("app");
        asked.stdin = Stdin::Pipe;
        let mut process = world.spawn(asked).expect("a valid spec");
        let mut input = process.stdin().expect("piped");
        now(input.write_all(first.as_bytes()))
            .expect("room")
            .expect("the target reads");
        world.run();
        now(input.write_all(b"bye\nrest"))
            .expect("room")
            .expect("the target reads");
        drop(input);
        world.run();
        assert_eq!(
            now(process.done()).expect("done").expect("an outcome").code(),
            Some(0)
        );
    };
    ask("hello\n");
    assert_eq!(world.violations(), <Vec<String>>::new());
    assert_eq!(world.requests()[0].stdin, "hello\nbye\nrest");
    ask("hullo\n");
    let violations = world.violations();
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert!(violations[0].contains("hullo"), "{violations:?}");
}

#[test]
fn an_input_that_ends_too_early_is_a_violation() {
    let world = ScriptedWorld::stepped();
    world.program("app", Script::new().expects("hello").exits(0));
    let mut asked = spec("app");
    asked.stdin = Stdin::Data("hell".into());
    drop(world.spawn(asked).expect("a valid spec"));
    world.run();
    assert!(
        world.violations()[0].contains("the end"),
        "{:?}",
        world.violations()
    );
}

#[test]
fn inherited_streams_are_recorded() {
    let world = ScriptedWorld::stepped();
    world.program("app", Script::new().stdout("out").stderr("err").exits(0));
    let mut asked = spec("app");
    asked.stdout = Output::Inherit;
    asked.stderr = ErrorOutput::Own(Output::Inherit);
    drop(world.spawn(asked).expect("a valid spec"));
    world.run();
    assert_eq!(world.requests()[0].inherited, "outerr");
}

#[test]
fn a_free_running_world_needs_nobody_to_step_it() {
    let world = ScriptedWorld::free_running();
    world.program(
        "app",
        Script::new().waits(Duration::from_secs(86_400)).starts().exits(0),
    );
    let process = world.spawn(spec("app")).expect("a valid spec");
    assert!(pollster::block_on(process.done()).expect("an outcome").success());
    assert!(world.now() >= Duration::from_secs(86_400));
}
