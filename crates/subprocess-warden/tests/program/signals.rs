//! Whom a tree warden signals, and how often.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use dsh_subprocess_sys::spawn::Program;
use dsh_subprocess_warden::protocol::ToTree;

use crate::fixture::{LONG, Runtime, Target, Tree, WAIT, ends, runs, tell};

/// A member that says what it gets, and ends at the first `SIGTERM`. Its name comes first on each line.
fn member(name: &str) -> String {
    format!(
        "sh -c 'trap \"echo {name} TERM; exit 0\" TERM; trap \"echo {name} USR1\" USR1; echo {name} ready; {}'",
        WAIT.replace('\'', "\"")
    )
}

/// A tree with members of every kind: a child, one with a session of its own, one whose parents have all ended, and one below
/// it.
fn tree_of_members(tree: &Tree) -> (Target, Vec<&'static str>) {
    let names = vec!["child", "session", "orphan", "below"];
    let script = format!(
        "trap : TERM USR1; {} & setsid {} & (setsid sh -c '({}) & exit 0' &) ; ({}; :) & {WAIT}",
        member("child"),
        member("session"),
        member("orphan").replace('\'', "'\\''"),
        member("below"),
    );
    let mut target = tree.run(&script, LONG);
    let mut ready: Vec<String> = names.iter().map(|_| target.line()).collect();
    ready.sort();
    let mut expected: Vec<String> = names.iter().map(|name| format!("{name} ready")).collect();
    expected.sort();
    assert_eq!(ready, expected);
    (target, names)
}

fn count(lines: &str, line: &str) -> usize {
    lines.lines().filter(|found| *found == line).count()
}

#[test]
fn every_member_is_asked_once() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let (target, names) = tree_of_members(&tree);
    tree.send(&ToTree::Ask);
    // Those that were asked end; the target does not.
    let mut target = target;
    let mut said: Vec<String> = names.iter().map(|_| target.line()).collect();
    said.sort();
    tree.kill();
    let rest = target.rest();
    let all = said.join("\n") + "\n" + &rest;
    for name in names {
        assert_eq!(count(&all, &format!("{name} TERM")), 1, "{all}");
    }
}

#[test]
fn the_others_are_asked_before_the_target_and_nobody_twice() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let script = format!(
        "trap 'echo target TERM' TERM; sh -c 'trap \"echo stubborn TERM\" TERM; echo ready; {}' & {WAIT}",
        WAIT.replace('\'', "\"")
    );
    let mut target = tree.run(&script, LONG);
    assert_eq!(target.line(), "ready");
    tree.send(&ToTree::AskOthers);
    assert_eq!(target.line(), "stubborn TERM");
    tree.send(&ToTree::AskOthers);
    tree.send(&ToTree::Ask);
    assert_eq!(target.line(), "target TERM");
    tree.kill();
    assert_eq!(target.rest(), "");
}

#[test]
fn the_host_of_a_tree_whose_others_were_asked_ends_and_only_the_target_is_asked() {
    let mut runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let script = format!(
        "trap 'echo target TERM; exit 0' TERM; sh -c 'trap \"echo stubborn TERM\" TERM; echo ready; {}' & {WAIT}",
        WAIT.replace('\'', "\"")
    );
    let mut target = tree.run(&script, Duration::from_millis(300));
    assert_eq!(target.line(), "ready");
    tree.send(&ToTree::AskOthers);
    assert_eq!(target.line(), "stubborn TERM");
    runtime.host.kill();
    assert_eq!(target.rest(), "target TERM\n");
}

#[test]
fn another_signal_reaches_every_member_once() {
    const USR1: u32 = 10;
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let (mut target, names) = tree_of_members(&tree);
    tree.send(&ToTree::Signal { number: USR1 });
    let mut said: Vec<String> = names.iter().map(|_| target.line()).collect();
    said.sort();
    let mut expected: Vec<String> = names.iter().map(|name| format!("{name} USR1")).collect();
    expected.sort();
    assert_eq!(said, expected);
    tree.kill();
    assert_eq!(target.rest(), "");
}

#[test]
fn a_stopped_member_acts_on_being_asked() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let mut target = tree.run(
        "trap 'echo asked; exit 0' TERM; echo $$; kill -STOP $$; while :; do :; done",
        LONG,
    );
    target.number();
    crate::fixture::is_stopped(target.pid);
    tree.send(&ToTree::Ask);
    assert_eq!(target.line(), "asked");
    assert_eq!(tree.exited().code, 0);
    tree.gone();
}

#[test]
fn a_member_born_while_the_others_act_on_being_asked_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let fifo = directory.path().join("fifo");
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let script = format!(
        "mkfifo {0}; trap 'sh -c \"echo \\$\\$; read line < {0}; echo done\" & wait' TERM; echo ready; {WAIT}",
        fifo.display()
    );
    let mut target = tree.run(&script, LONG);
    assert_eq!(target.line(), "ready");
    tree.send(&ToTree::Ask);
    let born = target.member();
    tell(&fifo);
    assert_eq!(target.line(), "done");
    ends(&born);
    tree.kill();
}

/// The environment variable that makes [`children_of_two_threads`] what its name says.
const THREADS: &str = "DSH_TEST_TWO_THREADS";

/// Not a test by itself, but the program of the next one: this file is the only one that is sure to be there.
#[test]
fn children_of_two_threads() {
    if std::env::var_os(THREADS).is_none() {
        return;
    }
    // Past the line that the test harness prints without an end.
    println!();
    let start = || {
        let child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn();
        println!("child {}", child.expect("sleep starts").id());
        std::io::stdout().flush().expect("the output is open");
        std::thread::park();
    };
    std::thread::spawn(start);
    start();
}

#[test]
fn a_member_that_a_second_thread_has_made_is_asked() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let itself = std::env::current_exe().expect("this program has a path");
    let itself = itself.to_str().expect("an ordinary name").as_bytes();
    let arguments = [
        itself,
        b"--exact",
        b"signals::children_of_two_threads",
        b"--nocapture",
    ];
    let environment = [(THREADS.as_bytes(), b"1".as_slice()), (b"PATH", b"/usr/bin:/bin")];
    let program = Program::new(arguments, environment, [itself], b"/");
    let output = tree.launch(&program, LONG);
    assert!(matches!(tree.next(), crate::fixture::Said::Running(..)));
    let mut lines = BufReader::new(output).lines();
    let mut child = || loop {
        let line = lines
            .next()
            .expect("another line")
            .expect("the output can be read");
        if let Some(number) = line.strip_prefix("child ") {
            return crate::fixture::open(number.parse().expect("a number"));
        }
    };
    let children = [child(), child()];
    // It reaches them all: nobody below ignores it.
    tree.send(&ToTree::Ask);
    children.iter().for_each(ends);
    tree.exited();
    tree.gone();
}

#[test]
fn sixteen_chains_that_do_nothing_but_fork_and_end_are_killed() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let itself = std::env::current_exe().expect("this program has a path");
    let itself = itself.to_str().expect("an ordinary name").as_bytes();
    let arguments = [itself, b"--exact", b"signals::chains", b"--nocapture"];
    let program = Program::new(arguments, [(CHAINS.as_bytes(), b"16".as_slice())], [itself], b"/");
    let mut target = tree.run_program(&program, LONG);
    for _ in 0..16 {
        while target.line() != "far" {}
    }
    tree.kill();
    // Nobody is left who could write.
    target.rest();
}

/// The environment variable that makes [`chains`] what its name says.
const CHAINS: &str = "DSH_TEST_CHAINS";

/// The program of the test before: chains of processes, of which each makes the next, in a session of its own, and ends.
#[test]
fn chains() {
    let Some(width) = std::env::var(CHAINS)
        .ok()
        .and_then(|width| width.parse::<usize>().ok())
    else {
        return;
    };
    // Past the line that the test harness prints without an end.
    println!();
    crate::fixture::fork_chains(width);
}

#[test]
fn a_killed_tree_leaves_no_member_that_hides_deep_below_others() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    // Each shell waits for the next one.
    let script = "deeper() { if [ $1 -gt 0 ]; then (deeper $(($1 - 1)); :); else echo $$; echo ready; setsid sleep 1000; fi; }; \
                  deeper 40; :";
    let mut target = tree.run(script, LONG);
    target.number();
    assert_eq!(target.line(), "ready");
    tree.kill();
    target.rest();
}

#[test]
fn what_is_asked_of_a_tree_that_has_ended_reaches_nobody() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let _target = tree.run("exit 0", LONG);
    tree.exited();
    tree.gone();
    for message in [ToTree::Ask, ToTree::Kill, ToTree::Signal { number: 15 }] {
        tree.send(&message);
    }
    let mut target = tree.run("echo $$; exec sleep 1000", Duration::ZERO);
    let sleeper = target.member();
    assert!(runs(&sleeper));
    tree.kill();
}
