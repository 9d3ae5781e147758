//! Terminals of the scripted world: what a consumer of one meets, in virtual time.

use std::time::Duration;

use dsh_subprocess::{
    Environment, Error, ErrorKind, Foreground, InputWaiting, MayHaveStarted, Member, Outcome,
    SubprocessRuntime, Terminal, TerminalOutput, TerminalSignal, TerminalSize,
};
use dsh_subprocess_testkit::scripted::{
    Reaction, Script, ScriptedForeground, ScriptedMember, ScriptedWorld, TerminationCause,
};
use tokio::io::{AsyncReadExt, ReadBuf};

use crate::setup::{ms, now, spec, terminal_spec};

/// Starts a program on a terminal.
fn open(world: &ScriptedWorld, script: Script) -> Terminal {
    world.program("app", script);
    let allocation = world.spawn_terminal(terminal_spec("app"));
    world.advance(Duration::ZERO);
    now(allocation).expect("an answer").expect("it starts")
}

/// What there is to be read now.
fn read(output: &mut TerminalOutput) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 21];
    let mut buffer = ReadBuf::new(&mut bytes);
    while now(std::future::poll_fn(|context| {
        let filled = buffer.filled().len();
        std::task::ready!(tokio::io::AsyncRead::poll_read(
            std::pin::Pin::new(&mut *output),
            context,
            &mut buffer
        ))
        .expect("it can be read");
        std::task::Poll::Ready(buffer.filled().len() > filled)
    })) == Some(true)
    {}
    buffer.filled().to_vec()
}

fn failure<T: std::fmt::Debug>(answer: Option<Result<T, Error>>) -> (ErrorKind, Option<u64>) {
    let error = answer.expect("an answer").expect_err("it is refused");
    (error.kind(), error.written())
}

#[test]
fn a_terminal_is_there_once_its_program_runs() {
    let world = ScriptedWorld::stepped();
    world.program(
        "app",
        Script::new()
            .waits(Duration::from_secs(60))
            .starts_as(77)
            .exits(3),
    );
    let mut allocation = world.spawn_terminal(terminal_spec("app"));
    world.advance(Duration::from_secs(59));
    assert!(now(&mut allocation).is_none());
    world.advance(Duration::from_secs(1));
    let terminal = now(allocation).expect("an answer").expect("it starts");
    assert_eq!(terminal.pid(), Some(77));
    assert_eq!(
        now(terminal.done()).expect("done").expect("an outcome").code(),
        Some(3)
    );
}

#[test]
fn a_request_is_recorded_word_for_word_and_among_the_terminals_alone() {
    let world = ScriptedWorld::stepped();
    drop(open(&world, Script::new().stdout("$ ").exits(0)));
    assert!(world.requests().is_empty());
    let terminals = world.terminals();
    assert_eq!(terminals.len(), 1);
    assert_eq!(terminals[0].spec.argv, ["app".into()]);
    assert_eq!(terminals[0].spec.size, TerminalSize { rows: 24, cols: 80 });
    let names: Vec<_> = terminals[0]
        .environment
        .names()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, ["PATH", "TERM"]);
}

#[test]
fn a_failed_start_is_the_error_of_the_allocation() {
    let world = ScriptedWorld::stepped();
    let why = Error::new(ErrorKind::ResourceExhausted, "spawn", "no terminal is left");
    world.program("app", Script::new().waits(ms(5)).fails(why));
    let allocation = world.spawn_terminal(terminal_spec("app"));
    world.advance(ms(5));
    assert_eq!(failure(now(allocation)).0, ErrorKind::ResourceExhausted);
}

#[test]
fn a_cancelled_or_dropped_allocation_starts_nothing() {
    let world = ScriptedWorld::stepped();
    world.program("app", Script::new().waits(Duration::from_secs(60)).starts());
    let spec = terminal_spec("app");
    let cancel = spec.cancel.clone();
    let allocation = world.spawn_terminal(spec);
    world.advance(ms(1));
    cancel.cancel();
    world.advance(Duration::ZERO);
    let error = now(allocation).expect("an answer").expect_err("it was cancelled");
    assert_eq!(
        (error.kind(), error.started()),
        (ErrorKind::Cancelled, MayHaveStarted::No)
    );

    drop(world.spawn_terminal(terminal_spec("app")));
    world.advance(Duration::ZERO);
    for terminal in world.terminals() {
        assert_eq!(terminal.terminations[0].cause, TerminationCause::Cancel);
        assert!(terminal.signals.is_empty(), "a program was started");
    }
    now(world.dispose())
        .expect("nothing is left")
        .expect("it is gone");
}

#[test]
fn a_token_that_is_faster_than_the_handle_ends_what_has_started() {
    let world = ScriptedWorld::stepped();
    world.program(
        "app",
        Script::new().on_term(Reaction::Ends {
            after: ms(20),
            outcome: Outcome::Exited { code: 0 },
        }),
    );
    let spec = terminal_spec("app");
    let cancel = spec.cancel.clone();
    let mut allocation = world.spawn_terminal(spec);
    world.advance(Duration::ZERO);
    cancel.cancel();
    assert!(now(&mut allocation).is_none(), "something is left running");
    world.advance(ms(20));
    let error = now(allocation).expect("an answer").expect_err("it was cancelled");
    assert_eq!(
        (error.kind(), error.started()),
        (ErrorKind::Cancelled, MayHaveStarted::Yes)
    );
}

#[test]
fn what_is_typed_reaches_the_steps_that_read() {
    let world = ScriptedWorld::stepped();
    let mut terminal = open(
        &world,
        Script::new()
            .stdout("$ ")
            .reads_line()
            .stdout("name: ")
            .expects("Ada\n")
            .reads(2)
            .exits(0),
    );
    let mut output = terminal.output().expect("not taken yet");
    assert_eq!(read(&mut output), b"$ ");
    let write = terminal.write("greet\nAda\nq");
    world.advance(ms(1));
    assert!(now(write).expect("an answer").is_ok());
    assert_eq!(read(&mut output), b"name: ");
    drop(terminal.write("u and more"));
    world.advance(Duration::ZERO);
    assert_eq!(world.violations(), <Vec<String>>::new());
    assert!(
        now(terminal.done()).is_none(),
        "a write that nobody polled was dropped"
    );
    let write = terminal.write("u and more");
    world.advance(Duration::ZERO);
    drop(write);
    let request = &world.terminals()[0];
    assert_eq!(
        (&request.typed[..], &request.read[..]),
        (&b"greet\nAda\nqu and more"[..], &b"greet\nAda\nqu"[..])
    );
    assert!(now(terminal.done()).expect("done").expect("an outcome").success());
    let mut rest = Vec::new();
    now(output.read_to_end(&mut rest))
        .expect("the end")
        .expect("no error");
    assert_eq!(rest, b"");
}

#[test]
fn a_line_too_long_is_refused_while_lines_are_collected() {
    let world = ScriptedWorld::stepped();
    let terminal = open(
        &world,
        Script::new()
            .collects_lines(true)
            .reads_line()
            .collects_lines(false)
            .reads(5000),
    );
    let long = "x".repeat(5000);
    for line in ["echo\n", &long] {
        let write = terminal.write(line.to_owned());
        world.advance(ms(1));
        assert!(now(write).expect("an answer").is_ok());
    }

    let terminal = open(&world, Script::new().collects_lines(true).echoes());
    let write = terminal.write(format!("echo\n{long}\n"));
    world.advance(ms(1));
    assert_eq!(failure(now(write)), (ErrorKind::LineTooLong, Some(5)));
}

#[test]
fn a_write_that_is_not_read_is_given_up_after_the_bound() {
    let world = ScriptedWorld::stepped();
    world.set_write_bound(Duration::from_secs(2));
    let terminal = open(&world, Script::new().waits(Duration::from_secs(1)).reads(1000));
    let mut write = terminal.write(vec![b'x'; 10_000]);
    world.advance(Duration::from_secs(1));
    // 1,000 bytes have made room, and the time begins anew.
    world.advance(ms(1999));
    assert!(now(&mut write).is_none());
    world.advance(ms(1));
    assert_eq!(failure(now(write)), (ErrorKind::InputNotRead, Some(5096)));
    // The session goes on.
    let resize = terminal.resize(TerminalSize { rows: 1, cols: 1 });
    world.advance(ms(1));
    assert!(now(resize).expect("an answer").is_ok());
}

#[test]
fn an_unread_output_holds_the_program_up_but_not_a_write() {
    let world = ScriptedWorld::stepped();
    let mut terminal = open(
        &world,
        Script::new()
            .stdout(vec![b'o'; 100_000])
            .reads(5000)
            .stdout("read")
            .exits(0),
    );
    let mut output = terminal.output().expect("not taken yet");
    let held = read(&mut output);
    assert!(held.len() < 100_000, "nothing held the program up");
    world.run();
    let mut write = terminal.write("x");
    world.run();
    assert!(
        now(&mut write).expect("an answer").is_ok(),
        "there was room for it"
    );
    assert!(now(terminal.done()).is_none());
    let write = terminal.write(vec![b'x'; 4999]);
    world.run();
    assert!(now(write).expect("an answer").is_ok());
    let kept = read(&mut output);
    world.run();
    assert!(now(terminal.done()).expect("done").is_ok());
    assert_eq!(
        [held, kept, read(&mut output)].concat(),
        [vec![b'o'; 100_000], b"read".to_vec()].concat()
    );
}

#[test]
fn sizes_are_recorded_and_told_to_the_program_where_they_change() {
    let world = ScriptedWorld::stepped();
    let mut terminal = open(
        &world,
        Script::new()
            .prints_size()
            .until_signal(TerminalSignal::WindowChange)
            .prints_size(),
    );
    let mut output = terminal.output().expect("not taken yet");
    world.advance(ms(4));
    for rows in [24, 30] {
        drop(terminal.resize(TerminalSize { rows, cols: 80 }));
    }
    world.advance(Duration::ZERO);
    assert_eq!(read(&mut output), b"24 80\n30 80\n");
    let request = &world.terminals()[0];
    let resizes: Vec<_> = request
        .resizes
        .iter()
        .map(|resize| (resize.at, resize.size.rows))
        .collect();
    assert_eq!(resizes, [(ms(4), 24), (ms(4), 30)]);
    let signals: Vec<_> = request.signals.iter().map(|sent| sent.signal.as_str()).collect();
    assert_eq!(signals, ["SIGWINCH"]);
}

#[test]
fn a_look_takes_as_long_as_the_world_is_far_away() {
    let world = ScriptedWorld::stepped();
    world.set_latency(Duration::from_secs(2));
    let terminal = open(&world, Script::new());
    let mut look = terminal.inspect_foreground();
    world.advance(ms(1999));
    assert!(now(&mut look).is_none());
    world.advance(ms(1));
    assert!(now(look).expect("an answer").expect("it runs").is_some());
}

#[test]
fn the_program_waits_for_input_while_its_script_reads() {
    let world = ScriptedWorld::stepped();
    let terminal = open(&world, Script::new().wait_for("work").reads_line());
    let look = || {
        let look = terminal.inspect_foreground();
        world.advance(ms(1));
        now(look)
            .expect("an answer")
            .expect("it runs")
            .expect("somebody")
            .input
    };
    assert_eq!(look(), InputWaiting::NotWaiting);
    world.open("work");
    assert_eq!(look(), InputWaiting::Proven);
}

#[test]
fn a_script_says_who_has_the_terminal() {
    let world = ScriptedWorld::stepped();
    let job = Foreground::new(
        900,
        InputWaiting::Unknown("it is far away".into()),
        Some(Member::new(900, "make")),
    );
    let terminal = open(
        &world,
        Script::new()
            .starts_as(7)
            .bears(ScriptedMember::new(900, "make"))
            .hands_terminal_to(ScriptedForeground::Group(job.clone()))
            .wait_for("the end of make")
            .hands_terminal_to(ScriptedForeground::Nobody)
            .wait_for("the shell")
            .hands_terminal_to(ScriptedForeground::Program),
    );
    let look = || {
        let look = terminal.inspect_foreground();
        world.advance(ms(1));
        now(look).expect("an answer").expect("it runs")
    };
    let signal = |signal| {
        let sent = terminal.signal_foreground(signal);
        world.advance(ms(1));
        now(sent).expect("an answer")
    };
    assert_eq!(look(), Some(job));
    assert_eq!(signal(TerminalSignal::Interrupt).expect("a group"), 900);
    let members = terminal.tree().members();
    world.advance(ms(1));
    let members = now(members).expect("an answer").expect("members");
    assert_eq!(members.len(), 1, "the job was not interrupted: {members:?}");

    world.open("the end of make");
    world.advance(Duration::ZERO);
    assert_eq!(look(), None);
    let error = signal(TerminalSignal::Interrupt).expect_err("nobody has the terminal");
    assert_eq!(error.kind(), ErrorKind::NoForeground);

    world.open("the shell");
    world.advance(Duration::ZERO);
    let error = signal(TerminalSignal::Kill).expect_err("it is the shell's own group");
    assert_eq!(error.kind(), ErrorKind::OwnGroup);
    assert_eq!(signal(TerminalSignal::Quit).expect("a group"), 7);
    let outcome = now(terminal.done()).expect("done").expect("an outcome");
    assert_eq!(outcome.signal().expect("a signal").as_str(), "SIGQUIT");
    let sent: Vec<_> = world.terminals()[0]
        .signals
        .iter()
        .map(|sent| (sent.to, sent.signal.as_str().to_owned()))
        .collect();
    assert_eq!(
        sent,
        [(Some(900), "SIGINT".to_owned()), (None, "SIGQUIT".to_owned())]
    );
}

#[test]
fn a_script_says_what_its_program_does_about_a_signal() {
    let world = ScriptedWorld::stepped();
    let terminal = open(
        &world,
        Script::new()
            .on_signal(TerminalSignal::Interrupt, Reaction::Ignores)
            .on_signal(
                TerminalSignal::HangUp,
                Reaction::Ends {
                    after: ms(30),
                    outcome: Outcome::Exited { code: 129 },
                },
            ),
    );
    for signal in [
        TerminalSignal::Interrupt,
        TerminalSignal::Stop,
        TerminalSignal::HangUp,
    ] {
        drop(terminal.signal_foreground(signal));
    }
    world.advance(ms(29));
    assert!(now(terminal.done()).is_none());
    world.advance(ms(1));
    assert_eq!(
        now(terminal.done()).expect("done").expect("an outcome").code(),
        Some(129)
    );
}

#[test]
fn the_exit_of_the_program_ends_what_it_left() {
    let world = ScriptedWorld::stepped();
    let terminal = open(
        &world,
        Script::new()
            .bears(ScriptedMember::new(5, "daemon").ignoring_term())
            .exits(0),
    );
    world.advance(Duration::from_secs(3));
    now(terminal
        .tree()
        .wait_for_exit(&tokio_util::sync::CancellationToken::new()))
    .expect("the session is gone")
    .expect("it is observed");
    let request = &world.terminals()[0];
    assert_eq!(request.terminations[0].cause, TerminationCause::ProgramExit);
    let signals: Vec<_> = request.signals.iter().map(|sent| sent.signal.as_str()).collect();
    assert_eq!(signals, ["SIGTERM", "SIGKILL"]);
}

#[test]
fn an_output_that_somebody_out_of_reach_holds_open_ends_with_the_drain() {
    let world = ScriptedWorld::stepped();
    let mut terminal = open(
        &world,
        Script::new()
            .bears(
                ScriptedMember::new(5, "daemon")
                    .holding(dsh_subprocess::StreamName::Stdout)
                    .escaping(),
            )
            .stdout("bye")
            .exits(0)
            .waits(Duration::from_secs(5))
            .stdout("too late"),
    );
    let mut output = terminal.output().expect("not taken yet");
    world.advance(ms(999));
    assert!(now(terminal.done()).is_none());
    world.advance(Duration::from_secs(10));
    assert!(now(terminal.done()).expect("done").expect("an outcome").success());
    let mut printed = Vec::new();
    now(output.read_to_end(&mut printed))
        .expect("the end")
        .expect("no error");
    assert_eq!(printed, b"bye");
}

#[test]
fn an_output_that_is_held_open_ends_when_the_drain_is_cut() {
    let world = ScriptedWorld::stepped();
    let holder = ScriptedMember::new(5, "holder")
        .holding(dsh_subprocess::StreamName::Stdout)
        .ignoring_term();
    let mut terminal = open(&world, Script::new().bears(holder).stdout("bye").exits(0));
    let mut output = terminal.output().expect("not taken yet");
    world.advance(ms(10));
    assert!(now(terminal.done()).is_none());
    terminal.tree().cut_drain();
    world.advance(Duration::ZERO);
    assert!(now(terminal.done()).expect("done").expect("an outcome").success());
    let mut printed = Vec::new();
    now(output.read_to_end(&mut printed))
        .expect("the end")
        .expect("no error");
    assert_eq!(printed, b"bye");
    let holders = terminal.tree().holders();
    world.advance(ms(1));
    assert_eq!(now(holders).expect("an answer").expect("holders").len(), 1);
}

#[test]
fn a_termination_ends_the_calls_in_flight_before_their_answers_arrive() {
    let world = ScriptedWorld::stepped();
    world.set_latency(Duration::from_secs(60));
    let terminal = open(&world, Script::new());
    let (write, look) = (terminal.write(vec![b'x'; 10_000]), terminal.inspect_foreground());
    world.advance(Duration::ZERO);
    let end = terminal.terminate();
    assert_eq!(failure(now(write)), (ErrorKind::Exited, Some(4096)));
    assert_eq!(failure(now(look)).0, ErrorKind::Exited);
    assert_eq!(failure(now(terminal.write("late"))), (ErrorKind::Exited, Some(0)));
    world.advance(Duration::ZERO);
    now(end).expect("an answer").expect("the session can be ended");
}

#[test]
fn a_termination_after_survivors_tries_again() {
    let world = ScriptedWorld::stepped();
    let terminal = open(
        &world,
        Script::new()
            .bears(ScriptedMember::new(5, "stuck").unkillable())
            .wait_for("the disk")
            .member_ends(5),
    );
    let first = terminal.terminate();
    world.run();
    let error = now(first).expect("an answer").expect_err("somebody is stuck");
    assert_eq!(error.kind(), ErrorKind::Survivors);
    assert_eq!(error.survivors().len(), 1);
    let mut second = terminal.terminate();
    assert!(now(&mut second).is_none(), "the second one did not try");
    world.open("the disk");
    world.advance(Duration::ZERO);
    now(second).expect("an answer").expect("nobody is left");
}

#[test]
fn a_lost_connection_fails_the_calls_until_it_is_back() {
    let world = ScriptedWorld::stepped();
    let terminal = open(
        &world,
        Script::new()
            .disconnects("the cable is out")
            .wait_for("the cable")
            .reconnects()
            .reads(1),
    );
    assert_eq!(failure(now(terminal.write("x"))).0, ErrorKind::Transport);
    let resize = terminal.resize(TerminalSize { rows: 1, cols: 1 });
    world.advance(ms(1));
    assert_eq!(failure(now(resize)).0, ErrorKind::Transport);
    world.open("the cable");
    let write = terminal.write("x");
    world.advance(ms(1));
    assert_eq!(failure(now(write)).0, ErrorKind::Transport, "it was asked before");
    let write = terminal.write("x");
    world.advance(ms(1));
    assert!(now(write).expect("an answer").is_ok());
}

#[test]
fn the_system_and_the_shell_are_the_worlds_own() {
    let world = ScriptedWorld::stepped();
    let ask = || {
        let told = world.terminal_environment();
        world.advance(ms(1));
        now(told).expect("an answer").expect("it has terminals")
    };
    assert_eq!(
        (ask().platform.as_str(), ask().shell),
        ("scripted", "world://bin/sh".into())
    );
    world
        .set_platform("windows")
        .set_base_environment(Environment::from_iter([(
            "SHELL".into(),
            "world://bin/fish".into(),
        )]));
    assert_eq!(
        (ask().platform.as_str(), ask().shell),
        ("windows", "world://bin/fish".into())
    );
}

#[test]
#[should_panic(expected = "without a terminal")]
fn a_script_for_a_terminal_is_a_mistake_elsewhere() {
    let world = ScriptedWorld::stepped();
    world.program("app", Script::new().prints_size());
    drop(world.spawn(spec("app")));
}
