//! Any thread, any executor or none, as for any tree.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use dsh_subprocess::{SubprocessRuntime, TerminalSize};
use tokio::io::AsyncReadExt;

use super::session::{Terminals, lines, plain};
use crate::fixture::{Case, Tier, on_each_tier, within};

on_each_tier! {
    issue_2_a_blocked_thread_holds_a_conversation,
    a_handle_outlives_the_thread_and_the_executor_that_made_it,
    one_thread_reads_while_others_type_resize_and_look,
}

/// Nobody but the blocked threads waits for the runtime.
fn issue_2_a_blocked_thread_holds_a_conversation(tier: Tier) {
    let case = Case::new(tier);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let spec = case.terminal_spec(case.probe(["terminal", "raw", "cat"]));
                case.runtime.block_on(async {
                    let mut terminal = case.runtime.spawn_terminal(spec).await.expect("it starts");
                    let mut output = terminal.output().expect("it was not taken yet");
                    let mut ready = [0; 6];
                    output.read_exact(&mut ready).await.expect("it is ready");
                    for turn in 0..50_u8 {
                        terminal.write(vec![turn]).await.expect("the program reads");
                        assert_eq!(output.read_u8().await.expect("the program answers"), turn);
                    }
                    terminal.terminate().await.expect("the session ends");
                    assert_eq!(output.read(&mut [0]).await.expect("the end is no error"), 0);
                });
            });
        }
    });
    case.assert_gone();
}

fn a_handle_outlives_the_thread_and_the_executor_that_made_it(tier: Tier) {
    let case = Case::new(tier);
    let spec = case.terminal_spec(case.bash("read -r line; echo \"got $line\"; exit 5"));
    let mut terminal = thread::scope(|scope| {
        let made = scope.spawn(|| {
            let executor = tokio::runtime::Builder::new_current_thread()
                .build()
                .expect("it starts");
            executor
                .block_on(case.runtime.spawn_terminal(spec))
                .expect("it starts")
        });
        made.join().expect("it does not panic")
    });
    let mut output = terminal.output().expect("it was not taken yet");
    thread::scope(|scope| {
        scope.spawn(|| within(terminal.write("typed\n")).expect("the program reads"));
        let mut all = Vec::new();
        within(output.read_to_end(&mut all)).expect("the end is no error");
        assert!(plain(&all).ends_with("got typed\n"), "{}", plain(&all));
    });
    assert_eq!(within(terminal.done()).expect("it is known").code(), Some(5));
}

/// Every call there is, at the same time, until all was typed and read.
fn one_thread_reads_while_others_type_resize_and_look(tier: Tier) {
    let case = Case::new(tier);
    let script = "trap : WINCH; stty -echo; echo ready; exec cat";
    let session = case.ready(case.terminal_spec(case.bash(script)));
    let block = lines(100, |line| format!("{line:0100}\n"));
    let (terminal, mut output) = session.into_parts();
    let typed = AtomicBool::new(false);
    let mut copy = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..50 {
                within(terminal.write(block.clone())).expect("the program reads");
            }
            within(terminal.write("\u{4}")).expect("the program reads");
            typed.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            for size in (1..500).cycle() {
                if typed.load(Ordering::Acquire) {
                    break;
                }
                // The program may have ended meanwhile.
                drop(within(terminal.resize(TerminalSize {
                    rows: size,
                    cols: size,
                })));
            }
        });
        scope.spawn(|| {
            while !typed.load(Ordering::Acquire) {
                drop(within(terminal.inspect_foreground()));
                drop(within(terminal.tree().members()));
            }
        });
        within(output.read_to_end(&mut copy)).expect("the end is no error");
    });
    assert!(plain(&copy) == block.repeat(50), "{} bytes", copy.len());
    assert!(within(terminal.done()).expect("it is known").success());
    case.assert_gone();
}
