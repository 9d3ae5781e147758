//! Programs that want a real terminal, with somebody who sits at it.

use super::tmux::Pane;
use crate::fixture::Case;

/// Starts a program in a session, and leaves what is done with it to the caller; in the end the program must have ended well
/// and the terminal be as before.
#[track_caller]
fn with(command: &str, act: impl FnOnce(&Case, &Pane<'_>)) {
    let case = Case::new();
    let lines: Vec<_> = (1..=100).map(|number| format!("line {number}\n")).collect();
    case.file("hundred", lines.concat());
    let (pane, session) = case.session("--quiet", command);
    act(&case, &pane);
    pane.wait_for("status 0");
    pane.wait_for_settings(&session.before);
}

#[test]
fn bash_edits_lines_and_keeps_a_history() {
    with("bash --norc --noprofile", |_, pane| {
        pane.enters("echo $((6 * 7)) is it");
        pane.wait_for("42 is it");
        // The line before, from the history, and one character less of it.
        pane.press(&["Up", "BSpace", "n", "Enter"]);
        pane.wait_for("42 is in");
        pane.enters("exit 0");
    });
}

#[test]
fn python_has_its_prompt() {
    with("python3 -q", |_, pane| {
        pane.wait_for(">>>");
        pane.enters("print(6 * 7, 'is it')");
        pane.wait_for("42 is it");
        pane.press(&["C-d"]);
    });
}

#[test]
fn vim_draws_edits_and_writes() {
    with("vim -u NONE -N text", |case, pane| {
        pane.wait_for("~");
        pane.types("ihello");
        pane.press(&["Escape"]);
        pane.wait_for("hello");
        pane.enters(":wq");
        crate::fixture::eventually("the file", || {
            std::fs::read_to_string(case.path("text")).is_ok_and(|text| text == "hello\n")
        });
    });
}

#[test]
fn less_goes_by_pages() {
    with("less hundred", |_, pane| {
        pane.wait_for("line 23");
        assert!(!pane.shown().contains("line 24"));
        pane.press(&["Space"]);
        pane.wait_for("line 46");
        pane.press(&["G"]);
        pane.wait_for("line 100");
        pane.press(&["q"]);
    });
}

#[test]
fn top_draws_its_screen_and_obeys_a_key() {
    with("top", |_, pane| {
        pane.wait_for("load average");
        pane.press(&["q"]);
    });
}

#[test]
fn a_password_is_asked_for_and_not_shown() {
    let command =
        "bash -c 'read -s -p \"Password: \" it; echo; echo \"${#it} characters\"; test \"$it\" = hunter2'";
    with(command, |_, pane| {
        pane.wait_for("Password:");
        pane.enters("hunter2");
        pane.wait_for("7 characters");
        assert!(!pane.shown().contains("hunter"), "{}", pane.shown());
    });
}

#[test]
fn gdb_has_its_prompt() {
    with("gdb -nx -q", |_, pane| {
        pane.wait_for("(gdb)");
        pane.enters("print 6 * 7");
        pane.wait_for("$1 = 42");
        pane.enters("quit");
    });
}

#[test]
fn node_has_its_prompt() {
    with("node", |_, pane| {
        pane.wait_for("\n>\n");
        pane.enters("6 * 7 + ' is it'");
        pane.wait_for("'42 is it'");
        pane.enters(".exit");
    });
}
