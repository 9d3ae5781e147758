//! How the checks follow a child: by its lines, its streams and its end, never by time.

use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use dsh_subprocess::{
    Error, Outcome, Output, OutputReader, PipeReader, Process, SpawnSpec, SubprocessRuntime,
};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use super::World;
use super::watchdog::within;

/// A child in a runtime of its own. The drop of the last reference to a runtime ends its trees, so it is held here.
pub(super) struct Child {
    process: Process,
    _runtime: Arc<dyn SubprocessRuntime>,
}

/// Starts a child in a runtime of its own.
pub(super) fn start(world: &World, spec: SpawnSpec) -> Child {
    let runtime = world.runtime();
    let process = runtime
        .spawn(spec)
        .expect("the world takes a valid spec on, whatever becomes of it");
    Child {
        process,
        _runtime: runtime,
    }
}

impl Deref for Child {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Child {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// A tree whose target has exited with 0, while a member, ready and waiting, holds its standard output and error.
///
/// Standard output is raw, since the drain has run out: a collected one would be cut off, and the member would die of
/// its own first line.
pub(super) struct Abandoned {
    pub(super) child: Child,
    pub(super) cancel: CancellationToken,
    pub(super) stdout: PipeReader,
}

/// Starts a call of the probe as such a member.
pub(super) async fn abandoned(world: &World, call: &[&str]) -> Abandoned {
    let mut spec = world.spec(&[&["hold-stdout"], call].concat());
    spec.stdout = Output::Pipe;
    spec.drain = Duration::from_millis(1);
    spec.grace = Duration::from_millis(100);
    let cancel = spec.cancel.clone();
    let mut child = start(world, spec);
    let mut stdout = child.stdout().expect("piped");
    let outcome = within("done", child.done()).await.expect("an outcome");
    assert_eq!(outcome.code(), Some(0));
    raw_line(&mut stdout).await;
    Abandoned {
        child,
        cancel,
        stdout,
    }
}

/// A child that has come to its end, and all it said.
pub(super) struct Finished {
    pub(super) outcome: Outcome,
    pub(super) stdout: Bytes,
    pub(super) stderr: Bytes,
}

/// Awaits `done` and the end of the tree.
pub(super) async fn finish(process: &Process) -> Finished {
    let outcome = within("done", process.done())
        .await
        .expect("done gives an outcome");
    gone(process).await;
    let all = |reader: Option<&OutputReader>| {
        reader.map_or_else(Bytes::new, |reader| {
            assert!(
                reader.is_sealed(),
                "a collected stream is not sealed although done has settled"
            );
            let read = reader.read_from(0);
            assert_eq!(read.gap, 0, "the check's own window was too small");
            read.bytes
        })
    };
    Finished {
        outcome,
        stdout: all(process.collected_stdout()),
        stderr: all(process.collected_stderr()),
    }
}

/// Awaits `done`, which must give an error.
pub(super) async fn done_error(process: &Process) -> Error {
    match within("done", process.done()).await {
        Ok(outcome) => panic!("done gave an outcome instead of an error: {outcome}"),
        Err(error) => error,
    }
}

/// Returns what a future has by now.
pub(super) fn by_now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Awaits the end of the whole tree.
pub(super) async fn gone(process: &Process) {
    let never = CancellationToken::new();
    let gone = within("the tree's end", process.wait_for_exit(&never)).await;
    assert!(
        gone.expect("the tree's end is observed"),
        "the wait ended although nobody cancelled it"
    );
}

/// Ends the tree, and awaits that.
pub(super) async fn end(process: &Process) {
    within("the end of a termination", process.terminate())
        .await
        .expect("the tree can be ended");
}

/// Awaits a line of a collected stream, by its place in the stream.
pub(super) async fn line(reader: &OutputReader, index: usize) -> String {
    loop {
        let read = reader.read_from(0);
        let text = String::from_utf8_lossy(&read.bytes);
        if let Some(line) = text
            .split_inclusive('\n')
            .nth(index)
            .filter(|line| line.ends_with('\n'))
        {
            return line.trim_end().to_owned();
        }
        assert!(
            !reader.is_sealed(),
            "the stream ended before its line {index}: {text:?}"
        );
        within("a line of the child", reader.changed(read.next_offset)).await;
    }
}

/// Awaits the first line of the collected standard output: how a call of the probe says that it is ready.
pub(super) async fn ready(process: &Process) -> String {
    line(
        process.collected_stdout().expect("standard output is collected"),
        0,
    )
    .await
}

/// Awaits a line of a raw stream.
pub(super) async fn raw_line(reader: &mut PipeReader) -> String {
    let mut line = Vec::new();
    loop {
        let byte = within("a line of the child", reader.read_u8())
            .await
            .expect("the stream goes on to the line's end");
        if byte == b'\n' {
            return String::from_utf8_lossy(&line).into_owned();
        }
        line.push(byte);
    }
}

/// Reads a raw stream to its end: the proof that nobody holds it any more.
pub(super) async fn raw_rest(reader: &mut PipeReader) -> Vec<u8> {
    let mut rest = Vec::new();
    within("the end of a raw stream", reader.read_to_end(&mut rest))
        .await
        .expect("the stream can be read");
    rest
}

/// Returns the numbered stream that the probe's `flood` and `chunks` write: records of 16 bytes, each the 15 digits of its
/// number and a line end.
pub(super) fn numbered(length: usize) -> Vec<u8> {
    (0..)
        .flat_map(|record: u64| format!("{record:015}\n").into_bytes())
        .take(length)
        .collect()
}
