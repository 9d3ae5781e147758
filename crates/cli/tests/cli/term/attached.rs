//! The user's terminal is the session's: its keys, its screen, its size, its type.

use serde_json::{Value, json};

use super::tmux::Pane;
use crate::fixture::{Case, eventually};

#[test]
fn the_session_has_the_size_of_the_users_terminal_and_follows_it() {
    let case = Case::new();
    let script = case.file(
        "script",
        "trap 'stty size' WINCH\nstty size\nwhile :; do sleep 300 & wait; done\n",
    );
    let (pane, _) = case.session("--quiet --record cast", &format!("sh {}", script.display()));
    pane.wait_for("24 80");
    pane.resize(100, 30);
    pane.wait_for("30 100");
    pane.press(&["C-c"]);
    pane.wait_for("status 130");
    let cast = std::fs::read_to_string(case.path("cast")).expect("it is there");
    let sizes: Vec<Value> = cast
        .lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .filter(|event: &Value| event[1] == "r")
        .collect();
    assert_eq!(sizes.len(), 1, "{sizes:?}");
    assert_eq!(sizes[0][2], "100x30");
}

#[test]
fn a_side_that_was_asked_for_does_not_follow() {
    let case = Case::new();
    let script = case.file(
        "script",
        "trap 'stty size' WINCH\nstty size\nwhile :; do sleep 300 & wait; done\n",
    );
    let command = format!("sh {}", script.display());
    let (pane, _) = case.session("--quiet --rows 7", &command);
    pane.wait_for("7 80");
    pane.resize(100, 30);
    pane.wait_for("7 100");
    pane.press(&["C-c"]);
    pane.wait_for("status 130");
}

#[test]
fn the_terminal_type_is_the_users() {
    let case = Case::new();
    let pane = Pane::new(
        &case,
        "TERM=vt100 $BINARY term --quiet -- sh -c 'echo it is $TERM'",
    );
    pane.wait_for("it is vt100");
}

#[test]
fn every_key_is_the_commands() {
    let case = Case::new();
    let (pane, session) = case.session(
        "--quiet",
        "sh -c 'stty raw -echo; echo ready; head -c 5 | od -An -tx1'",
    );
    pane.wait_for("ready");
    // None of them is ours: not those that interrupt, stop or end.
    pane.press(&["C-c", "C-z", "C-\\", "C-d", "C-s"]);
    pane.wait_for("03 1a 1c 04 13");
    pane.wait_for("status 0");
    pane.wait_for_settings(&session.before);
}

#[test]
fn a_session_can_be_attached_to_a_session() {
    let case = Case::new();
    let inner = "$BINARY term --quiet -- sh -c 'stty size; read line; echo read $line; exit 7'";
    let line = format!("stty -g > before; $BINARY term --quiet -- {inner}; echo \"status $?\"");
    let pane = Pane::new(&case, &line);
    pane.wait_for("24 80");
    pane.enters("typed");
    pane.wait_for("read typed");
    pane.wait_for("status 7");
    let before = std::fs::read_to_string(case.path("before")).expect("stty wrote it");
    assert_eq!(pane.settings(), before);
}

#[test]
fn with_an_object_on_stdout_the_screen_is_still_the_users() {
    let case = Case::new();
    let command = "$BINARY term --json -- sh -c 'echo on the screen; read line; echo read $line' > object; echo status $?";
    let pane = Pane::new(&case, command);
    pane.wait_for("on the screen");
    pane.enters("typed");
    pane.wait_for("read typed");
    pane.wait_for("status 0");
    let text = std::fs::read_to_string(case.path("object")).expect("it is text");
    let object: Value = serde_json::from_str(&text).expect("it is one object");
    assert_eq!(
        object["stdout"]["text"],
        json!("on the screen\r\ntyped\r\nread typed\r\n")
    );
}

#[test]
fn the_line_of_facts_begins_a_line_of_its_own() {
    let case = Case::new();
    let pane = Pane::new(&case, "$BINARY term -- printf 'no line end'");
    pane.wait_for("terminal 11 B");
    let shown = pane.shown();
    assert!(
        shown.starts_with("no line end\ndsh-subprocess: exited with code 0"),
        "{shown}"
    );
}

#[test]
fn what_is_typed_after_the_end_is_the_next_readers() {
    let case = Case::new();
    let gate = case.gate("gate");
    case.gate("prepared");
    // The program ends, and its helper does not before it may.
    let script = case.file(
        "script",
        "trap '' HUP\n\
         (trap 'echo asked > gate; read go < held; exit 0' TERM; echo > prepared; while :; do sleep 0.1; done) &\n\
         read it < prepared\nexit 0\n",
    );
    let held = case.gate("held");
    let line = format!(
        "$BINARY term --quiet --grace 1h -- sh {}; read line; echo \"next read $line\"",
        script.display()
    );
    let pane = Pane::new(&case, &line);
    assert_eq!(gate.wait(), "asked");
    let pid = case.only("term");
    eventually("the keys to be let go of", || {
        !threads(pid).contains(&"input".to_owned())
    });
    // The terminal is still raw: nothing makes a line end of the key for it.
    pane.types("typed ahead");
    pane.press(&["C-j"]);
    std::fs::write(held.path(), "go\n").expect("the helper reads it");
    pane.wait_for("next read typed ahead");
}

/// The names of a process's threads.
fn threads(pid: i32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect()
}

#[test]
fn the_end_of_the_users_terminal_ends_the_session() {
    let case = Case::new();
    let gate = case.gate("gate");
    let script = case.file(
        "script",
        "trap 'echo ended > gate; exit 0' HUP TERM\necho ready\nwhile :; do sleep 0.1; done\n",
    );
    let (pane, _) = case.session("--quiet", &format!("sh {}", script.display()));
    pane.wait_for("ready");
    pane.close();
    assert_eq!(gate.wait(), "ended");
    eventually("everything to be gone", || case.living().is_empty());
}

#[test]
fn the_end_of_a_terminal_whose_hang_up_is_ignored_ends_the_session_too() {
    let case = Case::new();
    let line = "trap '' HUP; $BINARY term --quiet -- sh -c 'echo ready; exec sleep 300'";
    let pane = Pane::new(&case, line);
    pane.wait_for("ready");
    let pid = case.only("term");
    pane.close();
    eventually("our end", || !case.living().contains(&pid));
}
