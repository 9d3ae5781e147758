//! Bad input: one line on stderr that names the input, status 125, nothing started. With --json, the object besides.

use crate::fixture::{Case, finish, start};

/// What is wrong, and what the line must name.
const BAD_OPTIONS: &[(&[&str], &[&str])] = &[
    (&["--timeout", "5"], &["--timeout", "'5'", "5s"]),
    (&["--timeout", "0s"], &["--timeout", "'0s'"]),
    (&["--timeout", "soon"], &["--timeout", "'soon'", "500ms"]),
    (&["--timeout", "1d"], &["--timeout", "'1d'"]),
    (&["--timeout", "99999999999h"], &["--timeout", "99999999999h"]),
    (&["--timeout", "-1s"], &["-1"]),
    (&["--timeout="], &["--timeout"]),
    (&["--timeout", "a\n\nb"], &["--timeout", "a\\n\\nb"]),
    (&["--grace", "3"], &["--grace", "'3'", "3s"]),
    (&["--grace", "0ms"], &["--grace", "'0ms'"]),
    (&["--grace", "2147483648ms"], &["--grace", "2147483647ms"]),
    (&["--drain", "1"], &["--drain", "'1'", "1s"]),
    (&["--max-bytes", "many"], &["--max-bytes", "'many'"]),
    (&["--max-bytes", "1T"], &["--max-bytes", "'1T'"]),
    (&["--max-bytes", "2G"], &["--max-bytes", "'2G'", "1G"]),
    (&["--head-bytes=-1"], &["--head-bytes", "'-1'"]),
    (&["--spill-max-bytes", "0"], &["--spill-max-bytes", "'0'"]),
    (
        &["--ownership", "jail"],
        &["--ownership", "'jail'", "process-group"],
    ),
    (
        &["--env", "A=1", "--env", "hidden"],
        &["--env number 2", "NAME=VALUE"],
    ),
    (&["--env", "=nameless"], &["--env number 1", "name"]),
    (&["--evn=NAME=hidden"], &["--evn"]),
    (&["--evn", "NAME=hidden"], &["--evn"]),
    (&["--unset", ""], &["--unset"]),
    (&["--unset", "NAME=hidden"], &["--unset", "NAME"]),
    (
        &["--env", "TWICE=hidden", "--unset", "TWICE"],
        &["--unset", "TWICE", "--env"],
    ),
    (
        &["--stdin", "text", "--stdin-file", "/dev/null"],
        &["--stdin", "--stdin-file"],
    ),
    (
        &["--stdin-file", "/no/such/input"],
        &["--stdin-file", "/no/such/input", "No such file"],
    ),
    (
        &["--stdin-file", "/proc"],
        &["--stdin-file", "/proc", "directory"],
    ),
    (&["--stdin-file", ""], &["--stdin-file"]),
    (&["--cwd", ""], &["--cwd"]),
    (&["--cwd", "/no/such/directory"], &["/no/such/directory"]),
    (&["--cwd", "/dev/null"], &["/dev/null"]),
    (&["--cwd", "no-such-directory"], &["no-such-directory"]),
    (
        &["--cwd", "forged\ndsh-subprocess: line"],
        &["forged\\ndsh-subprocess: line"],
    ),
    (&["--quiet", "--quiet"], &["--quiet"]),
    (&["--timout", "5s"], &["--timout", "--timeout"]),
    (&["--no-such-option"], &["--no-such-option"]),
    (&["-x"], &["-x"]),
];

#[test]
fn a_bad_option_is_named_in_one_line_and_nothing_is_started() {
    let case = Case::new();
    for (options, named) in BAD_OPTIONS {
        let done = case.run(options, &["touch", "started"]);
        assert_eq!(done.code(), 125, "{options:?}: {}", done.stderr);
        assert_eq!(done.text(), "", "{options:?}");
        for word in *named {
            assert!(
                done.line().contains(word),
                "{options:?} does not name {word}: {}",
                done.line()
            );
        }
        for never in ["hidden", "nameless", "Usage", "--help"] {
            assert!(!done.line().contains(never), "{options:?}: {}", done.line());
        }
        assert!(!case.path("started").exists(), "{options:?}");
    }
}

#[test]
fn a_bad_option_is_an_object_too_where_one_was_asked_for() {
    let case = Case::new();
    for (options, named) in BAD_OPTIONS {
        for options in [[&["--json"], *options].concat(), [*options, &["--json"]].concat()] {
            let done = case.run(&options, &["touch", "started"]);
            assert_eq!(done.code(), 125, "{options:?}: {}", done.stderr);
            let object = done.object();
            assert_eq!(object["cause"], "spawn_failed", "{options:?}");
            assert_eq!(
                object["argv"],
                serde_json::json!(["touch", "started"]),
                "{options:?}"
            );
            let message = object["error"]["message"].as_str().expect("there is a message");
            // The object's message is not cut to a line: control characters are JSON's to write.
            let message = message.replace('\n', "\\n");
            for word in *named {
                assert!(message.contains(word), "{options:?}: {message}");
                assert!(done.line().contains(word), "{options:?}: {}", done.line());
            }
            for never in ["hidden", "nameless"] {
                assert!(!done.text().contains(never), "{options:?}: {}", done.text());
                assert!(!done.line().contains(never), "{options:?}: {}", done.line());
            }
            assert!(!case.path("started").exists(), "{options:?}");
        }
    }
}

#[test]
fn keeping_a_spill_is_refused_where_nothing_is_retained() {
    let case = Case::new();
    for option in [&["--keep-spill"][..], &["--spill-max-bytes", "1M"]] {
        let done = case.run(option, &["touch", "started"]);
        assert_eq!((done.code(), done.text()), (125, ""));
        assert!(
            done.line().contains(option[0]) && done.line().contains("--json"),
            "{}",
            done.line()
        );
    }
    assert!(!case.path("started").exists());
}

#[test]
fn a_missing_command_is_named() {
    let case = Case::new();
    for words in [&["run"][..], &["run", "--quiet"], &["run", "--"]] {
        let done = case.call(words);
        assert_eq!((done.code(), done.text()), (125, ""));
        assert!(done.line().contains("COMMAND"), "{}", done.line());
    }
    let done = case.call(["run", "--json"]);
    assert_eq!(done.object()["argv"], serde_json::json!([]));
    assert!(done.line().contains("COMMAND"));
    let done = case.call(["run", "--json", "--", ""]);
    assert_eq!(done.object()["error"]["kind"], "invalid_spec");
    assert!(done.line().contains("argv[0]"), "{}", done.line());
}

#[test]
fn a_bad_word_outside_of_run_is_named_too() {
    let case = Case::new();
    for (words, named) in [
        (&["rum"][..], "rum"),
        (&["--no-such-option"], "--no-such-option"),
        (&["doctor", "now"], "now"),
        (&["doctor", "--jso"], "--jso"),
        (&["completions"], "SHELL"),
        (&["completions", "cmd"], "cmd"),
        (&["man", "nothing"], "nothing"),
    ] {
        let done = case.call(words);
        assert_eq!((done.code(), done.text()), (125, ""), "{words:?}");
        assert!(done.line().contains(named), "{words:?}: {}", done.line());
    }
}

#[test]
fn nothing_at_all_shows_how_to_call_it_and_fails() {
    let done = Case::new().call([""; 0]);
    assert_eq!((done.code(), done.text()), (125, ""));
    assert!(
        done.stderr.contains("Usage: dsh-subprocess") && done.stderr.contains("doctor"),
        "{}",
        done.stderr
    );
}

#[test]
fn o27_a_bad_directory_has_a_kind_of_its_own_and_is_not_the_programs_fault() {
    let case = Case::new();
    for (path, kind) in [
        ("/no/such/directory", "cwd_not_found"),
        ("/dev/null", "cwd_not_directory"),
    ] {
        let done = case.run(&["--json", "--cwd", path], &["no-such-program-anywhere"]);
        assert_eq!(done.code(), 125);
        let object = done.object();
        assert_eq!(object["error"]["kind"], kind, "{object:#}");
        assert_eq!(object["cwd"], path);
    }
}

#[test]
fn an_assignment_that_is_no_text_is_passed_on() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let case = Case::new();
    let mut command = case.command(["run", "--quiet", "--env"]);
    command
        .arg(OsStr::from_bytes(b"BYTES=a\xffb"))
        .args(["--", "/bin/sh", "-c", "printf %s \"$BYTES\""]);
    assert_eq!(finish(start(&mut command)).stdout, b"a\xffb");
}
