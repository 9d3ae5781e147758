//! What is refused, in the same words and with the same statuses as a run.

use serde_json::json;

use crate::fixture::Case;

#[test]
fn item_87_a_size_that_no_terminal_has_is_refused() {
    let case = Case::new();
    for (option, value) in [
        ("--rows", "0"),
        ("--cols", "0"),
        ("--rows", "65536"),
        ("--cols", "-1"),
        ("--cols", "x"),
    ] {
        let option = format!("{option}={value}");
        let words = ["term", &option, "--record", "cast", "--", "touch", "started"];
        let done = case.call(words);
        assert_eq!((done.code(), done.text()), (125, ""), "{option}");
        let (name, _) = option.split_once('=').expect("it has a value");
        assert!(done.line().contains(name), "{option}: {}", done.line());
        if value == "-1" {
            let apart = case.call(["term", name, value, "--", "touch", "started"]);
            assert!(apart.line().contains("-1 is not in"), "{}", apart.line());
        }
        let done = case.call(["term", "--json", &option, "--", "touch", "started"]);
        let object = done.object();
        assert_eq!(object["error"]["kind"], "bad_option", "{option}");
        assert_eq!(object["argv"], json!(["touch", "started"]), "{option}");
    }
    assert!(!case.path("started").exists() && !case.path("cast").exists());
}

#[test]
fn item_86_what_cannot_be_started_is_an_error_of_its_kind() {
    let case = Case::new();
    let plain = case.file("plain", "");
    let missing = case.path("missing");
    let (plain, missing) = (plain.to_str().unwrap(), missing.to_str().unwrap());
    for (options, program, status, kind) in [
        (&[][..], missing, 127, "program_not_found"),
        (&[], plain, 126, "program_not_executable"),
        (&["--cwd", missing], "true", 125, "cwd_not_found"),
        (&["--cwd", plain], "true", 125, "cwd_not_directory"),
        (&[], "", 125, "invalid_spec"),
    ] {
        let options = [&["--json", "--record", "cast"], options].concat();
        let done = case.term_to_end(&options, &[program]);
        let object = done.object();
        assert_eq!((done.code(), &object["error"]["kind"]), (status, &json!(kind)));
        assert_eq!(object["cause"], "spawn_failed", "{kind}");
        assert!(!done.line().is_empty(), "{kind}");
        assert!(!case.path("cast").exists(), "{kind}: nothing was recorded");
    }
}

#[test]
fn other_options_are_refused_as_by_a_run() {
    let case = Case::new();
    for (words, said) in [
        (&["--timeout", "5"][..], "a bare number has no unit"),
        (&["--term", ""], "--term"),
        (&["--env", "x"], "--env number 1"),
        (&["--cwd="], "--cwd"),
        (&["--stdin", "-"], "--stdin"),
    ] {
        let done = case.term_to_end(words, &["true"]);
        assert_eq!((done.code(), done.text()), (125, ""), "{words:?}");
        assert!(done.line().contains(said), "{words:?}: {}", done.line());
    }
}
