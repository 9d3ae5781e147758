//! What a command reads.

use std::io::Write;
use std::process::Stdio;

use crate::fixture::{Case, finish, start, stdout_line, within};

#[test]
fn item_30_without_a_word_there_is_nothing_to_read() {
    let case = Case::new();
    let mut command = case.command([
        "run",
        "--quiet",
        "--",
        "/bin/sh",
        "-c",
        "cat; readlink /proc/self/fd/0",
    ]);
    // Our own input has no end in sight.
    let mut call = start(command.stdin(Stdio::piped()));
    let input = call.stdin.take();
    let done = finish(call);
    drop(input);
    assert_eq!(done.text(), "/dev/null\n");
}

#[test]
fn a_string_is_read_as_it_is() {
    let case = Case::new();
    assert_eq!(
        case.run(&["--quiet", "--stdin", "two\nlines"], &["cat"]).text(),
        "two\nlines"
    );
    assert_eq!(case.run(&["--quiet", "--stdin", ""], &["cat"]).text(), "");
    assert_eq!(case.run(&["--quiet", "--stdin=-n"], &["cat"]).text(), "-n");
}

#[test]
fn a_dash_passes_our_own_input_on_live() {
    let case = Case::new();
    let mut command = case.command(["run", "--quiet", "--stdin", "-", "--", "/bin/sh", "-c"]);
    command.arg("read line; echo got $line; cat");
    let mut call = start(command.stdin(Stdio::piped()));
    let mut input = call.stdin.take().expect("it is piped");
    input.write_all(b"first\n").expect("it is read");
    assert_eq!(stdout_line(&mut call), "got first");
    input.write_all(b"second\n").expect("it is read");
    drop(input);
    let done = finish(call);
    assert_eq!((done.code(), done.text()), (0, "second\n"));
}

#[test]
fn o20_a_large_input_passes_whole() {
    let case = Case::new();
    let bytes: Vec<u8> = (0..8 << 20)
        .map(|n: u32| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    let file = case.file("input", &bytes);
    let done = case.run(&["--quiet", "--stdin-file", file.to_str().unwrap()], &["cat"]);
    assert!(
        done.stdout == bytes,
        "{} bytes came of {}",
        done.stdout.len(),
        bytes.len()
    );

    let mut call = start(
        case.command(["run", "--quiet", "--stdin", "-", "cat"])
            .stdin(Stdio::piped()),
    );
    let mut input = call.stdin.take().expect("it is piped");
    let sent = bytes.clone();
    std::thread::spawn(move || input.write_all(&sent));
    assert!(finish(call).stdout == bytes);
}

#[test]
fn the_end_of_the_command_is_the_end_of_the_run_though_our_input_stays_open() {
    let case = Case::new();
    for script in ["exit 5", "read line; exit 5"] {
        let mut command = case.command(["run", "--quiet", "--stdin", "-", "--", "/bin/sh", "-c", script]);
        let mut call = start(command.stdin(Stdio::piped()));
        let mut input = call.stdin.take().expect("it is piped");
        // The command may be gone already.
        let _ = input.write_all(b"line\n");
        assert_eq!(finish(call).code(), 5);
        drop(input);
    }
}

#[test]
fn item_32_a_command_that_does_not_read_its_input_is_no_failure() {
    let case = Case::new();
    let file = case.file("input", vec![b'x'; 1 << 20]);
    assert_eq!(
        case.run(&["--quiet", "--stdin-file", file.to_str().unwrap()], &["true"])
            .code(),
        0
    );
    assert_eq!(
        case.run(&["--quiet", "--stdin", &"x".repeat(100_000)], &["true"])
            .code(),
        0
    );
}

#[test]
fn a_fifo_is_a_file_to_read_too() {
    let case = Case::new();
    let gate = case.gate("fifo");
    let call = start(&mut case.command(["run", "--quiet", "--stdin-file", &gate.path(), "--", "cat"]));
    let path = gate.path();
    within("a reader of the FIFO", move || {
        std::fs::write(path, "through a fifo\n")
    })
    .expect("it is read");
    assert_eq!(finish(call).text(), "through a fifo\n");
}

#[test]
fn input_that_breaks_off_is_named_and_ends_the_tree() {
    let case = Case::new();
    // Reading the memory of a process at address 0 fails, and opening it does not.
    let done = case.run(
        &["--stdin-file", "/proc/self/mem"],
        &["/bin/sh", "-c", "cat; exec sleep 300"],
    );
    assert_eq!(done.code(), 125);
    assert!(
        done.line().starts_with("--stdin-file /proc/self/mem: "),
        "{}",
        done.line()
    );
    case.assert_nothing_lives();
}
