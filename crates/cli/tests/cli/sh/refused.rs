//! Bad input: one line on stderr that names the input, status 125, nothing started. With --json, the object besides.

use serde_json::Value;

use crate::fixture::Case;

/// What is wrong, and what the line must name.
const BAD: &[(&[&str], &[&str])] = &[
    (&["--timeout", "5", "T"], &["--timeout", "'5'", "5s"]),
    (&["--timeout", "0s", "T"], &["--timeout", "'0s'"]),
    (
        &["--timeout", "1s", "--no-timeout", "T"],
        &["--timeout", "--no-timeout"],
    ),
    (&["--grace", "0ms", "T"], &["--grace", "'0ms'"]),
    (&["--max-bytes", "0", "T"], &["--max-bytes", "'0'"]),
    (&["--spill-max-bytes", "1M", "T"], &["--keep-spill"]),
    (&["--env", "hidden", "T"], &["--env number 1", "NAME=VALUE"]),
    (&["--unset", "", "T"], &["--unset"]),
    (&["--session", "", "T"], &["--session"]),
    (&["--shell", "", "T"], &["program"]),
    (&["--cwd", "", "T"], &["--cwd"]),
    (&["--cwd", "/no/such/directory", "T"], &["/no/such/directory"]),
    (
        &["--stdin", "a", "--stdin-file", "b", "T"],
        &["--stdin", "--stdin-file"],
    ),
    (
        &["--stdin-file", "/no/such/input", "T"],
        &["--stdin-file", "/no/such/input"],
    ),
    (
        &["--stdin-file", "/proc", "T"],
        &["--stdin-file", "/proc", "directory"],
    ),
    (&["--file", "/no/such/text"], &["--file", "/no/such/text"]),
    (&["--file", "-", "--stdin", "-"], &["--file -", "--stdin -"]),
    (&["--file", "-", "T"], &["--file"]),
    (&["--file", "/dev/null"], &["empty"]),
    (&[""], &["empty"]),
    (&[], &["COMMAND"]),
    (&["T", "and", "more"], &["3 words", "quote"]),
    (&["T", "--json"], &["2 words", "options stand before"]),
    (&["--timout", "5s", "T"], &["--timout", "--timeout"]),
    (&["--ownership", "jail", "T"], &["--ownership", "process-group"]),
];

const TEXT: &str = "touch started";

fn words<'a>(first: &[&'a str], options: &[&'a str]) -> Vec<&'a str> {
    let options = options.iter().map(|&word| if word == "T" { TEXT } else { word });
    first.iter().copied().chain(options).collect()
}

#[test]
fn bad_input_is_named_in_one_line_and_nothing_is_started() {
    let case = Case::new();
    for (options, named) in BAD {
        let done = case.call(words(&["sh"], options));
        assert_eq!(
            (done.code(), done.text()),
            (125, ""),
            "{options:?}: {}",
            done.stderr
        );
        for word in *named {
            assert!(done.line().contains(word), "{options:?}: {}", done.line());
        }
        assert!(!done.line().contains("hidden"), "{}", done.line());
        assert!(!case.path("started").exists(), "{options:?}");
    }
}

#[test]
fn bad_input_is_an_object_too_where_one_was_asked_for() {
    let case = Case::new();
    for (options, named) in BAD {
        let done = case.call(words(&["sh", "--json"], options));
        let object = done.sh_object();
        assert_eq!(done.code(), 125, "{options:?}");
        assert_eq!(
            (&object["cause"], &object["rendered"]),
            (&Value::Null, &Value::Null)
        );
        let message = object["error"]["message"].as_str().expect("there is a message");
        for word in *named {
            assert!(message.contains(word), "{options:?}: {message}");
        }
        assert!(!done.text().contains("hidden"), "{options:?}");
        let several = options
            .iter()
            .position(|&word| word == "T")
            .is_some_and(|at| at + 1 < options.len());
        if options.contains(&"T") && !several && !options.contains(&"--file") {
            assert_eq!(object["command"], TEXT, "{options:?}");
        }
        assert!(!case.path("started").exists(), "{options:?}");
    }
}
