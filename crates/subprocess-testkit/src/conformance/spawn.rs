//! Contract C: what is refused at once, what fails later, and what a started child is given.

use std::time::Duration;

use dsh_subprocess::{Error, ErrorKind, MAX_GRACE, MayHaveStarted, Outcome, Process, SpawnSpec};

use super::World;
use super::child::{done_error, end, finish, gone, ready, start};
use super::watchdog::within;

fn refusal(world: &World, change: impl FnOnce(&mut SpawnSpec)) -> Error {
    let mut spec = world.spec(&["exit", "0"]);
    change(&mut spec);
    let error = match world.runtime().spawn(spec) {
        Ok(process) => panic!("a spec that is wrong was accepted: {process:?}"),
        Err(error) => error,
    };
    assert_eq!(error.started(), MayHaveStarted::No);
    error
}

/// A grace must be more than zero and at most the largest timer; a drain may be zero.
pub async fn item_18_a_grace_out_of_range_is_refused(world: &World) {
    for grace in [Duration::ZERO, MAX_GRACE + Duration::from_millis(1)] {
        let error = refusal(world, |spec| spec.grace = grace);
        assert_eq!(error.kind(), ErrorKind::InvalidSpec);
        assert!(error.to_string().contains("2147483647"), "{error}");
    }
    let mut spec = world.spec(&["exit", "0"]);
    spec.drain = Duration::ZERO;
    finish(&start(world, spec)).await;
}

/// A token that is cancelled already starts nothing, and is looked at after the grace and before argv.
pub async fn item_19_a_cancelled_token_starts_nothing(world: &World) {
    let error = refusal(world, |spec| {
        spec.cancel.cancel();
        spec.argv.clear();
    });
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let error = refusal(world, |spec| {
        spec.cancel.cancel();
        spec.grace = Duration::ZERO;
    });
    assert_eq!(error.kind(), ErrorKind::InvalidSpec);
}

/// A program must be named.
pub async fn item_20_a_program_must_be_named(world: &World) {
    assert_eq!(
        refusal(world, |spec| spec.argv.clear()).kind(),
        ErrorKind::InvalidSpec
    );
    assert_eq!(
        refusal(world, |spec| spec.argv[0] = "".into()).kind(),
        ErrorKind::InvalidSpec
    );
}

/// Arguments arrive as they are: no shell looks at them.
pub async fn item_21_arguments_arrive_verbatim(world: &World) {
    let arguments = ["", " ", "$HOME", "*", "a b;exit 9", "'\"`\\", "é\n", "--"];
    let spec = world.spec(&[&["argv"][..], &arguments[..]].concat());
    let finished = finish(&start(world, spec)).await;
    let seen: Vec<&[u8]> = finished.stdout.split(|&byte| byte == 0).collect();
    let expected: Vec<&[u8]> = std::iter::once("argv")
        .chain(arguments)
        .map(str::as_bytes)
        .chain([&[][..]])
        .collect();
    // The first is the program's own name; after the last NUL there is nothing.
    assert_eq!(seen[1..], expected[1..], "{:?}", finished.stdout);
}

/// The handle of a failed spawn is inert: no id, all futures tell the same, the tree is gone, a termination does nothing.
pub async fn item_22_the_handle_of_a_failed_spawn_is_inert(world: &World) {
    let mut spec = world.spec(&[]);
    spec.argv[0] = world.missing.as_world_string().clone();
    let process = start(world, spec);
    let started = within("started", process.started())
        .await
        .expect_err("the program is missing");
    let exited = within("exited", process.exited())
        .await
        .expect_err("there was no target to exit");
    for error in [started, exited, done_error(&process).await] {
        assert_eq!(error.kind(), ErrorKind::ProgramNotFound);
        assert_eq!(error.started(), MayHaveStarted::No);
    }
    assert_eq!(process.pid(), None);
    gone(&process).await;
    process.cut_drain();
    end(&process).await;
    assert!(process.collected_stdout().expect("collected").is_sealed());
    assert_eq!(done_error(&process).await.kind(), ErrorKind::ProgramNotFound);
}

/// A bad working directory is told apart from a bad program, and from other bad directories; the error names it.
pub async fn item_23_a_bad_directory_is_told_apart_from_a_bad_program(world: &World) {
    let runtime = world.runtime();
    let mut cases = vec![
        (&world.missing, ErrorKind::CwdNotFound),
        (&world.file, ErrorKind::CwdNotDirectory),
    ];
    cases.extend(
        world
            .locked_directory
            .as_ref()
            .map(|locked| (locked, ErrorKind::CwdNotSearchable)),
    );
    for (directory, kind) in cases {
        let mut spec = world.spec(&["exit", "0"]);
        spec.cwd = directory.clone();
        let error = done_error(&runtime.spawn(spec).expect("only the world knows the directory")).await;
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(error.started(), MayHaveStarted::No);
        assert!(
            error.to_string().contains(&*directory.to_string_lossy()),
            "{error}"
        );
    }
    let mut spec = world.spec(&[]);
    spec.argv[0] = world.file.as_world_string().clone();
    let error = done_error(&runtime.spawn(spec).expect("only the world knows the program")).await;
    assert_eq!(error.kind(), ErrorKind::ProgramNotExecutable, "{error}");
}

/// An argument too long for the world fails the spawn with a kind of its own that says which and how long; where there is
/// no limit, it arrives.
pub async fn item_24_an_argument_too_long_is_an_error_of_its_own(world: &World) {
    let length = world.guarantees.argument_limit.unwrap_or(4 << 20);
    let mut spec = world.spec(&["argv"]);
    spec.argv.push("x".repeat(length).into());
    spec.stdout = dsh_subprocess::Output::Collect(dsh_subprocess::Collect {
        max_bytes: length + 4096,
        head_bytes: 0,
        spill: None,
    });
    let process = start(world, spec);
    if world.guarantees.argument_limit.is_some() {
        let error = done_error(&process).await;
        assert_eq!(error.kind(), ErrorKind::ArgumentTooLong, "{error}");
        assert_eq!(error.started(), MayHaveStarted::No);
        let text = error.to_string();
        assert!(
            text.contains("argv[2]") && text.contains(&length.to_string()),
            "{text}"
        );
    } else {
        assert!(finish(&process).await.stdout.len() > length);
    }
}

/// A NUL byte in argv, the directory or the environment is refused at once, and its place is named.
pub async fn item_178_a_nul_byte_is_refused_at_once(world: &World) {
    let cases = [
        (refusal(world, |spec| spec.argv.push("a\0b".into())), "argv[3]"),
        (refusal(world, |spec| spec.cwd = "/a\0b".into()), "cwd"),
        (
            refusal(world, |spec| {
                drop(spec.env.insert("NAME".into(), Some("secret\0".into())));
            }),
            "NAME",
        ),
    ];
    for (error, place) in cases {
        assert_eq!(error.kind(), ErrorKind::InvalidSpec);
        let text = error.to_string();
        assert!(text.contains(place) && !text.contains("secret"), "{text}");
    }
}

/// The target's id is known exactly when the world promises it, and stays the same.
pub async fn item_171_the_id_is_known_when_promised(world: &World) {
    let process = start(world, world.spec(&["sleep"]));
    let at_once = process.pid();
    assert_eq!(at_once.is_some(), world.guarantees.immediate_pid, "{at_once:?}");
    let started = within("started", process.started())
        .await
        .expect("the probe starts");
    assert_eq!(started.pid.is_some(), world.guarantees.process_ids, "{started:?}");
    assert_eq!(process.pid(), started.pid);
    assert!(at_once.is_none() || at_once == started.pid);
    if let Some(pid) = started.pid {
        assert_eq!(ready(&process).await, format!("ready {pid}"));
    }
    end(&process).await;
}

/// A token cancelled right after the spawn ends the tree, with the outcome of that signal, whether or not the target had
/// started.
pub async fn item_176_a_cancellation_around_the_start_gives_the_signals_outcome(world: &World) {
    let spec = world.spec(&["sleep"]);
    let cancel = spec.cancel.clone();
    let process = start(world, spec);
    cancel.cancel();
    let finished = finish(&process).await;
    assert_eq!(
        finished.outcome,
        Outcome::Signaled {
            signal: "SIGTERM".into(),
            core_dumped: false
        }
    );
}

/// An error of the spawn wins over a cancellation.
pub async fn item_176_an_error_before_exec_wins_over_a_cancellation(world: &World) {
    let mut spec = world.spec(&[]);
    spec.argv[0] = world.missing.as_world_string().clone();
    let cancel = spec.cancel.clone();
    let process = start(world, spec);
    // Awaited first: in a world that answers late, a cancellation that overtakes the error is an abort before the start.
    let error = within("started", process.started())
        .await
        .expect_err("the program is missing");
    cancel.cancel();
    assert_eq!(error.kind(), ErrorKind::ProgramNotFound);
    assert_eq!(done_error(&process).await.kind(), ErrorKind::ProgramNotFound);
}

/// Spawning needs no executor and no particular thread.
pub async fn issue_2_spawn_works_from_any_thread(world: &World) {
    let runtime = world.runtime();
    let handles: Vec<Process> = std::thread::scope(|scope| {
        let spawning: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| runtime.spawn(world.spec(&["exit", "7"])).expect("a valid spec")))
            .collect();
        spawning
            .into_iter()
            .map(|thread| thread.join().expect("the thread spawned"))
            .collect()
    });
    for process in handles {
        assert_eq!(finish(&process).await.outcome.code(), Some(7));
    }
}
