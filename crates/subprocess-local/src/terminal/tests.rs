//! What no terminal of a machine in order does.

use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{
    EnvOverlay, ErrorKind, Outcome, Terminal, TerminalOutput, TerminalSize, TerminalSpec, WorldPath,
    WorldString,
};
use dsh_subprocess_sys::pipe;
use dsh_subprocess_sys::pty::{self, Pty};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use super::Master;
use super::driver::LocalTerminal;
use super::output::Output;
use crate::driver::LocalProcess;
use crate::environment::Ambient;
use crate::failure::Asked;
use crate::launch::{ChildEnds, begin};
use crate::machine::Machine;
use crate::{LocalRuntime, OwnershipChoice};

/// Starts `sleep` on a terminal of which the host has, in place of a master, an end of a pipe that cannot be read.
fn broken(machine: &Arc<Machine>) -> Terminal {
    let grace = Duration::from_secs(20);
    let tree = machine
        .new_tree(&EnvOverlay::new(), grace, grace, &CancellationToken::new())
        .expect("the runtime is in use");
    let pty = pty::open(24, 80).expect("a terminal");
    let made = pipe::pipe().expect("a pipe");
    let swapped = Pty {
        master: made.writer,
        slave: pty.slave,
    };
    let (master, slave) = Master::new(&tree, swapped, grace).expect("a pipe can be watched");
    tree.on_terminal(Arc::clone(&master));
    let asked = Asked {
        argv: ["sleep", "300"].map(WorldString::from).into(),
        cwd: WorldPath::from("/"),
        environment: machine.environment.child(&Ambient::Host, &EnvOverlay::new()),
    };
    begin(&tree, ChildEnds::Terminal(slave), asked, grace).expect("sleep is there");
    // Held until here: without it the terminal would have hung up before it had a session.
    drop(pty.master);
    let process = Arc::new(LocalProcess(Arc::clone(&tree)));
    let output = TerminalOutput::new(Output(Arc::clone(&master)));
    Terminal::new(process, Arc::new(LocalTerminal { tree, master }), output)
}

#[test]
fn a_terminal_that_cannot_be_read_fails_its_reader_and_done_and_ends_its_session() {
    let runtime = LocalRuntime::builder()
        .ownership(OwnershipChoice::ProcessGroup)
        .build()
        .expect("it works here");
    let mut terminal = broken(runtime.machine());
    runtime.block_on(async {
        let mut output = terminal.output().expect("it was not taken yet");
        let error = output.read_u8().await.expect_err("it cannot be read");
        assert_eq!(error.raw_os_error(), Some(9), "EBADF: {error}");
        assert_eq!(output.read(&mut [0]).await.expect("the end follows"), 0);
        let error = terminal.done().await.expect_err("this is no normal end");
        assert_eq!(error.kind(), ErrorKind::Os, "{error}");
        assert!(error.to_string().contains("could not be read"), "{error}");
        terminal.terminate().await.expect("sleep ends");
        let error = terminal.write("x").await.expect_err("it is over");
        assert_eq!(error.kind(), ErrorKind::Exited);
    });
}

#[test]
fn item_98_a_write_that_is_stuck_ends_with_the_termination() {
    let runtime = LocalRuntime::new().expect("it works here");
    runtime.block_on(async {
        let terminal = super::spawn(runtime.machine(), &Ambient::Host, sleep())
            .await
            .expect("sleep is there");
        let mut stuck = terminal.write("a line\n".repeat(20_000));
        let mut next = terminal.write("x");
        // As far as it goes; and the second one waits for its turn.
        assert!(poll_once(&mut stuck).await.is_none());
        assert!(poll_once(&mut next).await.is_none());
        terminal.terminate().await.expect("sleep ends");
        let error = stuck.await.expect_err("it was stuck");
        assert_eq!(error.kind(), ErrorKind::Exited);
        assert!(
            error
                .written()
                .is_some_and(|written| (4_095..140_000).contains(&written))
        );
        assert_eq!(next.await.expect_err("its turn never came").written(), Some(0));
        assert!(matches!(terminal.done().await, Ok(Outcome::Signaled { .. })));
    });
}

#[test]
fn a_write_that_moves_to_another_thread_is_woken_there_for_its_bound() {
    let bound = Duration::from_millis(50);
    let runtime = LocalRuntime::builder()
        .write_bound(bound)
        .build()
        .expect("it works here");
    let terminal = runtime
        .block_on(super::spawn(runtime.machine(), &Ambient::Host, sleep()))
        .expect("sleep is there");
    let mut stuck = terminal.write("a line\n".repeat(20_000));
    assert!(runtime.block_on(poll_once(&mut stuck)).is_none());
    let written = std::thread::spawn(move || pollster::block_on(stuck));
    let error = written.join().expect("it ends").expect_err("nobody reads");
    assert_eq!(error.kind(), ErrorKind::InputNotRead, "{error}");
    runtime.block_on(terminal.terminate()).expect("sleep ends");
}

#[test]
fn item_90_a_write_behind_one_that_is_not_polled_says_so() {
    let runtime = LocalRuntime::builder()
        .write_bound(Duration::from_millis(50))
        .build()
        .expect("it works here");
    runtime.block_on(async {
        let terminal = super::spawn(runtime.machine(), &Ambient::Host, sleep())
            .await
            .expect("sleep is there");
        let mut stuck = terminal.write("a line\n".repeat(20_000));
        assert!(poll_once(&mut stuck).await.is_none());
        let error = terminal.write("x").await.expect_err("its turn does not come");
        assert_eq!(error.kind(), ErrorKind::InputNotRead);
        assert!(error.to_string().contains("an earlier write"), "{error}");
        terminal.terminate().await.expect("sleep ends");
    });
}

/// A program that reads nothing.
fn sleep() -> TerminalSpec {
    TerminalSpec {
        argv: vec!["sleep".into(), "300".into()],
        cwd: "/".into(),
        env: EnvOverlay::new(),
        terminal_type: "dumb".into(),
        size: TerminalSize { rows: 24, cols: 80 },
        grace: Duration::from_secs(20),
        drain: Duration::from_secs(20),
        cancel: CancellationToken::new(),
    }
}

/// Polls a future once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}
