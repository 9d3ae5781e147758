//! Typing in a scripted world, whose programs read when the script says so.

use std::io::Cursor;
use std::time::Duration;

use dsh_subprocess::{EnvOverlay, Outcome, SubprocessRuntime, TerminalSize, TerminalSpec};
use dsh_subprocess_testkit::scripted::{Script, ScriptedWorld};
use tokio_util::sync::CancellationToken;

use super::*;

/// Runs the script on a terminal and types this.
async fn type_at(script: Script, keys: impl Into<Vec<u8>>) -> (Terminal, Result<(), Stop>) {
    let world = ScriptedWorld::free_running();
    world.program("p", script);
    let spec = TerminalSpec {
        argv: vec!["p".into()],
        cwd: "/".into(),
        env: EnvOverlay::new(),
        terminal_type: "dumb".into(),
        size: TerminalSize { rows: 24, cols: 80 },
        grace: Duration::from_secs(1),
        drain: Duration::ZERO,
        cancel: CancellationToken::new(),
    };
    let terminal = world.spawn_terminal(spec).await.expect("the program is there");
    let queue = read_ahead(Cursor::new(keys.into())).expect("a thread is left");
    let typed = type_input(queue, &terminal).await;
    (terminal, typed)
}

#[tokio::test]
async fn what_is_read_after_the_bound_of_a_write_is_typed_whole() {
    // A write is given up after 5 s.
    let script = Script::new()
        .starts()
        .waits(Duration::from_secs(60))
        .reads(200_000)
        .exits(0);
    let (terminal, typed) = type_at(script, vec![b'x'; 200_000]).await;
    assert!(typed.is_ok(), "{typed:?}");
    let outcome = terminal.done().await.expect("its end is seen");
    assert_eq!(outcome, Outcome::Exited { code: 0 });
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused() {
    let script = Script::new().starts().collects_lines(true).reads_line().exits(0);
    let (_, typed) = type_at(script, vec![b'x'; 5000]).await;
    let stop = typed.expect_err("it would be cut");
    assert_eq!(stop.status(), 125);
    assert!(stop.spoken().starts_with("stdin: "), "{stop:?}");
    assert_eq!(stop.failure().expect("it is one").kind, "input");
}

#[tokio::test]
async fn a_program_that_has_ended_wants_nothing_more() {
    let (_, typed) = type_at(Script::new().starts().exits(0), vec![b'x'; 200_000]).await;
    assert!(typed.is_ok(), "{typed:?}");
}
