//! Where spills go may change while a runtime lives: `LocalRuntime::set_spill_parent`.

use std::fs;
use std::num::NonZeroU64;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dsh_subprocess::{
    Collect, Output, Process, SpawnSpec, Spill, SpillLife, SpillState, Stdin, SubprocessRuntime,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use crate::fixture::{Case, Host, Tier, eventually, finished, numbered, on_each_tier, within};
use crate::janitor::await_death;

on_each_tier! {
    each_tree_spills_below_the_parent_it_was_spawned_with,
    an_unusable_parent_costs_only_the_file,
    a_given_environment_says_where_temporary_files_go,
    issue_3_every_directory_of_a_dead_host_is_removed,
}

const TOTAL: usize = 100_000;

fn spilled(mut spec: SpawnSpec) -> SpawnSpec {
    spec.stdout = Output::Collect(Collect {
        max_bytes: 1000,
        head_bytes: 0,
        spill: Some(Spill {
            max_bytes: NonZeroU64::MAX,
            life: SpillLife::Runtime,
        }),
    });
    spec
}

fn flood(case: &Case) -> SpawnSpec {
    spilled(case.probe(["flood", &TOTAL.to_string()]))
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("it is there");
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn spill(process: &Process) -> SpillState {
    process.collected_stdout().expect("it is collected").spill()
}

/// The file of a stream that is complete: the whole stream, in a private directory below the parent.
#[track_caller]
fn assert_spilled_below(process: &Process, parent: &Path) {
    assert!(finished(process).success());
    let SpillState::Available(stream) = spill(process) else {
        panic!("no spill: {:?}", spill(process));
    };
    let path = stream.location.as_local_path();
    let private = path.parent().expect("it is in a directory");
    assert_eq!(private.parent(), Some(parent), "{}", path.display());
    let mode = fs::metadata(private).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(fs::read(path).expect("it is there"), numbered(TOTAL));
}

/// Those that spill already, and those that have not come to it; the builder's parent is back after `None`.
fn each_tree_spills_below_the_parent_it_was_spawned_with(tier: Tier) {
    let (built, other, third) = (directory(), directory(), directory());
    let case = Case::with(tier, |builder| builder.spill_parent(built.path()));
    let mut late = spilled(case.bash("read -r line; exec \"$PROBE\" flood $line"));
    late.stdin = Stdin::Pipe;
    let mut late = case.spawn(late);
    let first = case.spawn(flood(&case));
    assert_spilled_below(&first, built.path());
    case.runtime.set_spill_parent(Some(other.path().to_owned()));
    let second = case.spawn(flood(&case));
    case.runtime
        .with_ambient(Vec::new())
        .set_spill_parent(Some(third.path().to_owned()));
    let third_tree = case.spawn(flood(&case));
    case.runtime.set_spill_parent(None);
    let fourth = case.spawn(flood(&case));
    assert_spilled_below(&second, other.path());
    assert_spilled_below(&third_tree, third.path());
    assert_spilled_below(&fourth, built.path());
    let mut stdin = late.stdin().expect("piped");
    within(stdin.write_all(format!("{TOTAL}\n").as_bytes())).expect("it reads");
    assert_spilled_below(&late, built.path());
    for parent in [&built, &other, &third] {
        assert_eq!(entries(parent.path()).len(), 1, "one directory for each parent");
    }
    within(case.runtime.dispose()).expect("everything ends");
    for parent in [&built, &other, &third] {
        assert_eq!(entries(parent.path()), Vec::<PathBuf>::new());
    }
}

/// It is told, and the next parent is not affected.
fn an_unusable_parent_costs_only_the_file(tier: Tier) {
    let parent = directory();
    let case = Case::with(tier, |builder| builder.spill_parent(parent.path()));
    let occupied = parent.path().join("file");
    fs::write(&occupied, b"").expect("it is ours");
    for unusable in [
        "/nonexistent/parent",
        occupied.to_str().expect("text"),
        "",
        "a\0b",
    ] {
        case.runtime.set_spill_parent(Some(unusable.into()));
        let process = case.spawn(flood(&case));
        assert!(finished(&process).success());
        let state = spill(&process);
        assert!(
            matches!(&state, SpillState::Withdrawn(why) if !why.is_empty()),
            "{unusable:?}: {state:?}"
        );
        let output = process.collected_stdout().expect("it is collected");
        assert_eq!(output.total(), TOTAL as u64);
    }
    case.runtime.set_spill_parent(None);
    assert_spilled_below(&case.spawn(flood(&case)), parent.path());
}

/// `TMPDIR` of the environment that was given, not of this process.
fn a_given_environment_says_where_temporary_files_go(tier: Tier) {
    let place = directory();
    let case = Case::new(tier);
    let given = vec![("TMPDIR".into(), place.path().as_os_str().to_owned())];
    let world = case.runtime.with_ambient(given);
    let process = world.spawn(flood(&case)).expect("the spec is valid");
    assert_spilled_below(&process, place.path());
    within(case.runtime.dispose()).expect("everything ends");
    assert!(entries(place.path()).is_empty());
}

/// By its warden, or by the next start where there is none.
fn issue_3_every_directory_of_a_dead_host_is_removed(tier: Tier) {
    let (records, one, other) = (directory(), directory(), directory());
    fs::set_permissions(records.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
    let text = |place: &TempDir| {
        place
            .path()
            .to_str()
            .expect("temporary directories are text")
            .to_owned()
    };
    let host = || {
        Host::new(tier)
            .variable("XDG_RUNTIME_DIR", &text(&records))
            .peculiar(format!("--spill-parent={}", text(&one)))
    };
    let mut dead = host().start([
        "spilled-below",
        &text(&other),
        "/bin/sh",
        "-c",
        "yes | head -c 50000; echo ready; exec sleep 300",
    ]);
    dead.wait_for("ready");
    // They are made by the host's own thread, in its own time.
    eventually("both streams are spilled", || {
        [&one, &other].iter().all(|parent| {
            let directories = entries(parent.path());
            directories.len() == 1 && directories.iter().all(|private| entries(private).len() == 1)
        })
    });
    let pid = Pid::from_raw(dead.pid().cast_signed());
    kill(pid, Signal::SIGKILL).expect("it is a child of this test");
    await_death(&dead);
    let _next = (tier == Tier::ProcessGroup).then(|| {
        let mut next = host().start(["watch", env!("CARGO_BIN_EXE_probe"), "sleep"]);
        next.wait_for("ready");
        next
    });
    eventually("both directories are gone", || {
        [&one, &other]
            .iter()
            .all(|parent| entries(parent.path()).is_empty())
    });
}
