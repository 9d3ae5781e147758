//! What a text reads.

use std::io::Write;
use std::process::Stdio;

use crate::fixture::{Case, finish, start};

#[test]
fn without_a_word_there_is_nothing_to_read() {
    let case = Case::new();
    let mut command = case.command(["sh", "cat; readlink /proc/self/fd/0"]);
    // Our own input has no end in sight.
    let mut call = start(command.stdin(Stdio::piped()));
    let input = call.stdin.take();
    let done = finish(call);
    drop(input);
    assert_eq!(done.text(), "/dev/null\n[exit code: 0]\n");
}

#[test]
fn a_string_a_file_and_our_own_input_are_read_whole() {
    let case = Case::new();
    let file = case.file("input", "of the file\n");
    let file = file.to_str().expect("its name is text");
    assert_eq!(
        case.text(&["--stdin", "two\nlines"], "cat").text(),
        "two\nlines\n[exit code: 0]\n"
    );
    assert_eq!(
        case.text(&["--stdin-file", file], "cat").text(),
        "of the file\n[exit code: 0]\n"
    );
    let mut command = case.command(["sh", "--stdin", "-", "wc -c"]);
    let mut call = start(command.stdin(Stdio::piped()));
    let mut input = call.stdin.take().expect("it is piped");
    input.write_all(&vec![b'x'; 1 << 20]).expect("it is read");
    drop(input);
    assert_eq!(finish(call).text(), "1048576\n[exit code: 0]\n");
}

#[test]
fn o20_input_that_nobody_reads_does_not_hold_the_command_up() {
    let case = Case::new();
    let file = case.file("input", vec![b'x'; 8 << 20]);
    let options = ["--stdin-file", file.to_str().expect("its name is text")];
    assert_eq!(
        case.text(&options, "echo unread").text(),
        "unread\n[exit code: 0]\n"
    );
    let options = [&options[..], &["--timeout", "500ms"]].concat();
    let done = case.text(&options, "exec sleep 300");
    assert_eq!(done.code(), 124);
    case.assert_nothing_lives();
}

#[test]
fn input_without_an_end_is_refused_with_the_limit() {
    let case = Case::new();
    let done = case.text(&["--stdin-file", "/dev/zero"], "touch started");
    assert_eq!((done.code(), done.text()), (125, ""));
    assert!(
        done.line().contains("/dev/zero") && done.line().contains("64 MiB"),
        "{}",
        done.line()
    );
    assert!(!case.path("started").exists());
}
