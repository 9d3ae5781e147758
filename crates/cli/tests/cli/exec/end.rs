//! The binary ends as the command does.

use std::os::unix::process::ExitStatusExt;

use super::{OWNERS, exec_words};
use crate::fixture::{Case, finish, start};

#[test]
fn the_commands_status_is_ours() {
    let case = Case::new();
    for owner in OWNERS {
        for code in [0, 1, 7, 124, 255] {
            let script = format!("exit {code}");
            let done = case.exec_to_end(&["--ownership", owner], &["sh", "-c", &script]);
            assert_eq!((done.code(), &done.stderr[..]), (code, ""));
        }
    }
}

#[test]
fn the_signal_that_ended_the_command_ends_us_and_dumps_no_core_of_ours() {
    let case = Case::new();
    for owner in OWNERS {
        for (name, number) in [
            ("HUP", 1),
            ("QUIT", 3),
            ("ABRT", 6),
            ("KILL", 9),
            ("SEGV", 11),
            ("PIPE", 13),
            ("TERM", 15),
        ] {
            let script = format!("kill -{name} $$");
            let words = exec_words(&["--ownership", owner], &["sh", "-c", &script]);
            let done = finish(start(&mut case.command_after("ulimit -c unlimited; exec", words)));
            assert_eq!(done.status.signal(), Some(number), "{owner} {name}");
            assert!(!done.status.core_dumped());
            assert_eq!(done.stderr, "");
        }
    }
}

#[test]
fn a_real_time_signal_is_told_by_the_status() {
    let done = Case::new().exec_to_end(&[], &["bash", "-c", "kill -RTMIN+3 $$"]);
    assert_eq!(done.code(), 128 + nix::libc::SIGRTMIN() + 3);
}

#[test]
fn what_cannot_be_started_is_told_in_a_line() {
    let case = Case::new();
    let text = case.file("text", "not a program");
    let text = text.to_str().expect("the directory's name is text");
    for (options, command, code, words) in [
        (&[][..], "no-such-program", 127, "no-such-program"),
        (&[], text, 126, text),
        (&["--cwd", "/no/such"], "true", 125, "/no/such"),
        (&["--die-with", "0"], "true", 125, "--die-with"),
        (&["--keep", "A=hunter2"], "true", 125, "--keep"),
        (&["--ownership", "process-group"], "true", 125, "process group"),
    ] {
        let done = case.exec_to_end(options, &[command]);
        assert_eq!(done.code(), code, "{command}");
        assert!(done.line().contains(words), "{}", done.line());
        assert!(!done.line().contains("hunter2"));
    }
}

#[test]
fn the_command_may_have_options_like_ours() {
    let done = Case::new().exec_to_end(&[], &["echo", "--grace", "--", "--help"]);
    assert_eq!(done.text(), "--grace -- --help\n");
}

#[test]
fn what_the_command_left_behind_is_asked_to_end_and_not_waited_for() {
    for owner in OWNERS {
        let case = Case::new();
        let script = format!(
            "setsid sh {} daemon > /dev/null 2>&1 & until grep -q ready log; do sleep 0.01; done 2> /dev/null; exit 5",
            case.member()
        );
        let options = ["--ownership", owner, "--grace", "1h"];
        assert_eq!(case.exec_to_end(&options, &["sh", "-c", &script]).code(), 5);
        case.wait_for_log("daemon TERM");
        assert_ne!(case.living(), [0; 0], "{owner}: it has an hour yet");
    }
}

#[test]
fn what_the_command_left_behind_is_killed_after_the_grace() {
    for owner in OWNERS {
        let case = Case::new();
        let script = format!(
            "setsid sh {} daemon > /dev/null 2>&1 & until grep -q ready log; do sleep 0.01; done 2> /dev/null; exit 5",
            case.member()
        );
        let options = ["--ownership", owner, "--grace", "100ms"];
        assert_eq!(case.exec_to_end(&options, &["sh", "-c", &script]).code(), 5);
        case.wait_for_nothing();
        assert!(
            case.log().contains(&"daemon TERM".to_owned()),
            "{owner}: asked before"
        );
    }
}
