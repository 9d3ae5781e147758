//! Bad input: one line on stderr that names the input, status 125, nothing on stdout.

use std::os::unix::fs::PermissionsExt;

use crate::fixture::Case;

/// What is wrong, and what the line must name.
const BAD: &[(&[&str], &[&str])] = &[
    (
        &["--http", "everywhere"],
        &["--http", "'everywhere'", "127.0.0.1:8080"],
    ),
    (&["--http", "127.0.0.1"], &["--http", "port"]),
    (
        &["--http", "0.0.0.0:0"],
        &["0.0.0.0:0", "--allow-remote", "not encrypted"],
    ),
    (&["--http", "[::]:0"], &["[::]:0", "--allow-remote"]),
    (
        &["--http", "192.0.2.1:8080"],
        &["192.0.2.1:8080", "--allow-remote"],
    ),
    (
        &["--http", "0.0.0.0:0", "--allow-remote"],
        &["0.0.0.0:0", "--allow-host"],
    ),
    // An address that is nobody's: TEST-NET-1.
    (
        &["--http", "192.0.2.1:8080", "--allow-remote"],
        &["--http 192.0.2.1:8080", "assign"],
    ),
    (
        &[
            "--http",
            "127.0.0.1:0",
            "--token-file",
            "token",
            "--allow-origin",
            "anywhere",
        ],
        &["origin", "anywhere"],
    ),
    (
        &[
            "--http",
            "127.0.0.1:0",
            "--token-file",
            "token",
            "--allow-host",
            "no host",
        ],
        &["host", "no host"],
    ),
    (
        &["--http", "127.0.0.1:0", "--token-file", "nowhere/token"],
        &["nowhere/token", "No such file"],
    ),
    (
        &["--http", "127.0.0.1:0", "--token-file", "open"],
        &["/open", "0644"],
    ),
    (&["--token-file", "token"], &["--http"]),
    (&["--allow-remote"], &["--http"]),
    (&["--allow-origin", "http://localhost:1"], &["--http"]),
    (&["--keep-jobs"], &["--http"]),
    (
        &["--timeout", "2h"],
        &["--timeout", "2 h", "--max-timeout", "10 m"],
    ),
    (&["--timeout", "5"], &["--timeout", "'5'"]),
    (&["--max-timeout", "0s"], &["--max-timeout", "'0s'"]),
    (&["--max-bytes", "0"], &["--max-bytes", "'0'"]),
    (&["--grace", "0ms"], &["--grace", "'0ms'"]),
    (
        &["--left-behind", "forget"],
        &["--left-behind", "'forget'", "job"],
    ),
    (&["--cwd", "nowhere"], &["/nowhere", "No such file"]),
    (&["--cwd", "open"], &["/open", "not a directory"]),
    (&["--cwd", ""], &["--cwd"]),
    (&["--env", "hidden"], &["--env number 1", "NAME=VALUE"]),
    (&["--keep", ""], &["--keep"]),
    (&["--keep", "A_KEY=hidden"], &["--keep", "--env"]),
    (&["--shell", ""], &["program"]),
    (&["--log", "loud"], &["--log", "'loud'", "debug"]),
    (&["--ownership", "jail"], &["--ownership", "process-group"]),
    (&["now"], &["'now'"]),
];

#[test]
fn bad_input_is_named_in_one_line() {
    let case = Case::new();
    let open = case.file("open", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(open, PermissionsExt::from_mode(0o644)).expect("the file is ours");
    for (options, named) in BAD {
        let done = case.call([&["mcp"], *options].concat());
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
    }
}
