//! Contract I: who has a terminal, whether it waits for input, and its signals.

use std::time::Duration;

use dsh_subprocess::{ErrorKind, InputWaiting, Outcome, TerminalSignal, TerminalSpec};

use super::World;
use super::session::{Session, open, ready, ready_with};
use super::watchdog::within;

/// An interactive shell with a prompt that nothing else prints. `None` where the world has no shell, or no terminals.
async fn interactive(world: &World) -> Option<Session> {
    let mut spec: TerminalSpec = world.shell_terminal("")?;
    spec.argv = vec![spec.argv[0].clone(), "-i".into()];
    spec.env.insert("PS1".into(), Some("prompt> ".into()));
    let mut session = open(world, spec).await?;
    session.until("prompt> ").await;
    Some(session)
}

/// Asserts what a look must say of somebody who waits: the proof where the world gives it, and never that nobody does.
async fn waits(world: &World, session: &Session, what: &str) {
    if world.guarantees.proves_input_waiting {
        session
            .foreground_until(what, |foreground| foreground.input.is_proven())
            .await;
    } else {
        let input = session.foreground().await.input;
        assert!(matches!(input, InputWaiting::Unknown(_)), "{what}: {input}");
    }
}

/// Asserts what a look must say when nobody waits.
async fn does_not_wait(world: &World, session: &Session, what: &str) {
    let input = session.foreground().await.input;
    if world.guarantees.proves_input_waiting {
        assert_eq!(input, InputWaiting::NotWaiting, "{what}");
    } else {
        assert!(matches!(input, InputWaiting::Unknown(_)), "{what}: {input}");
    }
}

/// The program's own group has the terminal at first, and its command is told.
pub async fn item_91_the_program_is_in_the_foreground_at_first(world: &World) {
    let Some(session) = ready(world, &["sleep"]).await else {
        return;
    };
    let foreground = session.foreground().await;
    let member = foreground.member.expect("the program lives");
    assert!(member.command.contains("sleep"), "{member:?}");
    if world.guarantees.process_ids {
        assert_eq!(Some(foreground.process_group_id), session.pid());
        assert_eq!(member.pid, session.pid());
    }
    session.end().await;
}

/// A job of a shell is in the foreground while it runs, and the shell again after it.
pub async fn item_91_a_job_is_in_the_foreground_while_it_runs(world: &World) {
    let Some(mut session) = interactive(world).await else {
        return;
    };
    let shell = session.foreground().await.process_group_id;
    session.types("cat\n").await;
    let job = session
        .foreground_until("the job has the terminal", |foreground| {
            let is_cat = |command: &str| command.contains("cat");
            foreground.process_group_id != shell
                && foreground
                    .member
                    .as_ref()
                    .is_some_and(|member| is_cat(&member.command))
        })
        .await;
    waits(world, &session, "cat at the terminal").await;
    session.types("to and fro\n").await;
    // Once as it is typed, once as it is copied.
    session.until("to and fro").await;
    session.until("to and fro").await;
    let signalled = within("a signal", session.signal_foreground(TerminalSignal::Interrupt))
        .await
        .expect("the job runs");
    assert_eq!(signalled, job.process_group_id);
    session.until("prompt> ").await;
    assert_eq!(session.foreground().await.process_group_id, shell);
    waits(world, &session, "a shell at its prompt").await;
    session.end().await;
}

/// A group whose leader has ended is found by those that are left of it.
pub async fn item_91_a_group_without_its_leader_is_found(world: &World) {
    let Some(session) = interactive(world).await else {
        return;
    };
    let shell = session.foreground().await.process_group_id;
    session.types("true | cat /dev/tty\n").await;
    let job = session
        .foreground_until("what is left of the job is told", |foreground| {
            let is_cat = |command: &str| command.contains("cat /dev/tty");
            foreground.process_group_id != shell
                && foreground
                    .member
                    .as_ref()
                    .is_some_and(|member| is_cat(&member.command))
        })
        .await;
    assert_ne!(
        job.member.and_then(|member| member.pid),
        Some(job.process_group_id),
        "the leader lives"
    );
    waits(world, &session, "what is left of a job").await;
    session.end().await;
}

/// Whoever reads the terminal waits for input, by whichever of its names.
pub async fn item_102_a_reader_of_the_terminal_waits(world: &World) {
    let Some(mut session) = ready(world, &["terminal", "raw", "cat"]).await else {
        return;
    };
    waits(world, &session, "a program that reads").await;
    session.types("more").await;
    assert_eq!(session.bytes(4).await, b"more");
    waits(world, &session, "a program that reads again").await;
    session.end().await;

    for read in [
        "cat </dev/tty",
        "exec 3<&0 </dev/null; cat /dev/fd/3",
        "read line",
    ] {
        let Some(spec) = world.shell_terminal(&format!("echo ready; {read}")) else {
            return;
        };
        let Some(session) = ready_with(world, spec).await else {
            return;
        };
        waits(world, &session, read).await;
        session.end().await;
    }
}

/// A program that does something else does not wait.
pub async fn item_102_a_program_that_does_not_read_does_not_wait(world: &World) {
    let Some(session) = ready(world, &["terminal", "raw", "sleep"]).await else {
        return;
    };
    does_not_wait(world, &session, "a program that sleeps").await;
    session.end().await;
}

/// A reader of something else than this terminal does not wait for its input.
pub async fn item_103_a_reader_of_a_pipe_does_not_wait(world: &World) {
    let probe = world.probe.to_string_lossy();
    let Some(spec) = world.shell_terminal(&format!("'{probe}' sleep </dev/null | cat")) else {
        return;
    };
    let Some(session) = ready_with(world, spec).await else {
        return;
    };
    does_not_wait(world, &session, "(a sleeper) | cat").await;
    session.end().await;
}

/// Every signal reaches the foreground group.
pub async fn item_92_signals_reach_the_foreground(world: &World) {
    let mut spec = world.terminal_spec(&["terminal", "signals"]);
    // It catches `SIGTERM`, too.
    spec.grace = Duration::from_millis(100);
    let Some(mut session) = ready_with(world, spec).await else {
        return;
    };
    let group = session.foreground().await.process_group_id;
    for signal in TerminalSignal::ALL {
        if signal == TerminalSignal::Kill {
            continue;
        }
        let signalled = within("a signal", session.signal_foreground(signal))
            .await
            .expect("the program runs");
        assert_eq!(signalled, group);
        assert_eq!(session.line().await, format!("got {}", signal.name().as_str()));
    }
    session.end().await;
}

/// The program's own group is not killed.
pub async fn item_92_the_programs_own_group_is_not_killed(world: &World) {
    let Some(mut session) = ready(world, &["terminal", "raw", "cat"]).await else {
        return;
    };
    let error = within("a refusal", session.signal_foreground(TerminalSignal::Kill))
        .await
        .expect_err("its own group has the terminal");
    assert_eq!(
        (error.kind(), error.operation()),
        (ErrorKind::OwnGroup, "signal"),
        "{error}"
    );
    session.types("alive").await;
    assert_eq!(session.bytes(5).await, b"alive");
    session.end().await;
}

/// A job is stopped, continued and killed without its shell.
pub async fn item_92_a_job_is_stopped_continued_and_killed(world: &World) {
    let Some(mut session) = interactive(world).await else {
        return;
    };
    let shell = session.foreground().await.process_group_id;
    let probe = world.probe.to_string_lossy().into_owned();
    session.types(format!("'{probe}' sleep\n")).await;
    session.until("ready").await;
    within("a stop", session.signal_foreground(TerminalSignal::Stop))
        .await
        .expect("the job runs");
    session.until("prompt> ").await;
    assert_eq!(session.foreground().await.process_group_id, shell);
    session.types("fg\n").await;
    session
        .foreground_until("the job has the terminal again", |foreground| {
            foreground.process_group_id != shell
        })
        .await;
    within("a kill", session.signal_foreground(TerminalSignal::Kill))
        .await
        .expect("the job runs");
    session.until("prompt> ").await;
    session.types("echo st''ill here; exit 5\n").await;
    session.until("still here").await;
    assert_eq!(session.finish().await.0, Outcome::Exited { code: 5 });
}

/// After the exit there is nobody to look at, or to signal.
pub async fn item_92_after_the_exit_nobody_is_in_the_foreground(world: &World) {
    let Some(session) = open(world, world.terminal_spec(&["exit", "0"])).await else {
        return;
    };
    session.outcome().await;
    let look = within("a refusal", session.inspect_foreground())
        .await
        .expect_err("the program has exited");
    assert_eq!(
        (look.kind(), look.operation()),
        (ErrorKind::Exited, "inspect"),
        "{look}"
    );
    let signal = within("a refusal", session.signal_foreground(TerminalSignal::Interrupt))
        .await
        .expect_err("the program has exited");
    assert_eq!(
        (signal.kind(), signal.operation()),
        (ErrorKind::Exited, "signal"),
        "{signal}"
    );
}
