//! Recordings, as a player reads them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::fixture::{Case, finish, start};

/// A recording, read.
struct Cast {
    header: Value,
    events: Vec<Value>,
}

impl Cast {
    #[track_caller]
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("the recording is text");
        assert!(text.ends_with('\n'), "the last line is whole: {text:?}");
        let mut lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("each line is JSON"));
        Self {
            header: lines.next().expect("there is a header"),
            events: lines.collect(),
        }
    }

    /// What was shown.
    fn text(&self) -> String {
        let shown = self.events.iter().filter(|event| event[1] == "o");
        shown
            .map(|event| event[2].as_str().expect("it is text"))
            .collect()
    }
}

#[test]
fn what_the_terminal_showed_is_recorded_for_its_user_alone() {
    let case = Case::new();
    let options = [
        "--quiet", "--record", "cast", "--rows", "7", "--cols", "9", "--term", "vt100",
    ];
    let script = "printf 'a\\342\\202'; sleep 0.1; printf '\\254\\n\\377'";
    let mut command = case.term(&options, &["/bin/sh", "-c", script]);
    let done = finish(start(command.env("SHELL", "/bin/some shell")));
    assert_eq!(done.stdout, b"a\xe2\x82\xac\r\n\xff");
    let path = case.path("cast");
    let mode = path.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let cast = Cast::read(&path);
    assert_eq!(
        (
            &cast.header["version"],
            &cast.header["width"],
            &cast.header["height"]
        ),
        (&json!(2), &json!(9), &json!(7))
    );
    assert_eq!(
        cast.header["env"],
        json!({ "SHELL": "/bin/some shell", "TERM": "vt100" })
    );
    assert!(cast.header["timestamp"].is_u64());
    assert_eq!(cast.text(), "a€\r\n\u{fffd}");
    let times: Vec<_> = cast.events.iter().map(|event| event[0].as_f64()).collect();
    assert!(
        times.iter().all(Option::is_some) && times.is_sorted(),
        "{times:?}"
    );
}

#[test]
fn what_is_typed_is_not_recorded() {
    let case = Case::new();
    let script = "stty -echo; echo ready; read line; echo \"${#line} characters\"";
    let mut command = case.term(&["--quiet", "--record", "cast"], &["/bin/sh", "-c", script]);
    let mut call = start(command.stdin(std::process::Stdio::piped()));
    assert_eq!(crate::fixture::stdout_line(&mut call), "ready\r");
    let mut keys = call.stdin.take().expect("it is a pipe");
    std::io::Write::write_all(&mut keys, b"hunter2\n").expect("it is read");
    finish(call);
    let text = Cast::read(&case.path("cast")).text();
    assert!(
        text.contains("7 characters") && !text.contains("hunter2"),
        "{text}"
    );
}

#[test]
fn a_file_that_is_there_is_left_alone_and_nothing_is_started() {
    let case = Case::new();
    case.file("cast", "mine");
    let options = ["--json", "--record", "cast"];
    let done = case.term_to_end(&options, &["touch", "started"]);
    assert_eq!(
        (done.code(), &done.object()["error"]["kind"]),
        (125, &json!("record"))
    );
    assert!(
        done.line().starts_with("--record cast: it is there already"),
        "{}",
        done.line()
    );
    assert!(!case.path("started").exists());
    let content = std::fs::read_to_string(case.path("cast")).expect("it is text");
    assert_eq!(content, "mine");
}

#[test]
fn a_recording_that_finds_no_room_stops_and_the_session_does_not() {
    let case = Case::new();
    let script = "i=0; while [ $i -lt 200 ]; do printf %050d $i; sleep 0; i=$((i+1)); done; exit 6";
    for (options, quiet) in [(&["--json"][..], false), (&["--quiet"], true)] {
        let options = [options, &["--record", "cast"]].concat();
        let words = [&["term"], &options[..], &["--", "/bin/sh", "-c", script]].concat();
        // A kibibyte or two, depending on the shell.
        let done = finish(start(&mut case.command_after("ulimit -f 2;", words)));
        assert_eq!(done.code(), 6);
        assert!(
            done.line()
                .contains("the recording stops before the end: --record cast: "),
            "{}",
            done.line()
        );
        if quiet {
            assert_eq!(done.stdout.len(), 10_000);
        } else {
            let object = done.object();
            assert_eq!(object["stdout"]["total_bytes"], 10_000);
            assert_eq!(object["error"], Value::Null);
            let why = object["recording_stopped"].as_str().expect("it is said");
            assert!(why.starts_with("--record cast: "), "{why}");
        }
        // What is there can be played.
        let cast = Cast::read(&case.path("cast"));
        assert!(cast.text().starts_with("000"), "{}", cast.text());
        std::fs::remove_file(case.path("cast")).expect("it is there");
    }
}
