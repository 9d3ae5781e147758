//! The exit status of a run is the command's, or says why it is not.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::fixture::{Case, Finished};

fn executable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[track_caller]
fn refused(case: &Case, program: &str, code: i32, kind: &str) -> Finished {
    let done = case.call(["run", "--json", "--", program]);
    assert_eq!(done.code(), code, "{}", done.stderr);
    let object = done.object();
    assert_eq!(object["cause"], "spawn_failed");
    assert_eq!(object["error"]["kind"], kind, "{object:#}");
    assert_eq!(object["pid"], serde_json::Value::Null);
    assert!(
        done.line()
            .contains(Path::new(program).file_name().unwrap().to_str().unwrap()),
        "{}",
        done.line()
    );
    // The same without JSON: one line, nothing on stdout.
    let done = case.call(["run", "--quiet", "--", program]);
    assert_eq!((done.code(), done.text()), (code, ""));
    done
}

#[test]
fn the_code_of_the_command_is_ours() {
    let case = Case::new();
    for code in [0, 1, 7, 124, 125, 126, 127, 128, 255] {
        assert_eq!(case.sh(&["--quiet"], &format!("exit {code}")).code(), code);
    }
}

#[test]
fn a_signal_is_told_as_128_and_its_number() {
    let case = Case::new();
    for (signal, code) in [
        ("HUP", 129),
        ("INT", 130),
        ("KILL", 137),
        ("SEGV", 139),
        ("PIPE", 141),
        ("TERM", 143),
    ] {
        let object = case.json(&[], &format!("ulimit -c 0; kill -{signal} $$"));
        assert_eq!(object["exit_status"], code, "{signal}");
        assert_eq!(object["outcome"]["signal"], format!("SIG{signal}"));
        assert_eq!(object["outcome"]["exit_code"], serde_json::Value::Null);
        assert_eq!(object["cause"], "signaled");
    }
}

#[test]
fn a_program_that_is_nowhere_is_127() {
    let case = Case::new();
    refused(&case, "no-such-program-anywhere", 127, "program_not_found");
    refused(&case, "/no/such/program", 127, "program_not_found");
    refused(&case, "./no-such-program", 127, "program_not_found");
}

#[test]
fn a_program_that_cannot_be_executed_is_126() {
    let case = Case::new();
    let plain = case.file("plain", "#!/bin/sh\n");
    refused(&case, plain.to_str().unwrap(), 126, "program_not_executable");
    refused(
        &case,
        case.path("").to_str().unwrap(),
        126,
        "program_not_executable",
    );
    let orphan = case.file("orphan", "#!/no/such/interpreter\n");
    executable(&orphan);
    refused(&case, orphan.to_str().unwrap(), 126, "interpreter_not_found");
}

#[test]
fn item_26_a_script_without_a_first_line_is_run_by_sh() {
    let case = Case::new();
    let script = case.file("script", "exit 9\n");
    executable(&script);
    assert_eq!(case.run(&["--quiet"], &[script.to_str().unwrap()]).code(), 9);
}

#[test]
fn everything_after_the_first_word_belongs_to_the_command() {
    let case = Case::new();
    let echo = ["/bin/sh", "-c", "echo $*", "sh"];
    for (before, after, expected) in [
        (
            &[][..],
            &["--json", "-n", "--timeout", "5"][..],
            "--json -n --timeout 5\n",
        ),
        (&["--"], &["--json", "--help"], "--json --help\n"),
        (&["--"], &["--", "x"], "-- x\n"),
        (&[], &["--", "x"], "-- x\n"),
    ] {
        let words = [&["run", "--quiet"], before, &echo, after].concat();
        let done = case.call(&words);
        assert_eq!(
            (done.code(), done.text()),
            (0, expected),
            "{words:?}: {}",
            done.stderr
        );
    }
}
