//! Contract E and Q: spilled streams, read through the handle wherever they are.

use std::num::NonZeroU64;

use bytes::Bytes;
use dsh_subprocess::{Collect, ErrorKind, Output, OutputReader, Spill, SpillLife, SpillState};

use super::World;
use super::child::{Child, gone, numbered, start};
use super::watchdog::within;

/// Runs a flood of this many bytes to its end, spilled beyond 100 bytes up to 10,000.
async fn flooded(world: &World, length: usize, life: SpillLife) -> (Child, OutputReader) {
    let mut spec = world.spec(&["flood", &length.to_string()]);
    let limits = Spill {
        max_bytes: NonZeroU64::new(10_000).expect("not zero"),
        life,
    };
    spec.stdout = Output::Collect(Collect {
        max_bytes: 100,
        head_bytes: 0,
        spill: Some(limits),
    });
    let process = start(world, spec);
    within("done", process.done()).await.expect("an outcome");
    gone(&process).await;
    let reader = process.collected_stdout().expect("collected").clone();
    (process, reader)
}

async fn spilled(reader: &OutputReader, offset: u64, length: usize) -> Bytes {
    within("spilled bytes", reader.read_spilled(offset, length))
        .await
        .expect("the spill can be read")
}

async fn no_spill(reader: &OutputReader) {
    let read = within("the refusal of a read", reader.read_spilled(0, 10)).await;
    assert_eq!(
        read.expect_err("there is no spill").kind(),
        ErrorKind::SpillUnavailable
    );
}

/// A spill is made only when the stream exceeds the window, and then holds it from its beginning.
pub async fn item_44_a_spill_is_the_whole_stream(world: &World) {
    let (_process, reader) = flooded(world, 5000, SpillLife::Handle).await;
    if !world.guarantees.spill {
        assert_eq!(reader.spill(), SpillState::None);
        return no_spill(&reader).await;
    }
    let SpillState::Available(stream) = reader.spill() else {
        panic!("no spill: {:?}", reader.spill())
    };
    assert_eq!(stream.length, 5000);
    assert!(!stream.location.as_bytes().is_empty());
    assert_eq!(spilled(&reader, 0, 9999).await, numbered(5000));
    assert_eq!(spilled(&reader, 4000, 50).await, numbered(5000)[4000..4050]);
    assert_eq!(spilled(&reader, 5000, 50).await, Bytes::new());
}

/// Output exactly at the window's size makes no spill.
pub async fn item_39_output_at_the_cap_makes_no_spill(world: &World) {
    let (_process, reader) = flooded(world, 100, SpillLife::Handle).await;
    assert_eq!(reader.spill(), SpillState::None);
    no_spill(&reader).await;
}

/// A stream above the spill's limit has no file at all, for good; the tail stays.
pub async fn item_46_a_spill_above_its_limit_is_withdrawn(world: &World) {
    let (_process, reader) = flooded(world, 10_001, SpillLife::Handle).await;
    assert_eq!(
        matches!(reader.spill(), SpillState::Withdrawn(_)),
        world.guarantees.spill,
        "{:?}",
        reader.spill()
    );
    no_spill(&reader).await;
    assert_eq!(reader.read_from(0).bytes, numbered(10_001)[9901..]);
}

/// A stream exactly at the spill's limit is complete.
pub async fn item_46_a_spill_at_its_limit_is_complete(world: &World) {
    let (_process, reader) = flooded(world, 10_000, SpillLife::Handle).await;
    if world.guarantees.spill {
        assert_eq!(spilled(&reader, 0, 20_000).await, numbered(10_000));
    } else {
        no_spill(&reader).await;
    }
}

/// Two streams never share an id or a place.
pub async fn two_spills_of_one_runtime_are_told_apart(world: &World) {
    if !world.guarantees.spill {
        return item_44_a_spill_is_the_whole_stream(world).await;
    }
    let runtime = world.runtime();
    let mut found = Vec::new();
    for length in ["2000", "3000"] {
        let mut spec = world.spec(&["flood", length]);
        let limits = Spill {
            max_bytes: NonZeroU64::new(10_000).expect("not zero"),
            life: SpillLife::Runtime,
        };
        spec.stdout = Output::Collect(Collect {
            max_bytes: 100,
            head_bytes: 0,
            spill: Some(limits),
        });
        let process = runtime.spawn(spec).expect("a valid spec");
        within("done", process.done()).await.expect("an outcome");
        let reader = process.collected_stdout().expect("collected").clone();
        let SpillState::Available(stream) = reader.spill() else {
            panic!("no spill: {:?}", reader.spill())
        };
        found.push((stream, reader));
    }
    assert_ne!(found[0].0.id, found[1].0.id);
    assert_ne!(found[0].0.location, found[1].0.location);
    // The handles are gone, and the runtime is not: what lives as long as it can still be read.
    assert_eq!(spilled(&found[0].1, 0, 9999).await, numbered(2000));
    assert_eq!(spilled(&found[1].1, 0, 9999).await, numbered(3000));
    within("disposal", runtime.dispose())
        .await
        .expect("nothing is left to end");
    no_spill(&found[0].1).await;
}
