//! On a terminal: nothing that a text runs can ask whoever sits there.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::fixture::{BINARY, Case, finish, start};

/// Commands that would ask somebody, and whether each must fail.
const ASKING: &[(&str, bool)] = &[
    ("read -r x </dev/tty; rc=$?; echo rc=$rc; exit $rc", true),
    ("read -r x; rc=$?; echo rc=$rc; exit $rc", true),
    ("git -C repository commit --allow-empty", true),
    ("git -C repository log", false),
    ("git -C repository rebase -i HEAD~2", true),
    ("git clone https://127.0.0.1:1/x", true),
    ("ssh -o ConnectTimeout=2 -p 1 127.0.0.1", true),
    ("cat", false),
    ("sudo -n true </dev/null; stty -echo", true),
    ("stty -echo </dev/tty", true),
    ("${PAGER:-less} repository/.git/config", false),
];

#[test]
fn o19_nothing_asks_the_terminal_that_it_was_started_on() {
    let case = Case::new();
    let setup = "git init -q repository && cd repository && git config user.name n && git config user.email n@localhost \
                 && for i in $(seq 1 101); do git commit -q --allow-empty -m $i; done";
    let done = case.text(&[], setup);
    assert_eq!(done.code(), 0, "{}", done.text());

    let mut script = "stty -g >before\n".to_owned();
    for (number, (text, _)) in ASKING.iter().enumerate() {
        let file = case.file(&format!("text-{number}"), text);
        let line = format!(
            "\"$BINARY\" sh --json --timeout 50s --file {} >object-{number}\n",
            file.display()
        );
        script.push_str(&line);
    }
    script.push_str("stty -g >after\nread -r line && echo \"$line\" >read\n");
    let script = case.file("script", script);

    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command"]);
    terminal.arg(format!("sh {}", script.display())).arg("/dev/null");
    let mut terminal = case.dress(terminal);
    terminal
        .env("BINARY", BINARY)
        .env("SHELL", "/bin/sh")
        .env_remove("GIT_EDITOR")
        .stdin(Stdio::piped());
    let mut call = start(&mut terminal);
    let mut keyboard = call.stdin.take().expect("it is a pipe");
    // Typed ahead, for whoever reads the terminal first.
    keyboard
        .write_all(b"for the user\n")
        .expect("the terminal takes keys");
    let done = finish(call);
    drop(keyboard);
    assert_eq!(done.code(), 0, "{}", String::from_utf8_lossy(&done.stdout));

    for (number, (text, fails)) in ASKING.iter().enumerate() {
        let object = std::fs::read(case.path(&format!("object-{number}"))).expect("it was written");
        let object: serde_json::Value = serde_json::from_slice(&object).expect("it is JSON");
        assert_eq!(object["cause"], "ended", "{text}: {object:#}");
        assert_eq!(object["exit_status"] != 0, *fails, "{text}: {object:#}");
    }
    let read = |name: &str| std::fs::read_to_string(case.path(name)).expect("it was written");
    assert_eq!(read("before"), read("after"), "the terminal's settings");
    assert_eq!(read("read"), "for the user\n", "nobody took what was typed");
}
