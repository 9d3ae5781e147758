//! Contract E: collected output, through a real child.

use dsh_subprocess::{Collect, Output, Stdin, TextCursor};
use tokio::io::AsyncWriteExt;

use super::World;
use super::child::{Child, end, finish, gone, line, numbered, start};
use super::watchdog::within;

/// Starts a call whose standard output is kept in a window of this size.
fn collecting(world: &World, call: &[&str], max_bytes: usize, head_bytes: usize) -> Child {
    let mut spec = world.spec(call);
    spec.stdout = Output::Collect(Collect {
        max_bytes,
        head_bytes,
        spill: None,
    });
    spec.stdin = Stdin::Pipe;
    start(world, spec)
}

/// Starts a call that writes a piece for each byte it reads, and lets it write them all: each is read before the next is
/// asked for.
async fn pieces(world: &World, pieces: &[&[u8]], mut each: impl FnMut(&dsh_subprocess::OutputReader)) {
    let hex: Vec<String> = pieces
        .iter()
        .map(|piece| {
            piece
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<Vec<_>>()
                .concat()
        })
        .collect();
    let call: Vec<&str> = std::iter::once("pieces")
        .chain(hex.iter().map(String::as_str))
        .collect();
    let mut process = collecting(world, &call, 4096, 0);
    let mut stdin = process.stdin().expect("piped");
    let reader = process.collected_stdout().expect("collected").clone();
    let mut total = 0;
    for piece in pieces {
        within("room for one byte", stdin.write_all(b"."))
            .await
            .expect("the child reads");
        total += piece.len() as u64;
        while reader.total() < total {
            within("the next piece", reader.changed(reader.total())).await;
        }
        each(&reader);
    }
    drop(stdin);
    assert!(finish(&process).await.outcome.success());
    each(&reader);
}

/// Offsets count the whole stream, reading consumes nothing, and readers are independent, before and after settlement.
pub async fn item_38_reads_consume_nothing(world: &World) {
    let process = start(world, world.spec(&["sleep"]));
    let reader = process.collected_stdout().expect("collected");
    let first = line(reader, 0).await;
    let other = reader.clone();
    assert_eq!(reader.read_from(0), reader.read_from(0));
    assert_eq!(reader.read_from(3).bytes, other.read_from(0).bytes.slice(3..));
    assert!(!reader.is_sealed());
    end(&process).await;
    within("done", process.done()).await.expect("an outcome");
    assert_eq!(other.text(), format!("{first}\n"));
    assert!(reader.is_sealed() && other.is_sealed());
    drop(process);
    assert_eq!(
        other.read_from(0).bytes,
        format!("{first}\n"),
        "a reader does not outlive its handle"
    );
}

/// The window is exactly the last bytes of the stream, and exactly the first where asked, whatever the chunks.
pub async fn item_39_the_window_is_exact(world: &World) {
    let stream = numbered(5000);
    for call in ["flood", "chunks"] {
        let process = collecting(world, &[call, "5000"], 100, 33);
        within("done", process.done()).await.expect("an outcome");
        let kept = process.collected_stdout().expect("collected").snapshot();
        assert_eq!((kept.total, kept.sealed), (5000, true), "{call}");
        assert_eq!(kept.tail, stream[4900..], "{call}");
        assert_eq!(kept.head, stream[..33], "{call}");
        gone(&process).await;
    }
    // Output exactly at the cap is complete.
    let process = collecting(world, &["flood", "5000"], 5000, 0);
    within("done", process.done()).await.expect("an outcome");
    let read = process.collected_stdout().expect("collected").read_from(0);
    assert_eq!((read.gap, read.next_offset), (0, 5000));
    assert_eq!(read.bytes, stream);
}

/// A read says where to go on, and how many bytes it came too late for.
pub async fn item_40_a_read_tells_its_gap(world: &World) {
    let process = collecting(world, &["flood", "1000"], 100, 0);
    within("done", process.done()).await.expect("an outcome");
    let reader = process.collected_stdout().expect("collected");
    let late = reader.read_from(0);
    assert_eq!(
        (late.gap, late.offset, late.next_offset, late.clamped),
        (900, 900, 1000, false)
    );
    assert_eq!(late.bytes, numbered(1000)[900..]);
    let exact = reader.read_from(900);
    assert_eq!((exact.gap, exact.offset, exact.bytes.len()), (0, 900, 100));
    let end = reader.read_from(1000);
    assert_eq!(
        (end.gap, end.next_offset, end.clamped, end.bytes.len()),
        (0, 1000, false, 0)
    );
}

/// An offset beyond the end is moved back to it, and that is said.
pub async fn item_41_an_offset_beyond_the_end_is_clamped(world: &World) {
    let process = collecting(world, &["flood", "1000"], 4096, 0);
    within("done", process.done()).await.expect("an outcome");
    for offset in [1001, u64::MAX] {
        let read = process.collected_stdout().expect("collected").read_from(offset);
        assert_eq!(
            (read.clamped, read.gap, read.next_offset, read.bytes.len()),
            (true, 0, 1000, 0)
        );
    }
}

/// A character split across writes is whole in the text, and bytes that are no text do not end it.
pub async fn item_42_a_character_split_across_reads_is_whole(world: &World) {
    let mut cursor = TextCursor::new(0);
    let mut texts = Vec::new();
    pieces(world, &[b"a\xe2", b"\x80", b"\x94b", b"\xff\0z"], |reader| {
        texts.push(cursor.read(reader).text);
    })
    .await;
    assert_eq!(texts, ["a", "", "—b", "\u{fffd}\0z", ""]);
}

/// `changed` resolves for bytes beyond the offset, and for the end of the stream.
pub async fn a_change_is_told_to_whoever_awaits_it(world: &World) {
    let mut process = collecting(world, &["pieces", "61"], 4096, 0);
    let reader = process.collected_stdout().expect("collected").clone();
    let first = reader.changed(0);
    let mut stdin = process.stdin().expect("piped");
    within("room for one byte", stdin.write_all(b"."))
        .await
        .expect("the child reads");
    within("the first byte", first).await;
    assert_eq!(reader.read_from(0).bytes, "a");
    within("what is there already", reader.changed(0)).await;
    within("the end of the stream", reader.changed(1)).await;
    assert!(reader.is_sealed());
    gone(&process).await;
}

/// A snapshot holds the retained bytes and the total: enough to go on with offsets elsewhere.
pub async fn item_183_a_snapshot_holds_the_window_and_the_total(world: &World) {
    let process = collecting(world, &["flood", "1000"], 100, 0);
    within("done", process.done()).await.expect("an outcome");
    let snapshot = process.collected_stdout().expect("collected").snapshot();
    assert_eq!(
        (snapshot.total, snapshot.sealed, snapshot.head.len()),
        (1000, true, 0)
    );
    assert_eq!(snapshot.tail, numbered(1000)[900..]);
}
