//! What comes through standard input is typed.

use std::io::Write;
use std::process::Stdio;

use crate::fixture::{Case, finish, start, stdout_line, within};

#[test]
fn standard_input_is_typed_as_it_comes() {
    let case = Case::new();
    let script = "stty -echo; echo ready; read line; echo \"read $line\"; read line; echo \"read $line\"";
    let mut command = case.term(&["--quiet"], &["/bin/sh", "-c", script]);
    let mut call = start(command.stdin(Stdio::piped()));
    let mut keys = call.stdin.take().expect("it is a pipe");
    assert_eq!(stdout_line(&mut call), "ready\r");
    // Each answer comes before the next line is typed: nothing waits for the end of the input.
    for word in ["one", "two"] {
        writeln!(keys, "{word}").expect("it is read");
        assert_eq!(stdout_line(&mut call), format!("read {word}\r"));
    }
    drop(keys);
    assert_eq!(finish(call).code(), 0);
}

#[test]
fn keys_that_make_signals_do() {
    let case = Case::new();
    let script = "trap 'echo interrupted; exit 9' INT; while :; do sleep 0.1; done";
    let done = case.term_typed(&["--quiet"], script, "\x03");
    // The key may come before the trap.
    assert!([9, 130].contains(&done.code()), "{}", done.text());
}

#[test]
fn the_end_of_the_input_types_nothing() {
    let case = Case::new();
    let gate = case.gate("gate");
    let script = format!(
        "exec 3<&0; stty -echo; cat <&3 & read go < '{}'; kill $!; wait $!; echo \"cat ended with $?\"",
        gate.path()
    );
    let mut command = case.term(&["--quiet"], &["/bin/sh", "-c", &script]);
    let mut call = start(command.stdin(Stdio::piped()));
    let mut keys = call.stdin.take().expect("it is a pipe");
    keys.write_all(b"typed\n").expect("it is read");
    drop(keys);
    let first = stdout_line(&mut call);
    // Echoed, if it was typed before the echo was off.
    let read = if first == "typed\r" {
        first
    } else {
        stdout_line(&mut call)
    };
    assert_eq!(read, "typed\r");
    std::fs::write(gate.path(), "go\n").expect("the script reads it");
    let done = finish(call);
    // Of the signal, not of an end that it read.
    assert!(done.text().ends_with("cat ended with 143\r\n"), "{}", done.text());
}

#[test]
fn o22_a_paste_of_any_size_arrives_whole_and_in_order() {
    let case = Case::new();
    let lines: Vec<_> = (0..3000).map(|number| format!("{number:079}\n")).collect();
    let lines = lines.concat();
    let script = "stty -echo; cat; echo \"cat ended with $?\"";
    let done = case.term_typed(&["--quiet"], script, lines.clone() + "\x04");
    let shown = done.text().replace('\r', "");
    // What was typed before the echo was off is there twice.
    assert!(shown.ends_with(&(lines + "cat ended with 0\n")), "{shown}");
}

#[test]
fn a_program_that_reads_late_gets_what_was_typed_all_the_same() {
    let case = Case::new();
    let gate = case.gate("gate");
    let script = format!(
        "stty raw -echo opost; echo ready; read go < '{}'; head -c 400000 > copy; echo done",
        gate.path()
    );
    let mut command = case.term(&["--quiet"], &["/bin/sh", "-c", &script]);
    let mut call = start(command.stdin(Stdio::piped()));
    let mut keys = call.stdin.take().expect("it is a pipe");
    assert_eq!(stdout_line(&mut call), "ready\r");
    // More than a terminal holds, and than is read ahead of it.
    within("the keys to be taken", move || {
        let typing = std::thread::spawn(move || keys.write_all(&vec![b'x'; 400_000]));
        std::fs::write(gate.path(), "go\n").expect("the script reads it");
        typing.join().expect("it does not panic").expect("all is read");
    });
    assert_eq!(finish(call).code(), 0);
    let copy = std::fs::read(case.path("copy")).expect("it is there");
    assert!(copy.len() == 400_000 && copy.iter().all(|&byte| byte == b'x'));
}

#[test]
fn a_line_that_the_terminal_would_cut_is_told_and_ends_the_session() {
    let case = Case::new();
    let done = case.term_typed(&["--json"], "exec cat > copy", vec![b'x'; 5000]);
    assert_eq!(done.code(), 125);
    let object = done.object();
    assert_eq!(
        (&object["cause"], &object["error"]["kind"]),
        (&"aborted".into(), &"input".into())
    );
    assert!(done.line().starts_with("stdin: "), "{}", done.line());
    case.assert_nothing_lives();
}

#[test]
fn input_that_cannot_be_read_ends_the_session() {
    let case = Case::new();
    let directory = std::fs::File::open(case.path("")).expect("it is there");
    let mut command = case.term(&[], &["sleep", "300"]);
    let done = finish(start(command.stdin(directory)));
    assert_eq!(done.code(), 125);
    assert!(
        done.line().starts_with("stdin: Is a directory"),
        "{}",
        done.line()
    );
    case.assert_nothing_lives();
}
