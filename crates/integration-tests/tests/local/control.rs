//! The control pipe (item 181), and data through a socket (item 31).

use bytes::Bytes;
use dsh_subprocess::{CONTROL_VARIABLE, Stdin};
use dsh_subprocess_local::{DataTransport, KernelFeature};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{Case, Tier, finished, on_each_tier, text, within};

on_each_tier! {
    item_181_a_control_pipe_carries_a_conversation_beside_the_streams,
    item_181_the_childs_end_of_file_leaves_its_answers_readable,
    item_181_unread_control_data_holds_up_neither_done_nor_the_trees_end,
    item_181_without_a_control_pipe_there_is_neither_variable_nor_descriptor,
    item_181_a_control_pipe_survives_the_walk_over_the_descriptor_table,
    item_31_data_can_come_through_a_socket,
}

const ANSWER: &str =
    "read -r line <&\"$DSH_SUBPROCESS_CONTROL\"; echo \"got $line\" >&\"$DSH_SUBPROCESS_CONTROL\"";

fn item_181_a_control_pipe_carries_a_conversation_beside_the_streams(tier: Tier) {
    converse(&Case::new(tier));
}

fn item_181_a_control_pipe_survives_the_walk_over_the_descriptor_table(tier: Tier) {
    converse(&Case::with(tier, |builder| {
        builder.without(KernelFeature::CloseRange)
    }));
}

fn converse(case: &Case) {
    let mut spec = case.bash(&format!("{ANSWER}; ls /proc/self/fd"));
    spec.control = true;
    let mut process = case.spawn(spec);
    let mut control = process.control().expect("it was asked for");
    assert!(process.control().is_none(), "it is taken once");
    within(control.writer.write_all(b"hello\n")).expect("the child reads");
    let mut answer = String::new();
    within(control.reader.read_to_string(&mut answer)).expect("the child's end is closed with it");
    assert_eq!(answer, "got hello\n");
    assert!(finished(&process).success());
    // The three standard ones, the control pipe, and the one that lists them.
    assert_eq!(text(&process), "0\n1\n2\n3\n4\n");
}

fn item_181_the_childs_end_of_file_leaves_its_answers_readable(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.bash("cat <&3 >&3; echo rest >&3");
    spec.control = true;
    let mut process = case.spawn(spec);
    let mut control = process.control().expect("it was asked for");
    within(control.writer.write_all(b"half")).expect("there is room");
    within(control.writer.shutdown()).expect("it is closed");
    let mut answer = String::new();
    within(control.reader.read_to_string(&mut answer)).expect("reading goes on");
    assert_eq!(answer, "halfrest\n");
    assert!(finished(&process).success());
}

fn item_181_unread_control_data_holds_up_neither_done_nor_the_trees_end(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.bash("echo unread >&3");
    spec.control = true;
    let mut process = case.spawn(spec);
    assert!(finished(&process).success());
    within(process.terminate()).expect("the tree is gone");
    let mut left = String::new();
    let mut control = process.control().expect("it was asked for");
    within(control.reader.read_to_string(&mut left)).expect("it is still there");
    assert_eq!(left, "unread\n");
}

fn item_181_without_a_control_pipe_there_is_neither_variable_nor_descriptor(tier: Tier) {
    let case = Case::new(tier);
    let mut process = case.spawn(case.bash(&format!("echo \"${CONTROL_VARIABLE}\"; ls /proc/self/fd")));
    assert!(process.control().is_none());
    assert!(finished(&process).success());
    assert_eq!(text(&process), "\n0\n1\n2\n3\n");
}

fn item_31_data_can_come_through_a_socket(tier: Tier) {
    let case = Case::with(tier, |builder| builder.data_transport(DataTransport::Socket));
    let mut spec = case.bash("test -S /dev/stdin && cat");
    let input = "x".repeat(1 << 19);
    spec.stdin = Stdin::Data(Bytes::from(input.clone()));
    let (outcome, process) = case.run(spec);
    assert!(outcome.success(), "{outcome}");
    assert!(text(&process) == input);
}
