//! Contract I: what a program on a terminal is given, and when there is none.

use std::time::Duration;

use dsh_subprocess::{EnvOverlay, ErrorKind, Lookup, MAX_GRACE, MayHaveStarted, TerminalSize, TerminalSpec};
use tokio_util::sync::CancellationToken;

use super::World;
use super::child::by_now;
use super::session::{Session, open, ready, refusal, spawned};
use super::watchdog::within;

/// A spec that is wrong in itself, or cancelled already, starts nothing.
pub async fn item_83_a_wrong_spec_starts_nothing(world: &World) {
    let cases: [fn(&mut TerminalSpec); 6] = [
        |spec| spec.argv.clear(),
        |spec| spec.argv[0] = "".into(),
        |spec| spec.argv.push("a\0b".into()),
        |spec| spec.grace = Duration::ZERO,
        |spec| spec.drain = MAX_GRACE + Duration::from_millis(1),
        |spec| spec.terminal_type = "".into(),
    ];
    for change in cases {
        let Some(error) = refusal(world, change).await else {
            return;
        };
        assert_eq!(error.kind(), ErrorKind::InvalidSpec, "{error}");
        assert_eq!(error.started(), MayHaveStarted::No);
    }
    let Some(error) = refusal(world, |spec| spec.cancel.cancel()).await else {
        return;
    };
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
}

/// The token abandons the allocation, and so does dropping the future: nothing is left for a disposal to end.
pub async fn item_84_an_abandoned_allocation_leaves_nothing(world: &World) {
    let runtime = world.runtime();
    let spec = world.terminal_spec(&["sleep"]);
    let cancel = spec.cancel.clone();
    let allocation = runtime.spawn_terminal(spec);
    cancel.cancel();
    match within("an answer", allocation).await {
        // The terminal was faster.
        Ok(terminal) => assert!(by_now(terminal.done()).is_none(), "the token ended a terminal"),
        Err(error) if world.guarantees.terminal => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
        Err(error) => return assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
    }
    let mut spec = world.terminal_spec(&["ignore-term"]);
    spec.grace = Duration::from_millis(100);
    drop(runtime.spawn_terminal(spec));
    within("disposal", runtime.dispose())
        .await
        .expect("every session can be ended");
}

/// Once the handle is there, the token does nothing to the terminal.
pub async fn item_84_the_token_is_for_the_allocation_alone(world: &World) {
    let spec = world.terminal_spec(&["terminal", "raw", "cat"]);
    let cancel = spec.cancel.clone();
    let Some(mut session) = open(world, spec).await else {
        return;
    };
    session.until("ready\n").await;
    cancel.cancel();
    session.types("still here").await;
    assert_eq!(session.bytes(10).await, b"still here");
    session.end().await;
}

/// The program leads a session, whose controlling terminal it has at its three streams and in the foreground; no signal is
/// ignored or blocked.
pub async fn item_85_the_program_leads_a_session_on_its_terminal(world: &World) {
    let Some(mut session) = open(world, world.terminal_spec(&["terminal", "facts"])).await else {
        return;
    };
    assert_eq!(session.pid().is_some(), world.guarantees.process_ids);
    assert_eq!(
        session.line().await,
        "terminals session foreground controlling signals"
    );
    assert!(session.finish().await.0.success());
}

/// The environment is that of any child: scrubbed, with the caller's entries on top.
pub async fn item_85_the_environment_is_scrubbed(world: &World) {
    let mut spec = world.terminal_spec(&["env"]);
    spec.env.insert("EXPLICIT_API_KEY".into(), Some("given".into()));
    let Some(session) = open(world, spec).await else {
        return;
    };
    let variables = variables(session).await;
    for name in &world.hidden {
        assert_eq!(
            value(&variables, &name.to_string_lossy()),
            None,
            "{name} reached the program"
        );
    }
    for name in &world.kept {
        assert!(
            value(&variables, &name.to_string_lossy()).is_some(),
            "{name} did not"
        );
    }
    assert_eq!(value(&variables, "EXPLICIT_API_KEY"), Some("given"));
}

/// A program or a working directory that is missing is an error of its kind, and no child that prints so.
pub async fn item_86_a_program_that_cannot_run_is_an_error(world: &World) {
    let missing = world.missing.clone();
    let Some(error) = refusal(world, |spec| spec.argv[0] = missing.as_world_string().clone()).await else {
        return;
    };
    assert_eq!(error.kind(), ErrorKind::ProgramNotFound, "{error}");
    assert_eq!(error.started(), MayHaveStarted::No);
    let mut directories = vec![
        (&world.missing, ErrorKind::CwdNotFound),
        (&world.file, ErrorKind::CwdNotDirectory),
    ];
    directories.extend(
        world
            .locked_directory
            .as_ref()
            .map(|locked| (locked, ErrorKind::CwdNotSearchable)),
    );
    for (directory, kind) in directories {
        let Some(error) = refusal(world, |spec| spec.cwd = directory.clone()).await else {
            return;
        };
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(error.started(), MayHaveStarted::No);
        assert!(
            error.to_string().contains(&*directory.to_string_lossy()),
            "{error}"
        );
    }
}

/// A disposed runtime makes no terminal.
pub async fn item_86_a_disposed_runtime_makes_no_terminal(world: &World) {
    let runtime = world.runtime();
    within("disposal", runtime.dispose())
        .await
        .expect("nothing is left to end");
    let error = within(
        "a refusal",
        runtime.spawn_terminal(world.terminal_spec(&["sleep"])),
    )
    .await
    .expect_err("the runtime was disposed of");
    let expected = if world.guarantees.terminal {
        ErrorKind::Disposed
    } else {
        ErrorKind::Unsupported
    };
    assert_eq!(error.kind(), expected, "{error}");
}

/// A size of 0 is refused, and any other is right at the program's first instruction.
pub async fn item_87_the_size_is_right_from_the_first_instruction(world: &World) {
    for (rows, cols) in [(0, 80), (24, 0)] {
        let Some(error) = refusal(world, |spec| spec.size = TerminalSize { rows, cols }).await else {
            return;
        };
        assert_eq!(error.kind(), ErrorKind::InvalidSpec, "{error}");
    }
    for (rows, cols) in [(7, 133), (1, 1), (u16::MAX, u16::MAX)] {
        let mut spec = world.terminal_spec(&["terminal", "size"]);
        spec.size = TerminalSize { rows, cols };
        let Some(mut session) = open(world, spec).await else {
            return;
        };
        assert_eq!(session.line().await, format!("{rows} {cols}"));
        assert!(session.finish().await.0.success());
    }
}

/// What the system and the user's shell are is told; a shell that is there can be run.
pub async fn item_180_the_system_and_the_shell_are_told(world: &World) {
    let runtime = world.runtime();
    let told = within("an answer", runtime.terminal_environment()).await;
    if !world.guarantees.terminal {
        let error = told.expect_err("the world has no terminals");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        return;
    }
    let told = told.expect("an answer");
    assert!(!told.platform.is_empty());
    assert!(!told.shell.as_bytes().is_empty());
    if world.shell.is_some() {
        let lookup = Lookup {
            command: told.shell.as_world_string().clone(),
            env: EnvOverlay::new(),
            cancel: CancellationToken::new(),
        };
        let found = within("a look-up", runtime.resolve_executable(lookup))
            .await
            .expect("the shell is a program");
        assert_eq!(found, told.shell);
    }
}

/// The caller's terminal type becomes `TERM`, unless an entry of the caller's says otherwise.
pub async fn item_184_the_terminal_type_becomes_term(world: &World) {
    for (entry, expected) in [
        (None, Some("vt220")),
        (Some(Some("dumb".into())), Some("dumb")),
        (Some(None), None),
    ] {
        let mut spec = world.terminal_spec(&["env"]);
        spec.terminal_type = "vt220".into();
        spec.env.extend(entry.map(|value| ("TERM".into(), value)));
        let Some(session) = open(world, spec).await else {
            return;
        };
        assert_eq!(value(&variables(session).await, "TERM"), expected);
    }
}

/// A disposal ends every terminal, stubborn ones too.
pub async fn item_79_a_disposal_ends_every_terminal(world: &World) {
    let runtime = world.runtime();
    let mut ended = Vec::new();
    for call in [
        &["sleep"][..],
        &["ignore-term"],
        &["tree", "2"],
        &["hold-stdout", "ignore-term"],
    ] {
        let mut spec = world.terminal_spec(call);
        spec.grace = Duration::from_millis(100);
        let Some(terminal) = spawned(world, &*runtime, spec).await else {
            return;
        };
        ended.push(terminal);
    }
    within("disposal", runtime.dispose())
        .await
        .expect("every session can be ended");
    for terminal in ended {
        within("done", terminal.done()).await.expect("an outcome");
        assert!(by_now(terminal.terminate()).is_some(), "{terminal:?} was left");
    }
}

/// A dropped handle ends nothing, and its program is not held up by output that nobody reads any more.
pub async fn a_dropped_terminal_ends_nothing(world: &World) {
    let runtime = world.runtime();
    let spec = world.terminal_spec(&["flood", "1000000"]);
    let Some(terminal) = spawned(world, &*runtime, spec).await else {
        return;
    };
    let done = terminal.done();
    drop(terminal);
    let outcome = within("done", done).await.expect("an outcome");
    assert!(outcome.success(), "{outcome}");
}

/// A scoped handle terminates when it is dropped.
pub async fn a_scoped_terminal_ends_its_session(world: &World) {
    let Some(session) = ready(world, &["sleep"]).await else {
        return;
    };
    let (terminal, _kept) = session.into_parts();
    let done = terminal.done();
    drop(terminal.scoped());
    let outcome = within("done", done).await.expect("an outcome");
    assert_eq!(
        outcome.signal().map(|signal| signal.as_str().to_owned()),
        Some("SIGTERM".to_owned())
    );
}

async fn variables(session: Session) -> String {
    let (outcome, printed) = session.finish().await;
    assert!(outcome.success(), "{outcome}");
    String::from_utf8_lossy(&printed).into_owned()
}

fn value<'a>(variables: &'a str, name: &str) -> Option<&'a str> {
    variables
        .split('\0')
        .find_map(|variable| variable.strip_prefix(name)?.strip_prefix('='))
}
