//! A spill that is elsewhere, and bytes that a remote world never sends.

use std::num::NonZeroU64;
use std::time::Duration;

use dsh_subprocess::{
    Collect, ErrorKind, Output, OutputReader, Process, SpawnSpec, Spill, SpillLife, SpillState,
    SubprocessRuntime,
};
use dsh_subprocess_testkit::scripted::{Script, ScriptedWorld};

use crate::setup::{ms, now, spec};

fn spilling(life: SpillLife) -> SpawnSpec {
    let mut spec = spec("app");
    let limits = Spill {
        max_bytes: NonZeroU64::new(1000).expect("not zero"),
        life,
    };
    spec.stdout = Output::Collect(Collect {
        max_bytes: 4,
        head_bytes: 2,
        spill: Some(limits),
    });
    spec
}

fn run(world: &ScriptedWorld, script: Script, life: SpillLife) -> (Process, OutputReader) {
    world.program("app", script);
    let process = world.spawn(spilling(life)).expect("a valid spec");
    world.run();
    let reader = process.collected_stdout().expect("collected").clone();
    (process, reader)
}

#[test]
fn a_spill_is_read_by_asking_its_world() {
    let world = ScriptedWorld::stepped();
    let (_process, reader) = run(
        &world,
        Script::new().stdout("0123").stdout("456789").exits(0),
        SpillLife::Handle,
    );
    let SpillState::Available(stream) = reader.spill() else {
        panic!("{:?}", reader.spill())
    };
    assert_eq!(
        (stream.length, stream.location.to_string()),
        (10, format!("world://spills/{}", stream.id))
    );
    let mut read = reader.read_spilled(3, 4);
    assert!(
        now(&mut read).is_none(),
        "the bytes were here before they could have come"
    );
    world.advance(ms(1));
    assert_eq!(now(read).expect("an answer").expect("the spill is there"), "3456");
}

#[test]
fn bytes_that_were_never_sent_are_counted_and_are_in_the_spill() {
    let world = ScriptedWorld::stepped();
    let script = Script::new()
        .stdout("ab")
        .stdout_unsent(vec![b'.'; 500])
        .stdout("wxyz")
        .exits(0);
    let (_process, reader) = run(&world, script, SpillLife::Handle);
    assert_eq!(reader.total(), 506);
    let read = reader.read_from(0);
    assert_eq!(
        (read.next_offset, &reader.snapshot().tail[..]),
        (506, &b"wxyz"[..])
    );
    assert_eq!(&reader.snapshot().head[..], b"ab");
    let whole = reader.read_spilled(0, 1000);
    world.advance(ms(1));
    let whole = now(whole).expect("an answer").expect("the spill is there");
    assert_eq!(
        (whole.len(), &whole[..3], &whole[501..]),
        (506, &b"ab."[..], &b".wxyz"[..])
    );
}

#[test]
fn a_spill_lives_as_long_as_its_last_reader() {
    let world = ScriptedWorld::stepped();
    let (process, reader) = run(
        &world,
        Script::new().stdout("0123456789").exits(0),
        SpillLife::Handle,
    );
    drop(process);
    assert_eq!(world.spilled_streams(), 1);
    drop(reader);
    assert_eq!(world.spilled_streams(), 0);
}

#[test]
fn a_spill_lives_as_long_as_its_runtime_or_is_kept() {
    for (life, left) in [(SpillLife::Runtime, 0), (SpillLife::Keep, 1)] {
        let world = ScriptedWorld::stepped();
        let (process, reader) = run(&world, Script::new().stdout("0123456789").exits(0), life);
        drop(process);
        assert_eq!(world.spilled_streams(), 1);
        let disposal = world.dispose();
        world.advance(Duration::ZERO);
        now(disposal).expect("disposed").expect("nothing is left to end");
        assert_eq!(world.spilled_streams(), left, "{life:?}");
        let read = reader.read_spilled(0, 3);
        world.advance(ms(1));
        match now(read).expect("an answer") {
            Ok(bytes) => assert_eq!((left, &bytes[..]), (1, &b"012"[..])),
            Err(error) => assert_eq!((left, error.kind()), (0, ErrorKind::SpillUnavailable)),
        }
    }
}

#[test]
fn a_spill_above_its_limit_is_withdrawn() {
    let world = ScriptedWorld::stepped();
    let (_process, reader) = run(
        &world,
        Script::new().stdout(vec![b'x'; 1001]).exits(0),
        SpillLife::Keep,
    );
    assert!(
        matches!(reader.spill(), SpillState::Withdrawn(_)),
        "{:?}",
        reader.spill()
    );
    assert_eq!(world.spilled_streams(), 0);
}
