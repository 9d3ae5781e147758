//! Streaming: what comes out is what the command wrote, as it writes it.

use nix::sys::signal::Signal;

use crate::fixture::{Case, eventually, finish, signal, start, state, stdout_line, within};

#[test]
fn output_is_passed_on_byte_for_byte() {
    let case = Case::new();
    let every_byte: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let file = case.file("bytes", &every_byte);
    let done = case.run(&["--quiet"], &["cat", file.to_str().unwrap()]);
    assert_eq!(done.code(), 0);
    assert!(
        done.stdout == every_byte,
        "{} bytes came of {}",
        done.stdout.len(),
        every_byte.len()
    );
    assert_eq!(done.stderr, "");
}

#[test]
fn the_two_streams_stay_apart() {
    let done = Case::new().sh(&["--quiet"], "echo out; echo err >&2");
    assert_eq!((done.text(), &done.stderr[..]), ("out\n", "err\n"));
}

#[test]
fn output_arrives_while_the_command_runs() {
    let case = Case::new();
    let mut call = case.start_sh(&["--quiet"], "echo early; exec sleep 300");
    assert_eq!(stdout_line(&mut call), "early");
    signal(&call, Signal::SIGTERM);
    assert_eq!(finish(call).code(), 143);
}

#[test]
fn o16_merged_streams_keep_the_order_they_were_written_in() {
    let case = Case::new();
    let script = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done";
    let expected = "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n";
    for _ in 0..20 {
        let done = case.sh(&["--quiet", "--merge-stderr"], script);
        assert_eq!((done.text(), &done.stderr[..]), (expected, ""));
    }
}

#[test]
fn the_last_bytes_are_not_lost() {
    let case = Case::new();
    for _ in 0..50 {
        let done = case.run(&["--quiet"], &["seq", "1", "20000"]);
        assert!(
            done.text().ends_with("\n19999\n20000\n"),
            "ends with {:?}",
            &done.text()[done.text().len() - 20..]
        );
        assert_eq!(done.stdout.len(), 108_894);
    }
}

#[test]
fn one_line_of_facts_follows_the_output() {
    let done = Case::new().sh(
        &["--ownership", "process-group"],
        "printf hello; printf '!\\n' >&2; exit 3",
    );
    assert_eq!(done.code(), 3);
    assert_eq!(done.text(), "hello");
    let line = done
        .stderr
        .strip_prefix("!\n")
        .expect("the command's own line comes first");
    assert!(
        line.starts_with("dsh-subprocess: exited with code 3 in "),
        "{line}"
    );
    assert!(
        line.ends_with("ms · process_group · stdout 5 B · stderr 2 B\n"),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn as_root_the_facts_name_the_control_group() {
    for ownership in ["auto", "cgroup"] {
        let done = Case::new().run(&["--ownership", ownership], &["true"]);
        assert_eq!(done.code(), 0);
        assert!(done.line().contains(" · cgroup · "), "{}", done.line());
    }
}

#[test]
fn the_facts_have_a_line_of_their_own_after_an_unfinished_one() {
    let done = Case::new().sh(&[], "printf unfinished >&2");
    let (first, second) = done.stderr.split_once('\n').expect("there are two lines");
    assert_eq!(first, "unfinished");
    assert!(
        second.starts_with("dsh-subprocess: exited with code 0 in "),
        "{second}"
    );
}

#[test]
fn the_facts_name_the_signal_that_ended_the_command() {
    let done = Case::new().sh(&[], "kill -KILL $$");
    assert_eq!(done.code(), 137);
    assert!(done.line().starts_with("ended by SIGKILL in "), "{}", done.line());
}

#[test]
fn a_slow_reader_slows_the_command() {
    const WRITTEN: u64 = 64 << 20;
    /// What pipes and the binary may hold on the way.
    const UNDERWAY: u64 = 1 << 20;

    let case = Case::new();
    let script = format!("echo $$; exec head -c {WRITTEN} /dev/zero");
    let mut call = start(&mut case.command(["run", "--quiet", "--", "/bin/sh", "-c", &script]));
    let pid = stdout_line(&mut call);
    // Nobody reads now. The command must come to rest long before its end.
    let mut written = None;
    eventually("the command to end or to be held up", || {
        written = held_up_after(&pid, call.id());
        written.is_some() || written_by(&pid).is_none()
    });
    let written = written.expect("the command went on without a reader");
    assert!(
        written <= UNDERWAY,
        "the command was {written} bytes ahead of its reader"
    );

    let mut stdout = call.stdout.take().expect("it is piped");
    let rest = within("the rest of the output", move || {
        std::io::copy(&mut stdout, &mut std::io::sink())
    });
    assert_eq!(rest.expect("it can be read"), WRITTEN);
    assert_eq!(finish(call).code(), 0);
}

/// Returns how much a command has written, when it is at rest and the binary, too.
///
/// If the binary were only slow to fetch what there is, the command would be woken by the time it sleeps itself; so the
/// command is looked at before and after.
fn held_up_after(command: &str, binary: u32) -> Option<u64> {
    let at_rest = || {
        let asleep = state(command.parse().expect("it is a pid")) == Some('S');
        written_by(command).filter(|&written| asleep && written >= 64 << 10)
    };
    let before = at_rest()?;
    let threads = std::fs::read_dir(format!("/proc/{binary}/task")).ok()?;
    let mut threads = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
    let after = threads.all(|thread| state(thread) == Some('S')).then(at_rest)?;
    after.filter(|&after| after == before)
}

/// Returns how many bytes a live process has written so far.
fn written_by(pid: &str) -> Option<u64> {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    io.lines()
        .find_map(|line| line.strip_prefix("wchar: "))?
        .parse()
        .ok()
}
