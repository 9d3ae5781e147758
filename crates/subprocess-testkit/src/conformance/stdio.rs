//! Contract D: the three streams.

use std::io;

use bytes::Bytes;
use dsh_subprocess::{Collect, ErrorOutput, Output, Stdin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::World;
use super::child::{end, finish, gone, numbered, raw_line, raw_rest, ready, start};
use super::watchdog::within;

fn kept(max_bytes: usize) -> Output {
    Output::Collect(Collect {
        max_bytes,
        head_bytes: 0,
        spill: None,
    })
}

/// A child without input reads its end at once.
pub async fn item_30_ignored_input_is_at_its_end(world: &World) {
    let finished = finish(&start(world, world.spec(&["cat"]))).await;
    assert!(finished.outcome.success(), "{}", finished.outcome);
    assert_eq!(finished.stdout, Bytes::new());
}

/// Data arrives whole, then the end; there is no raw input beside it.
pub async fn item_31_data_arrives_whole_and_ends(world: &World) {
    let mut spec = world.spec(&["cat"]);
    let data = Bytes::from(numbered(300_001));
    spec.stdin = Stdin::Data(data.clone());
    let mut process = start(world, spec);
    assert!(process.stdin().is_none());
    assert_eq!(finish(&process).await.stdout, data);
}

/// A child that does not read its data is no error.
pub async fn item_32_data_that_is_not_read_is_no_error(world: &World) {
    let mut spec = world.spec(&["exit", "3"]);
    spec.stdin = Stdin::Data(Bytes::from(vec![b'x'; 1 << 20]));
    assert_eq!(finish(&start(world, spec)).await.outcome.code(), Some(3));
}

/// A handle has exactly the streams that the spec asked for, and gives each raw one once.
pub async fn item_33_a_handle_has_the_streams_it_was_asked_for(world: &World) {
    let runtime = world.runtime();
    let mut spec = world.spec(&["cat"]);
    spec.stdin = Stdin::Pipe;
    spec.stdout = Output::Pipe;
    let mut process = runtime.spawn(spec).expect("a valid spec");
    let (stdin, stdout) = (process.stdin(), process.stdout());
    assert!(stdin.is_some() && stdout.is_some());
    assert!(
        process.stdin().is_none() && process.stdout().is_none(),
        "a raw stream was given twice"
    );
    assert!(process.stderr().is_none() && process.collected_stdout().is_none());
    assert!(process.collected_stderr().is_some());
    drop(stdin);
    gone(&process).await;

    let mut process = runtime.spawn(world.spec(&["cat"])).expect("a valid spec");
    assert!(process.stdin().is_none() && process.stdout().is_none() && process.stderr().is_none());
    assert!(process.collected_stdout().is_some() && process.collected_stderr().is_some());
    gone(&process).await;
}

/// What is written to a raw input arrives while the child runs; dropping the writer is the child's end of file.
pub async fn item_33_a_raw_input_is_a_conversation(world: &World) {
    let mut spec = world.spec(&["cat"]);
    spec.stdin = Stdin::Pipe;
    spec.stdout = Output::Pipe;
    let mut process = start(world, spec);
    let (mut stdin, mut stdout) = (process.stdin().expect("piped"), process.stdout().expect("piped"));
    for line in ["one", "two"] {
        let sent = format!("{line}\n");
        within("room in the pipe", stdin.write_all(sent.as_bytes()))
            .await
            .expect("the child reads");
        within("a flush", stdin.flush()).await.expect("the child reads");
        assert_eq!(raw_line(&mut stdout).await, line);
    }
    drop(stdin);
    assert_eq!(raw_rest(&mut stdout).await, b"");
    assert!(finish(&process).await.outcome.success());
}

/// An inherited stream has neither a raw end nor a reader.
pub async fn item_34_an_inherited_stream_is_the_hosts(world: &World) {
    let mut spec = world.spec(&["exit", "0"]);
    spec.stdout = Output::Inherit;
    spec.stderr = ErrorOutput::Own(Output::Inherit);
    let mut process = start(world, spec);
    assert!(process.stdout().is_none() && process.stderr().is_none());
    assert!(process.collected_stdout().is_none() && process.collected_stderr().is_none());
    assert!(finish(&process).await.outcome.success());
}

/// A raw stream gives every byte, at the reader's pace.
pub async fn item_35_a_raw_stream_gives_every_byte(world: &World) {
    let length = 1_000_003;
    let mut spec = world.spec(&["flood", &length.to_string()]);
    spec.stdout = Output::Pipe;
    let mut process = start(world, spec);
    let mut stdout = process.stdout().expect("piped");
    let mut bytes = vec![0; 10];
    within("the first bytes", stdout.read_exact(&mut bytes))
        .await
        .expect("the child writes");
    bytes.extend(raw_rest(&mut stdout).await);
    assert!(
        bytes == numbered(length),
        "{} bytes came, of {length}",
        bytes.len()
    );
    assert!(finish(&process).await.outcome.success());
}

/// What a raw stream still held when the child ended can be read afterwards.
pub async fn item_35_unread_raw_bytes_outlive_the_child(world: &World) {
    let mut spec = world.spec(&["echo", "still", "here"]);
    spec.stdout = Output::Pipe;
    let mut process = start(world, spec);
    let mut stdout = process.stdout().expect("piped");
    within("done", process.done()).await.expect("an outcome");
    gone(&process).await;
    assert_eq!(raw_rest(&mut stdout).await, b"still here\n");
}

/// Each stream has a window of its own, and modes can be mixed.
pub async fn item_36_the_streams_are_independent(world: &World) {
    let runtime = world.runtime();
    let mut spec = world.spec(&["flood", "1000", "--stderr"]);
    spec.stdout = Output::Pipe;
    spec.stderr = ErrorOutput::Own(kept(100));
    let mut process = runtime.spawn(spec).expect("a valid spec");
    assert_eq!(raw_rest(&mut process.stdout().expect("piped")).await, b"");
    within("done", process.done()).await.expect("an outcome");
    let stderr = process.collected_stderr().expect("collected").snapshot();
    assert_eq!((stderr.total, &stderr.tail[..]), (1000, &numbered(1000)[900..]));

    let mut spec = world.spec(&["flood", "1000"]);
    spec.stdout = kept(100);
    spec.stderr = ErrorOutput::Own(kept(7));
    let process = runtime.spawn(spec).expect("a valid spec");
    within("done", process.done()).await.expect("an outcome");
    assert_eq!(process.collected_stdout().expect("collected").total(), 1000);
    assert_eq!(process.collected_stderr().expect("collected").total(), 0);
}

/// A write to a child that reads no more fails on the stream, and not on `done`.
pub async fn item_37_a_failed_write_is_the_streams_own_error(world: &World) {
    let mut spec = world.spec(&["exit", "4"]);
    spec.stdin = Stdin::Pipe;
    let mut process = start(world, spec);
    let mut stdin = process.stdin().expect("piped");
    assert_eq!(
        within("done", process.done()).await.expect("an outcome").code(),
        Some(4)
    );
    gone(&process).await;
    let failure = within("the failure of a write", stdin.write_all(b"late"))
        .await
        .expect_err("nobody reads");
    assert_eq!(failure.kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(
        within("done", process.done()).await.expect("an outcome").code(),
        Some(4)
    );
}

/// A merged error output comes in the one stream, and there is no reader of its own.
pub async fn o16_merged_streams_are_one(world: &World) {
    let mut spec = world.spec(&["flood", "100", "--stderr"]);
    spec.stderr = ErrorOutput::Merge;
    let mut process = start(world, spec);
    assert!(process.stderr().is_none() && process.collected_stderr().is_none());
    assert_eq!(finish(&process).await.stdout, numbered(100));

    if let Some(mut spec) = world.shell_spec("for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done") {
        spec.stderr = ErrorOutput::Merge;
        let finished = finish(&start(world, spec)).await;
        let expected = (1..=9)
            .map(|i| format!("o{i}\ne{i}\n"))
            .collect::<Vec<_>>()
            .concat();
        assert_eq!(finished.stdout, expected);
    }
}

/// A raw pipe is given up as a descriptor exactly where the world promises that it is one.
pub async fn raw_pipes_are_descriptors_where_promised(world: &World) {
    let mut spec = world.spec(&["sleep"]);
    spec.stdin = Stdin::Pipe;
    spec.stderr = ErrorOutput::Own(Output::Pipe);
    let mut process = start(world, spec);
    ready(&process).await;
    #[cfg(unix)]
    for given in [
        process.stdin().expect("piped").try_into_fd(),
        process.stderr().expect("piped").try_into_fd(),
    ] {
        match given {
            Ok(_) => assert!(world.guarantees.raw_descriptors, "a descriptor came from nowhere"),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::Unsupported);
                assert!(!world.guarantees.raw_descriptors, "{error}");
            }
        }
    }
    end(&process).await;
}
