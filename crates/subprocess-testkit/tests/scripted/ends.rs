//! Ends that no machine of this kind shows on demand.

use std::time::Duration;

use dsh_subprocess::{
    ErrorKind, Holder, MayHaveStarted, Outcome, Output, Process, StreamName, SubprocessRuntime, Usage,
};
use dsh_subprocess_testkit::scripted::{Reaction, Script, ScriptedMember, ScriptedWorld};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use crate::setup::{ms, now, spec};

fn one(script: Script) -> (ScriptedWorld, Process) {
    let world = ScriptedWorld::stepped();
    world.program("app", script);
    let process = world.spawn(spec("app")).expect("a valid spec");
    world.advance(Duration::ZERO);
    (world, process)
}

fn gone(process: &Process) -> Option<Result<bool, dsh_subprocess::Error>> {
    now(process.wait_for_exit(&CancellationToken::new()))
}

#[test]
fn an_exit_code_may_have_32_bits() {
    let (_world, process) = one(Script::new().exits(0xC000_0005));
    assert_eq!(
        now(process.done()).expect("done").expect("an outcome").code(),
        Some(0xC000_0005)
    );
}

#[test]
fn a_signal_may_have_a_name_that_this_machine_does_not_know() {
    let (_world, process) = one(Script::new().dies_of("SIGTHAW"));
    let outcome = now(process.done()).expect("done").expect("an outcome");
    assert_eq!(outcome.signal().expect("a signal").as_str(), "SIGTHAW");
    assert_eq!(outcome.to_string(), "ended by SIGTHAW");
}

#[test]
fn an_unknown_end_is_told_as_such() {
    let (_world, process) = one(Script::new().ends(Outcome::Unknown));
    let outcome = now(process.done()).expect("done").expect("an outcome");
    assert!(outcome.code().is_none() && outcome.signal().is_none() && !outcome.success());
}

#[test]
fn a_world_without_signals_ends_a_tree_with_a_code() {
    // What terminating a job object does.
    let ended = Reaction::Ends {
        after: Duration::ZERO,
        outcome: Outcome::Exited { code: 1 },
    };
    let (world, process) = one(Script::new().on_term(ended));
    let termination = process.terminate();
    world.advance(Duration::ZERO);
    now(termination).expect("ended").expect("the tree is gone");
    assert_eq!(
        now(process.done()).expect("done").expect("an outcome").code(),
        Some(1)
    );
}

#[test]
fn survivors_are_named_and_still_owned() {
    let stuck = ScriptedMember::new(7, "dd if=/mnt/dead").unkillable();
    let (world, process) = one(Script::new().bears(stuck).wait_for("thaw").member_ends(7));
    let mut termination = process.terminate();
    world.advance(ms(7999));
    assert!(
        now(&mut termination).is_none(),
        "3 s of grace and 5 s of patience are not over"
    );
    world.advance(ms(1));
    let error = now(termination).expect("given up").expect_err("it survived");
    assert_eq!(error.kind(), ErrorKind::Survivors);
    assert_eq!(error.survivors()[0].to_string(), "7 (dd if=/mnt/dead)");
    assert_eq!(
        gone(&process).expect("known").expect_err("it survived").kind(),
        ErrorKind::Survivors
    );
    let survivors = process.survivors();
    world.advance(ms(1));
    assert_eq!(
        now(survivors).expect("an answer").expect("survivors"),
        error.survivors()
    );
    let disposal = now(world.dispose()).expect("known").expect_err("it survived");
    assert_eq!(disposal.survivors(), error.survivors());

    world.open("thaw");
    world.advance(Duration::ZERO);
    assert!(gone(&process).expect("gone").expect("observed"));
    now(world.dispose()).expect("disposed").expect("nobody is left");
}

#[test]
fn several_failures_of_a_disposal_are_all_told() {
    let world = ScriptedWorld::stepped();
    for (name, pid) in [("one", 1), ("two", 2)] {
        world.program(
            name,
            Script::new().bears(ScriptedMember::new(pid, name).unkillable()),
        );
        drop(world.spawn(spec(name)).expect("a valid spec"));
    }
    world.advance(Duration::ZERO);
    let disposal = world.dispose();
    world.run();
    let error = now(disposal).expect("given up").expect_err("two survived");
    assert_eq!(error.kind(), ErrorKind::Several);
    assert_eq!(
        error
            .survivors()
            .iter()
            .map(|member| member.pid)
            .collect::<Vec<_>>(),
        [Some(1), Some(2)]
    );
}

#[test]
fn a_target_without_an_id_can_survive_too() {
    let (world, process) = one(Script::new()
        .on_term(Reaction::Ignores)
        .on_kill(Reaction::Ignores));
    let termination = process.terminate();
    world.advance(Duration::from_secs(8));
    let error = now(termination).expect("given up").expect_err("it survived");
    assert!(error.to_string().contains("the target (app)"), "{error}");
}

#[test]
fn item_172_done_fails_when_the_owner_is_lost() {
    let (world, process) = one(Script::new()
        .stdout("so far")
        .waits(ms(5))
        .loses_ownership("the agent crashed"));
    assert!(now(process.done()).is_none());
    world.advance(ms(5));
    let error = now(process.done()).expect("done").expect_err("lost");
    assert_eq!(
        (error.kind(), error.started()),
        (ErrorKind::OwnershipLost, MayHaveStarted::Yes)
    );
    assert_eq!(error.to_string(), "the agent crashed");
    let output = process.collected_stdout().expect("collected");
    assert!(output.is_sealed());
    assert_eq!(output.text(), "so far");
    let disposal = now(world.dispose()).expect("known").expect_err("nobody can tell");
    assert_eq!(disposal.kind(), ErrorKind::OwnershipLost);
}

#[test]
fn item_172_a_loss_before_the_start_leaves_open_whether_it_ran() {
    let (_world, process) = one(Script::new().loses_ownership("the agent crashed").starts());
    let error = now(process.started()).expect("started").expect_err("lost");
    assert_eq!(
        (error.kind(), error.started()),
        (ErrorKind::OwnershipLost, MayHaveStarted::Unknown)
    );
}

#[test]
fn item_173_a_loss_after_the_end_never_becomes_true() {
    let left = ScriptedMember::new(9, "left behind");
    let (world, process) = one(Script::new()
        .bears(left)
        .exits(0)
        .loses_ownership("the agent crashed"));
    assert_eq!(
        now(process.done()).expect("done").expect("known before").code(),
        Some(0)
    );
    for _ in 0..2 {
        assert_eq!(
            gone(&process).expect("known").expect_err("lost").kind(),
            ErrorKind::OwnershipLost
        );
        world.run();
    }
}

#[test]
fn item_173_a_lost_connection_may_come_back() {
    let (world, process) = one(Script::new()
        .disconnects("the link is down")
        .wait_for("repair")
        .reconnects()
        .exits(3));
    assert_eq!(
        gone(&process).expect("known").expect_err("cut off").kind(),
        ErrorKind::Transport
    );
    let question = process.usage();
    world.advance(ms(1));
    assert_eq!(
        now(question).expect("an answer").expect_err("cut off").kind(),
        ErrorKind::Transport
    );
    assert!(
        now(process.done()).is_none(),
        "how the target ended is not known yet"
    );
    world.open("repair");
    world.advance(Duration::ZERO);
    assert_eq!(
        now(process.done()).expect("done").expect("an outcome").code(),
        Some(3)
    );
    assert!(gone(&process).expect("gone").expect("observed"));
}

#[test]
fn item_57_the_drain_runs_out_to_the_millisecond_and_names_the_holder() {
    let daemon = ScriptedMember::new(12, "daemon").holding(StreamName::Stderr);
    let (world, process) = one(Script::new()
        .bears(daemon.clone())
        .stderr("a")
        .exits(0)
        .waits(ms(2000))
        .stderr("b"));
    world.advance(ms(999));
    assert!(now(process.done()).is_none());
    assert!(
        process.collected_stdout().expect("collected").is_sealed(),
        "nobody holds that one"
    );
    world.advance(ms(1));
    assert_eq!(
        now(process.done()).expect("done").expect("an outcome").code(),
        Some(0)
    );
    let holders = process.holders();
    world.advance(ms(2000));
    let holders = now(holders).expect("an answer").expect("holders");
    assert_eq!(
        holders,
        [Holder::new(daemon.member().clone(), StreamName::Stderr)]
    );
    assert_eq!(
        process.collected_stderr().expect("collected").text(),
        "a",
        "a sealed stream grew"
    );
}

/// A tree whose drain of 1 s has been running for 300 ms.
fn draining() -> (ScriptedWorld, Process) {
    let daemon = ScriptedMember::new(12, "daemon").holding(StreamName::Stdout);
    let (world, process) = one(Script::new()
        .bears(daemon)
        .stdout("a")
        .exits(0)
        .waits(ms(400))
        .stdout("b"));
    world.advance(ms(300));
    assert!(now(process.done()).is_none());
    (world, process)
}

#[test]
fn a_cut_drain_runs_out_at_the_moment_of_the_cut() {
    let (world, process) = draining();
    for _ in 0..3 {
        process.cut_drain();
    }
    assert!(
        now(process.done()).is_none(),
        "it was known before the world knew it"
    );
    world.advance(Duration::ZERO);
    assert_eq!(
        now(process.done()).expect("done").expect("an outcome").code(),
        Some(0)
    );
    // At the time of the late words, and at that of the drain as the spec had it.
    world.advance(ms(700));
    let output = process.collected_stdout().expect("collected");
    assert!(output.is_sealed());
    assert_eq!(output.text(), "a");
    let (holders, members) = (process.holders(), process.members());
    world.advance(ms(1));
    let holders = now(holders).expect("an answer").expect("holders");
    assert_eq!(
        holders.len(),
        1,
        "it is named once, however often the drain was cut: {holders:?}"
    );
    assert_eq!(now(members).expect("an answer").expect("members").len(), 1);
    assert_eq!(
        world.requests()[0].spec.drain,
        Duration::from_secs(1),
        "a request is what it was"
    );
}

#[test]
fn a_drain_that_is_not_cut_runs_on_beside_one_that_is() {
    let (world, cut) = draining();
    let other = world.spawn(spec("app")).expect("a valid spec");
    world.advance(Duration::ZERO);
    cut.cut_drain();
    world.advance(ms(999));
    assert!(now(cut.done()).is_some() && now(other.done()).is_none());
    world.advance(ms(1));
    assert!(now(other.done()).is_some());
}

#[test]
fn a_drain_that_was_cut_before_the_start_is_zero_at_the_exit() {
    let world = ScriptedWorld::stepped();
    let daemon = ScriptedMember::new(12, "daemon").holding(StreamName::Stdout);
    world.program(
        "app",
        Script::new()
            .waits(ms(50))
            .starts()
            .bears(daemon)
            .stdout("all")
            .waits(ms(50))
            .exits(4),
    );
    let process = world.spawn(spec("app")).expect("a valid spec");
    process.cut_drain();
    world.advance(ms(99));
    assert!(now(process.started()).is_some() && now(process.done()).is_none());
    world.advance(ms(1));
    assert_eq!(
        now(process.done()).expect("done").expect("an outcome").code(),
        Some(4)
    );
    let output = process.collected_stdout().expect("collected");
    assert_eq!((output.text().as_str(), output.is_sealed()), ("all", true));
}

#[test]
fn a_cut_drain_does_not_hide_that_the_owner_was_lost() {
    let (world, process) = one(Script::new()
        .wait_for("crash")
        .loses_ownership("the agent crashed"));
    process.cut_drain();
    world.open("crash");
    world.advance(Duration::ZERO);
    process.cut_drain();
    world.run();
    let error = now(process.done()).expect("done").expect_err("lost");
    assert_eq!(error.kind(), ErrorKind::OwnershipLost);
}

#[test]
fn o5_a_tree_that_cleans_up_is_gone_when_the_last_member_is() {
    let tidy = ScriptedMember::new(5, "tidy").cleaning_up_for(ms(700));
    let (world, process) = one(Script::new().bears(tidy));
    let mut termination = process.terminate();
    world.advance(ms(699));
    assert!(now(&mut termination).is_none());
    assert!(
        now(process.done())
            .expect("done")
            .expect("an outcome")
            .signal()
            .is_some()
    );
    world.advance(ms(1));
    now(termination).expect("ended").expect("gone");
    let ended = process.ended();
    world.advance(ms(1));
    assert_eq!(now(ended).expect("an answer").expect("ended")[0].pid, Some(5));
    world.run();
    assert!(
        world.requests()[0]
            .signals
            .iter()
            .all(|sent| sent.signal.as_str() == "SIGTERM")
    );
}

#[test]
fn what_the_world_measured_is_told() {
    let used = Usage::new(Some(ms(40)), None, Some(1 << 40));
    let (world, process) = one(Script::new().uses(used).exits(0));
    let usage = process.usage();
    world.advance(ms(1));
    assert_eq!(now(usage).expect("an answer").expect("usage"), used);
}

#[test]
fn a_slow_reader_slows_the_target_and_a_closed_pipe_ends_it() {
    let world = ScriptedWorld::stepped();
    world.program(
        "app",
        Script::new().stdout(vec![b'x'; 100_000]).stdout("end").exits(0),
    );
    let piped = || {
        let mut spec = spec("app");
        spec.stdout = Output::Pipe;
        world.spawn(spec).expect("a valid spec")
    };
    let mut read = piped();
    let mut output = read.stdout().expect("piped");
    world.run();
    assert!(
        now(read.done()).is_none(),
        "the target got rid of more than a pipe holds"
    );
    let mut bytes = vec![0; 100_000];
    let mut reading = std::pin::pin!(output.read_exact(&mut bytes));
    while now(reading.as_mut()).is_none() {
        world.advance(ms(1));
    }
    assert_eq!(
        now(read.done()).expect("done").expect("an outcome").code(),
        Some(0)
    );

    let mut closed = piped();
    world.run();
    drop(closed.stdout());
    world.run();
    let outcome = now(closed.done()).expect("done").expect("an outcome");
    assert_eq!(outcome.signal().expect("a signal").as_str(), "SIGPIPE");
}

#[test]
fn what_escaped_is_named_and_hinders_nothing() {
    let daemon = ScriptedMember::new(66, "daemon")
        .holding(StreamName::Stdout)
        .escaping();
    let (world, process) = one(Script::new().bears(daemon).wait_for("reboot").member_ends(66));
    let termination = process.terminate();
    world.run();
    now(termination)
        .expect("ended")
        .expect("gone, as far as the mechanism sees");
    let (survivors, members, holders) = (process.survivors(), process.members(), process.holders());
    world.advance(ms(1));
    let survivors = now(survivors).expect("an answer").expect("survivors");
    assert_eq!(
        (survivors.len(), survivors[0].pid, survivors[0].uncertain),
        (1, Some(66), true)
    );
    assert!(now(members).expect("an answer").expect("members").is_empty());
    assert_eq!(
        now(holders).expect("an answer").expect("holders").len(),
        1,
        "it holds the stream all the same"
    );
    assert!(
        world.requests()[0].signals.iter().all(|sent| sent.to.is_none()),
        "a signal reached what escaped"
    );
    world.open("reboot");
    world.advance(Duration::ZERO);
    let survivors = process.survivors();
    world.advance(ms(1));
    assert!(now(survivors).expect("an answer").expect("survivors").is_empty());
}
