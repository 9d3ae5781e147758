//! What is collected, and how it reads: cases O12, O13, O16 and O18, and items 39, 42 and 54.

use dsh_subprocess::{
    Collect, ErrorOutput, Output, OutputReader, PipeWriter, Process, SpawnSpec, Stdin, TextCursor,
};
use tokio::io::AsyncWriteExt;

use crate::fixture::{Case, Host, Tier, finished, numbered, on_each_tier, text, within};

/// Lets a `pieces` child write its next piece, and waits until it is collected.
fn next_piece(input: &mut PipeWriter, output: &OutputReader) {
    let total = output.total();
    within(input.write_all(b".")).expect("the child reads");
    within(output.changed(total));
}

fn stream<'a>(process: &'a Process, option: Option<&str>) -> &'a OutputReader {
    match option {
        Some(_) => process.collected_stderr(),
        None => process.collected_stdout(),
    }
    .expect("it is collected")
}

fn collect(spec: &mut SpawnSpec, collect: Collect) {
    spec.stdout = Output::Collect(collect.clone());
    spec.stderr = ErrorOutput::Own(Output::Collect(collect));
}

on_each_tier! {
    o12_characters_split_across_reads_stay_whole,
    o12_random_bytes_are_collected_unchanged,
    item_39_window_is_exact_for_one_byte_chunks,
    single_bytes_are_seen_as_they_come,
    o13_memory_does_not_grow_with_the_output,
    o16_merged_streams_keep_their_order,
    o18_a_follower_misses_nothing_between_its_last_read_and_the_exit,
}

/// Text is never cut inside a character, whatever the chunks; bytes that are no text become one U+FFFD each.
fn o12_characters_split_across_reads_stay_whole(tier: Tier) {
    for option in [None, Some("--stderr")] {
        let case = Case::new(tier);
        let mut spec = case.probe(
            ["pieces", "61e2", "8094", "62", "ff007a", "e2", "80"]
                .into_iter()
                .chain(option),
        );
        spec.stdin = Stdin::Pipe;
        let mut process = case.spawn(spec);
        let mut input = process.stdin().expect("it is a pipe");
        let output = stream(&process, option);
        let mut cursor = TextCursor::new(0);
        let mut next = || {
            next_piece(&mut input, output);
            cursor.read(output).text
        };
        assert_eq!(next(), "a");
        assert_eq!(next(), "\u{2014}");
        assert_eq!(next(), "b");
        assert_eq!(next(), "\u{fffd}\0z");
        // Incomplete so far, not wrong: only the end of the stream makes it so.
        assert_eq!(next(), "");
        next_piece(&mut input, output);
        assert!(finished(&process).success());
        assert_eq!(cursor.read(output).text, "\u{fffd}");
        assert_eq!(&output.read_from(0).bytes[..], b"a\xe2\x80\x94b\xff\0z\xe2\x80");
    }
}

/// Random bytes arrive as they are.
fn o12_random_bytes_are_collected_unchanged(tier: Tier) {
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut spec = case.bash("head -c 300000 /dev/urandom | tee copy");
    spec.cwd = directory.path().into();
    let (outcome, process) = case.run(spec);
    assert!(outcome.success());
    let read = process.collected_stdout().expect("it is collected").read_from(0);
    assert_eq!(read.gap, 0);
    assert!(read.bytes == std::fs::read(directory.path().join("copy")).expect("tee wrote it"));
    drop(text(&process));
}

/// The window is a property of the stream, not of its chunks; one-byte writes are no special case.
fn item_39_window_is_exact_for_one_byte_chunks(tier: Tier) {
    let total = 20_000;
    for (call, option) in [
        ("chunks", None),
        ("chunks", Some("--stderr")),
        ("flood", None),
        ("flood", Some("--stderr")),
    ] {
        let case = Case::new(tier);
        let size = total.to_string();
        let mut spec = case.probe([call, &size].into_iter().chain(option));
        collect(
            &mut spec,
            Collect {
                max_bytes: 1000,
                head_bytes: 100,
                spill: None,
            },
        );
        let (outcome, process) = case.run(spec);
        assert!(outcome.success());
        let snapshot = stream(&process, option).snapshot();
        let all = numbered(total);
        assert_eq!(snapshot.total, total as u64);
        assert!(snapshot.sealed);
        assert_eq!(snapshot.head, all[..100]);
        assert_eq!(snapshot.tail, all[total - 1000..]);
        let read = stream(&process, option).read_from(0);
        assert_eq!(read.next_offset, total as u64);
    }
}

/// One byte at a time, each seen before the next is written.
fn single_bytes_are_seen_as_they_come(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.probe(["cat"]);
    spec.stdin = Stdin::Pipe;
    let mut process = case.spawn(spec);
    let mut input = process.stdin().expect("it is a pipe");
    let output = process.collected_stdout().expect("it is collected");
    for (offset, byte) in (0_u64..).zip(b"one byte at a time") {
        within(input.write_all(&[*byte])).expect("the child reads");
        within(output.changed(offset));
        assert_eq!(output.read_from(offset).bytes[..], [*byte]);
    }
    drop(input);
    assert!(finished(&process).success());
}

/// Gigabytes pass, and the host keeps what was asked for.
fn o13_memory_does_not_grow_with_the_output(tier: Tier) {
    let report = Host::new(tier).report([
        "collect",
        "yes | head -c 2000000000",
        "head -c 500000000 /dev/zero | tr '\\0' x",
    ]);
    assert_eq!(
        report.all("outcome").collect::<Vec<_>>(),
        ["exited with code 0"; 2]
    );
    assert_eq!(
        report.all("total").collect::<Vec<_>>(),
        ["2000000000", "500000000"]
    );
    assert_eq!(report.all("head").collect::<Vec<_>>(), ["4096"; 2]);
    assert_eq!(report.all("tail").collect::<Vec<_>>(), ["65536"; 2]);
    let grown: u64 = report.number("grown-kib");
    assert!(grown < 16 * 1024, "the host grew by {grown} KiB");
}

/// Merged streams share one pipe, so the order of the writes is the order of the bytes.
fn o16_merged_streams_keep_their_order(tier: Tier) {
    let case = Case::new(tier);
    for _ in 0..20 {
        let mut spec = case.bash("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done");
        spec.stderr = ErrorOutput::Merge;
        let (outcome, process) = case.run(spec);
        assert!(outcome.success());
        assert_eq!(text(&process), "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
        assert!(process.collected_stderr().is_none());
        let (_, process) = case.run(case.bash("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done"));
        assert_eq!(text(&process), "o1\no2\no3\no4\no5\n");
        assert_eq!(
            process.collected_stderr().expect("it is collected").text(),
            "e1\ne2\ne3\ne4\ne5\n"
        );
    }
}

/// A reader that follows a stream and stops at the exit has seen all of it, each byte once.
fn o18_a_follower_misses_nothing_between_its_last_read_and_the_exit(tier: Tier) {
    let case = Case::new(tier);
    let expected: String = (1..=2000)
        .map(|line| format!("{line}\n"))
        .chain(["LAST\n".to_owned()])
        .collect();
    for _ in 0..200 {
        let process = case.spawn(case.bash("seq 1 2000; echo LAST"));
        let output = process.collected_stdout().expect("it is collected").clone();
        let follower = std::thread::spawn(move || {
            let mut seen = Vec::new();
            let mut offset = 0;
            loop {
                let sealed = output.is_sealed();
                let read = output.read_from(offset);
                assert_eq!((read.offset, read.gap), (offset, 0));
                assert_eq!(read.next_offset, offset + read.bytes.len() as u64);
                seen.extend_from_slice(&read.bytes);
                offset = read.next_offset;
                if sealed {
                    return seen;
                }
                within(output.changed(offset));
            }
        });
        assert!(finished(&process).success());
        // What `done` says is over is over: nothing comes after it.
        let total = process.collected_stdout().expect("it is collected").total();
        assert_eq!(total, expected.len() as u64);
        assert_eq!(
            String::from_utf8(follower.join().expect("the follower ends")).expect("text"),
            expected
        );
    }
}
