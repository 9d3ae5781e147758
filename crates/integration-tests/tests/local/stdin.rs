//! What a child reads: case O20 and items 30 to 32.

use bytes::Bytes;
use dsh_subprocess::{Collect, Output, Stdin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{Case, Tier, finished, line_of, numbered, on_each_tier, text, within};

const LARGE: usize = 8 << 20;

on_each_tier! {
    o20_a_large_input_and_its_echo_do_not_wait_for_each_other,
    o20_termination_covers_the_writing_of_the_input,
    item_32_unread_input_is_no_error,
    item_30_ignored_stdin_is_the_null_device,
    data_can_be_opened_as_dev_stdin,
    item_33_raw_pipes_carry_a_conversation,
    item_37_writing_to_a_closed_input_fails_as_a_broken_pipe,
    a_raw_pipe_can_be_given_up_as_a_descriptor,
}

/// Input and output far above a pipe's capacity flow at the same time.
fn o20_a_large_input_and_its_echo_do_not_wait_for_each_other(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.probe(["cat"]);
    let input = Bytes::from(numbered(LARGE));
    spec.stdin = Stdin::Data(input.clone());
    spec.stdout = Output::Collect(Collect {
        max_bytes: LARGE,
        head_bytes: 0,
        spill: None,
    });
    let (outcome, process) = case.run(spec);
    assert!(outcome.success());
    assert!(
        process
            .collected_stdout()
            .expect("it is collected")
            .read_from(0)
            .bytes
            == input
    );
}

/// A child that never reads its input, or none of the rest, is ended all the same.
fn o20_termination_covers_the_writing_of_the_input(tier: Tier) {
    for script in ["cat >/dev/null; echo ready; sleep 300", "echo ready; sleep 300"] {
        let case = Case::new(tier);
        let mut spec = case.bash(script);
        spec.stdin = Stdin::Data(Bytes::from(numbered(LARGE)));
        let process = case.spawn(spec);
        line_of(&process, "ready");
        within(process.terminate()).expect("the tree ends");
        case.assert_gone();
        assert_eq!(
            finished(&process)
                .signal()
                .map(|signal| signal.as_str().to_owned())
                .as_deref(),
            Some("SIGTERM")
        );
    }
}

/// A child that ends without reading its input is no failure of the run.
fn item_32_unread_input_is_no_error(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.probe(["exit", "3"]);
    spec.stdin = Stdin::Data(Bytes::from(numbered(LARGE)));
    let (outcome, _) = case.run(spec);
    assert_eq!(outcome.code(), Some(3));
}

/// No input is the null device.
fn item_30_ignored_stdin_is_the_null_device(tier: Tier) {
    let case = Case::new(tier);
    let (outcome, process) = case.run(case.bash("stat -L -c '%F %t:%T' /dev/stdin; wc -c"));
    assert!(outcome.success());
    assert_eq!(text(&process), "character special file 1:3\n0\n");
}

/// `Data` can be opened again by its name, as a script read from `/dev/stdin` is.
fn data_can_be_opened_as_dev_stdin(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.bash("cat /dev/stdin");
    spec.stdin = Stdin::Data(Bytes::from_static(b"by its name"));
    let (outcome, process) = case.run(spec);
    assert!(outcome.success(), "{outcome}");
    assert_eq!(text(&process), "by its name");
}

/// Raw pipes are the caller's own: a conversation over both, and the end of the one ends the other.
fn item_33_raw_pipes_carry_a_conversation(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.probe(["cat"]);
    spec.stdin = Stdin::Pipe;
    spec.stdout = Output::Pipe;
    let mut process = case.spawn(spec);
    let mut input = process.stdin().expect("it is a pipe");
    let mut output = process.stdout().expect("it is a pipe");
    assert!(process.stdin().is_none() && process.stdout().is_none() && process.collected_stdout().is_none());
    let mut answer = [0; 5];
    for question in [b"first", b"other"] {
        within(input.write_all(question)).expect("the child reads");
        within(output.read_exact(&mut answer)).expect("the child answers");
        assert_eq!(&answer, question);
    }
    drop(input);
    assert_eq!(within(output.read(&mut answer)).expect("the end is no error"), 0);
    assert!(finished(&process).success());
}

/// A write to a child that is gone fails; the host gets no `SIGPIPE`.
fn item_37_writing_to_a_closed_input_fails_as_a_broken_pipe(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.bash("exec <&-; echo closed; sleep 300");
    spec.stdin = Stdin::Pipe;
    let mut process = case.spawn(spec);
    let mut input = process.stdin().expect("it is a pipe");
    line_of(&process, "closed");
    let error = within(input.write_all(b"nobody")).expect_err("nobody reads");
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    within(process.terminate()).expect("the tree ends");
}

/// A pipe given up as a descriptor is an ordinary, blocking one.
fn a_raw_pipe_can_be_given_up_as_a_descriptor(tier: Tier) {
    use std::io::Read;
    let case = Case::new(tier);
    let mut spec = case.probe(["flood", "1000000"]);
    spec.stdout = Output::Pipe;
    let mut process = case.spawn(spec);
    let fd = process
        .stdout()
        .expect("it is a pipe")
        .try_into_fd()
        .expect("it is a local one");
    let mut all = Vec::new();
    std::fs::File::from(fd)
        .read_to_end(&mut all)
        .expect("reading blocks until the end");
    assert!(all == numbered(1_000_000));
    assert!(finished(&process).success());
}
