//! The command has the binary's descriptors, and nobody else has.

use std::io::{ErrorKind, Read, Write};
use std::process::Stdio;
use std::thread;

use super::{OWNERS, exec_words};
use crate::fixture::{Case, finish, start, within};

#[test]
fn bytes_pass_untouched_in_both_directions() {
    let bytes: Vec<u8> = (0..1_u32 << 20)
        .map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    for owner in OWNERS {
        let case = Case::new();
        let mut command = case.exec(&["--ownership", owner], &["cat"]);
        let mut call = start(command.stdin(Stdio::piped()));
        let mut stdin = call.stdin.take().expect("it is a pipe");
        let sent = bytes.clone();
        let writer = thread::spawn(move || stdin.write_all(&sent));
        let done = finish(call);
        assert_eq!((done.code(), &done.stderr[..]), (0, ""));
        assert!(done.stdout == bytes, "{owner}: {} bytes", done.stdout.len());
        writer
            .join()
            .expect("it does not panic")
            .expect("cat read it all");
    }
}

#[test]
fn the_two_outputs_stay_apart() {
    let done = Case::new().exec_to_end(&[], &["sh", "-c", "echo out; echo err >&2"]);
    assert_eq!((done.text(), &done.stderr[..]), ("out\n", "err\n"));
}

#[test]
fn the_end_of_our_input_is_the_end_of_the_commands() {
    let case = Case::new();
    let script = "while read line; do echo got $line; done; echo end";
    let mut call = start(case.exec(&[], &["sh", "-c", script]).stdin(Stdio::piped()));
    let mut stdin = call.stdin.take().expect("it is a pipe");
    stdin.write_all(b"one\n").expect("the command reads");
    assert_eq!(crate::fixture::stdout_line(&mut call), "got one");
    drop(stdin);
    assert_eq!(finish(call).text(), "end\n");
}

#[test]
fn an_output_that_the_command_closed_is_at_its_end_while_the_command_lives() {
    for owner in OWNERS {
        let case = Case::new();
        let script = "echo last; exec > /dev/null 2>&1; read line; exit 4";
        let mut command = case.exec(&["--ownership", owner], &["sh", "-c", script]);
        let mut call = start(command.stdin(Stdio::piped()));
        let (mut stdout, mut stderr) = (call.stdout.take().unwrap(), call.stderr.take().unwrap());
        let output = within("the end of both outputs", move || {
            let mut output = String::new();
            stdout.read_to_string(&mut output).expect("it is text");
            stderr.read_to_string(&mut output).expect("it is text");
            output
        });
        assert_eq!(output, "last\n");
        assert_eq!(call.try_wait().expect("it can be waited for"), None, "it lives");
        drop(call.stdin.take());
        assert_eq!(finish(call).code(), 4);
    }
}

#[test]
fn an_input_that_the_command_closed_takes_nothing_more() {
    for owner in OWNERS {
        let case = Case::new();
        let script = "exec < /dev/null; echo closed; exec sleep 300";
        let mut command = case.exec(&["--ownership", owner], &["sh", "-c", script]);
        let mut call = start(command.stdin(Stdio::piped()));
        assert_eq!(crate::fixture::stdout_line(&mut call), "closed");
        let mut stdin = call.stdin.take().expect("it is a pipe");
        // The binary lets go at about the same time as the command.
        let refused = within("the pipe's end", move || {
            loop {
                if let Err(error) = stdin.write_all(b"x") {
                    break error;
                }
            }
        });
        assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
        crate::fixture::signal(&call, nix::sys::signal::Signal::SIGTERM);
        finish(call);
    }
}

#[test]
fn no_other_descriptor_reaches_the_command() {
    for owner in OWNERS {
        let case = Case::new();
        let script = "for fd in 3 4 5 6 7 8 9; do (: <&$fd) 2> /dev/null && echo $fd; done; echo looked";
        let words = exec_words(&["--ownership", owner], &["sh", "-c", script]);
        let opened = "exec 3< /dev/null 7< /dev/null 9> /dev/null; exec";
        let done = finish(start(&mut case.command_after(opened, words)));
        assert_eq!(done.text(), "looked\n");
    }
}

#[test]
fn a_stream_that_was_closed_is_the_null_device() {
    let case = Case::new();
    let words = exec_words(
        &[],
        &["sh", "-c", "readlink /proc/$$/fd/0; readlink /proc/$$/fd/2"],
    );
    let done = finish(start(&mut case.command_after("exec <&- 2>&-; exec", words)));
    assert_eq!(done.text(), "/dev/null\n/dev/null\n");
}
