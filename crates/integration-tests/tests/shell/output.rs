//! Bytes are kept as they came, bounded, in order, and in every case (O12, O13, O15, O16, O17).

use std::fs;
use std::time::Duration;

use dsh_shell::{Cause, Collected, RunResult, ShellRequest, SpillLife, SpillState, render, view};

use crate::fixture::{Host, Tier, on_each_tier};
use crate::stage::{Stage, assert_exit, stderr, stdout, whole};

on_each_tier! {
    o12_characters_survive_whatever_pieces_they_come_in,
    o12_the_spill_is_what_was_written,
    o13_memory_does_not_grow_with_the_output,
    o15_a_model_sees_the_last_state_of_each_line,
    o16_merged_streams_keep_their_order,
    o16_separate_streams_keep_the_order_within_each,
    o17_a_timeout_keeps_what_was_printed,
    o17_a_cancelled_token_keeps_what_was_printed,
    o17_a_timeout_keeps_the_spill_of_a_large_output,
}

/// Both ends of the text are looked at: what a reader gives piece by piece, and what the result shows.
fn o12_characters_survive_whatever_pieces_they_come_in(tier: Tier) {
    let stage = Stage::new(tier);
    let pieces = r"printf 'a\xe2'; sleep 0.1; printf '\x80\x94b'; sleep 0.1; printf '\xff\x00z'";
    for (command, on_stderr) in [(pieces.to_owned(), false), (format!("{{ {pieces}; }} >&2"), true)] {
        let execution = stage.execute(ShellRequest::new(&command[..]));
        let mut read = String::new();
        let reader = if on_stderr {
            execution.stderr().expect("it is a stream of its own")
        } else {
            execution.stdout()
        };
        while !reader.is_sealed() {
            let total = reader.total();
            read.push_str(&execution.read_output().delta);
            stage.within(reader.changed(total));
        }
        let result = stage.within(execution.result()).expect("the command is run");
        read.push_str(&execution.read_output().delta);
        assert_exit(&result, 0);
        // Each read puts its error output below a line of its own.
        let read = read.replace("[stderr]\n", "").replace('\n', "");
        assert_eq!(read, "a\u{2014}b\u{fffd}\0z", "on stderr: {on_stderr}");
        let collected = if on_stderr {
            result.stderr.as_ref().expect("it is a stream of its own")
        } else {
            &result.stdout
        };
        assert_eq!(whole(collected), b"a\xe2\x80\x94b\xff\0z");
    }
    stage.end();
}

/// Reads the file with the whole of a stream, by pages.
#[track_caller]
fn spilled(stage: &Stage, collected: &Collected) -> Vec<u8> {
    let SpillState::Available(file) = &collected.spill else {
        panic!("{:?}", collected.spill)
    };
    assert_eq!(file.length, collected.snapshot.total);
    let mut bytes = Vec::new();
    loop {
        let page = collected.reader.read_spilled(bytes.len() as u64, 100_000);
        let page = stage.within(page).expect("it can be read");
        if page.is_empty() {
            return bytes;
        }
        bytes.extend_from_slice(&page);
    }
}

fn o12_the_spill_is_what_was_written(tier: Tier) {
    let stage = Stage::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = |redirection: &str| {
        let mut request = ShellRequest::new(format!("head -c 300000 /dev/urandom | tee copy {redirection}"));
        request.workdir = Some(directory.path().to_owned().into());
        let result = stage.run_request(request);
        assert_exit(&result, 0);
        (
            result,
            fs::read(directory.path().join("copy")).expect("it is there"),
        )
    };
    let (result, written) = run("");
    assert_eq!(written.len(), 300_000);
    assert!(spilled(&stage, &result.stdout) == written, "the bytes differ");
    assert_eq!(result.stdout.snapshot.tail, written[written.len() - 48_000..]);
    assert_eq!(result.stdout.snapshot.head, written[..16_000]);
    let (result, written) = run(">&2");
    let stderr = result.stderr.as_ref().expect("it is a stream of its own");
    assert!(spilled(&stage, stderr) == written, "the bytes differ");
    // Text can be made of any bytes.
    let shown = render::render(&view(&result), &render::Style::default()).text;
    assert!(shown.contains("[stderr]\n"));
    drop(result);
    stage.end();
}

/// In a process of its own, whose peak is its alone: two gigabytes of lines, and half of one in a single line, at once.
fn o13_memory_does_not_grow_with_the_output(tier: Tier) {
    let report = Host::new(tier).report([
        "shell-at-once",
        "yes | head -c 2000000000",
        "head -c 500000000 /dev/zero | tr '\\0' x",
    ]);
    assert_eq!(
        report.all("outcome").collect::<Vec<_>>(),
        ["exited with code 0"; 2]
    );
    assert_eq!(report.all("cause").collect::<Vec<_>>(), ["ended"; 2]);
    assert_eq!(
        report.all("total").collect::<Vec<_>>(),
        ["2000000000", "500000000"]
    );
    assert_eq!(report.all("head").collect::<Vec<_>>(), ["16000"; 2]);
    assert_eq!(report.all("tail").collect::<Vec<_>>(), ["48000"; 2]);
    let grown: u64 = report.number("grown-kib");
    assert!(grown < 16 * 1024, "the host grew by {grown} KiB");
}

fn shown(result: &RunResult) -> String {
    render::render(&view(result), &render::Style::default()).text
}

fn o15_a_model_sees_the_last_state_of_each_line(tier: Tier) {
    let stage = Stage::new(tier);
    let progress = r#"for i in $(seq 1 500); do printf "\rprogress %d%%" $((i/5)); done; printf "\nfinal\n""#;
    let result = stage.run(progress);
    assert_eq!(shown(&result), "progress 100%\nfinal\n[exit code: 0]");
    assert_eq!(
        result.stdout.snapshot.total, 6459,
        "the bytes themselves are all there"
    );
    let result = stage.run(r"printf 'first\rsecond\nthird\r\nfourth\n'");
    assert_eq!(shown(&result), "second\nthird\nfourth\n[exit code: 0]");
    assert_eq!(stdout(&result), "first\rsecond\nthird\r\nfourth\n");
    stage.end();
}

const ALTERNATING: &str = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done";

fn o16_merged_streams_keep_their_order(tier: Tier) {
    let stage = Stage::new(tier);
    for _ in 0..20 {
        let mut request = ShellRequest::new(ALTERNATING);
        request.merge_stderr = true;
        let result = stage.run_request(request);
        assert_eq!(stdout(&result), "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
        assert!(result.stderr.is_none());
    }
    stage.end();
}

fn o16_separate_streams_keep_the_order_within_each(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.run(ALTERNATING);
    assert_eq!(stdout(&result), "o1\no2\no3\no4\no5\n");
    assert_eq!(stderr(&result), "e1\ne2\ne3\ne4\ne5\n");
    stage.end();
}

const CRITICAL: &str = "echo warn >&2; echo CRITICAL; exec sleep 300";

#[track_caller]
fn assert_kept(result: &RunResult, cause: Cause) {
    assert_eq!(result.cause, cause);
    assert!(!result.outcome.success(), "{:?}", result.outcome);
    assert_eq!(
        (&stdout(result)[..], &stderr(result)[..]),
        ("CRITICAL\n", "warn\n")
    );
    let shown = shown(result);
    assert!(shown.starts_with("CRITICAL\n[stderr]\nwarn\n"), "{shown}");
    assert!(!shown.contains("[exit code: 0]"), "{shown}");
}

fn o17_a_timeout_keeps_what_was_printed(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.run_for(CRITICAL, Duration::from_secs(2));
    assert_kept(&result, Cause::TimedOut);
    assert!(shown(&result).contains("[timed out after 2000ms]"));
    stage.end();
}

fn o17_a_cancelled_token_keeps_what_was_printed(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.cancel_at(CRITICAL, "CRITICAL");
    assert_kept(&result, Cause::Aborted);
    assert!(shown(&result).contains("[aborted]"));
    stage.end();
}

fn o17_a_timeout_keeps_the_spill_of_a_large_output(tier: Tier) {
    let stage = Stage::with(tier, |config| config.spill_life = SpillLife::Handle);
    let command = "yes 0123456789abcde | head -c 5000000; echo; echo CRITICAL; sleep 300";
    let result = stage.run_for(command, Duration::from_secs(5));
    assert_eq!(result.cause, Cause::TimedOut);
    let file = spilled(&stage, &result.stdout);
    assert_eq!(file.len(), 5_000_000 + "\nCRITICAL\n".len());
    assert!(file.starts_with(b"0123456789abcde\n") && file.ends_with(b"\nCRITICAL\n"));
    let SpillState::Available(place) = &result.stdout.spill else {
        panic!("{:?}", result.stdout.spill)
    };
    let text = shown(&result);
    assert!(
        text.contains(&format!("[output truncated; full output: {}]", place.location)),
        "{text}"
    );
    drop(result);
    stage.end();
}
