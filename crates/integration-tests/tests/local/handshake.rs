//! Spawns that wait for nothing: `LocalRuntimeBuilder::handshake`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dsh_subprocess::{
    ErrorKind, ErrorOutput, Outcome, Output, Process, SignalName, Stdin, SubprocessRuntime,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Case, Tier, finished, on_each_tier, text, within};
use crate::hanging::Gate;

on_each_tier! {
    the_streams_are_there_before_the_target,
    many_spawns_at_once_all_come_to_their_end,
    item_176_a_tree_that_is_ended_at_once_runs_on_in_no_case,
    item_24_a_failure_is_told_by_the_handle,
    item_79_a_disposal_ends_what_was_just_spawned,
    a_dropped_runtime_ends_what_was_just_spawned,
    a_shorter_handshake_is_waited_for,
    no_launcher_is_left_with_a_runtime,
}

on_each_tier! {
    as root:
    a_hanging_exec_holds_up_neither_the_caller_nor_others,
    a_hanging_exec_can_be_ended_at_once,
}

/// A case whose spawns wait for nothing.
pub(crate) fn case(tier: Tier) -> Case {
    let case = Case::with(tier, |builder| builder.handshake(Duration::ZERO));
    assert!(!case.runtime.capabilities().immediate_pid);
    case
}

fn terminated() -> Outcome {
    Outcome::Signaled {
        signal: "SIGTERM".into(),
        core_dumped: false,
    }
}

/// Every stream of the handle can be used as soon as the call has returned, and the pid comes with the start.
fn the_streams_are_there_before_the_target(tier: Tier) {
    let case = case(tier);
    let mut spec = case.bash(
        "read -r line; echo \"$line\"; echo problem >&2; read -r -u $DSH_SUBPROCESS_CONTROL word; exit $word",
    );
    spec.stdin = Stdin::Pipe;
    spec.stdout = Output::Pipe;
    spec.control = true;
    let mut process = case.runtime.spawn(spec).expect("the spec is valid");
    let mut stdin = process.stdin().expect("piped");
    let mut stdout = process.stdout().expect("piped");
    let mut control = process.control().expect("asked for");
    within(stdin.write_all(b"a line\n")).expect("there is a reader, or will be");
    within(control.writer.write_all(b"9\n")).expect("there is a reader, or will be");
    let mut said = String::new();
    within(stdout.read_to_string(&mut said)).expect("it can be read");
    assert_eq!(said, "a line\n");
    assert_eq!(finished(&process).code(), Some(9));
    let errors = process.collected_stderr().expect("collected");
    assert_eq!(errors.text(), "problem\n");
    let started = within(process.started()).expect("it has run");
    assert!(started.pid.is_some() && started.pid == process.pid());
    assert_eq!(within(process.exited()).expect("it has run").code(), Some(9));
}

/// More than there are launchers, by a single thread: all of them run, with what each was given.
fn many_spawns_at_once_all_come_to_their_end(tier: Tier) {
    let case = case(tier);
    let processes: Vec<Process> = (0..64)
        .map(|number: u32| {
            let mut spec = case.spec(["/bin/cat"]);
            spec.stdin = Stdin::Data(Bytes::from(number.to_string()));
            case.runtime.spawn(spec).expect("the spec is valid")
        })
        .collect();
    for (number, process) in processes.iter().enumerate() {
        assert!(finished(process).success());
        assert_eq!(text(process), number.to_string());
    }
    case.assert_gone();
}

/// Ended right after the call, in each way there is: before the clone, on the way to the program, or just after it. Where the
/// handle says that it never ran, it never has.
fn item_176_a_tree_that_is_ended_at_once_runs_on_in_no_case(tier: Tier) {
    let case = case(tier);
    let place = tempfile::tempdir().expect("a temporary directory");
    for round in 0..40 {
        let trace = place.path().join(round.to_string());
        let mut spec = case.bash(": > \"$TRACE\"; exec sleep 300");
        let shown = trace.to_str().expect("temporary directories are text");
        spec.env.insert("TRACE".into(), Some(shown.into()));
        let cancel = spec.cancel.clone();
        let process = case.runtime.spawn(spec).expect("the spec is valid");
        let killed = match round % 4 {
            0 => {
                drop(process.terminate());
                false
            }
            1 => {
                cancel.cancel();
                false
            }
            2 => {
                case.runtime.kill(&process);
                true
            }
            _ => {
                case.runtime.kill_all();
                true
            }
        };
        let outcome = finished(&process);
        assert_eq!(within(process.exited()).expect("it is known"), outcome);
        match within(process.started()) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
                assert_eq!(outcome, terminated());
                assert_eq!(process.pid(), None);
                assert!(!trace.exists(), "it has run");
            }
            Ok(_) if killed => assert_eq!(outcome.signal().map(SignalName::as_str), Some("SIGKILL")),
            Ok(_) => assert_eq!(outcome, terminated(), "round {round}"),
        }
        assert!(within(process.wait_for_exit(&CancellationToken::new())).expect("it is gone"));
        assert!(process.collected_stdout().expect("collected").is_sealed());
    }
    case.assert_gone();
}

/// The words are the same as of a spawn that waits.
fn item_24_a_failure_is_told_by_the_handle(tier: Tier) {
    let case = case(tier);
    let error = case.failure(case.spec(["/nonexistent/program"]));
    assert_eq!(error.kind(), ErrorKind::ProgramNotFound, "{error}");
    let mut spec = case.probe(["exit", "0"]);
    spec.cwd = "/nonexistent/directory".into();
    let mut patient = case.probe(["exit", "0"]);
    patient.cwd = "/nonexistent/directory".into();
    let told = case.failure(spec);
    assert_eq!(told.kind(), ErrorKind::CwdNotFound, "{told}");
    assert_eq!(told.to_string(), Case::new(tier).failure(patient).to_string());
    let mut merged = case.spec(["/nonexistent/program"]);
    merged.stderr = ErrorOutput::Merge;
    merged.stdout = Output::Pipe;
    let mut process = case.runtime.spawn(merged).expect("the world is at fault");
    let mut stdout = process.stdout().expect("piped");
    let mut nothing = Vec::new();
    within(stdout.read_to_end(&mut nothing)).expect("it can be read");
    assert!(nothing.is_empty());
}

/// Those that no launcher has come to, and those that are on their way: nothing is left, and each is told.
fn item_79_a_disposal_ends_what_was_just_spawned(tier: Tier) {
    let case = case(tier);
    let processes: Vec<Process> = (0..16)
        .map(|_| {
            case.runtime
                .spawn(case.spec(["/bin/sleep", "300"]))
                .expect("the spec is valid")
        })
        .collect();
    within(case.runtime.dispose()).expect("they end");
    for process in &processes {
        assert_eq!(finished(process), terminated());
        assert!(within(process.wait_for_exit(&CancellationToken::new())).expect("it is gone"));
    }
    case.assert_gone();
    let refused = case
        .runtime
        .spawn(case.probe(["exit", "0"]))
        .expect_err("it is disposed of");
    assert_eq!(refused.kind(), ErrorKind::Disposed);
}

fn a_dropped_runtime_ends_what_was_just_spawned(tier: Tier) {
    let case = case(tier);
    let runtime = tier
        .builder()
        .handshake(Duration::ZERO)
        .build()
        .expect("the tier works here");
    let processes: Vec<Process> = (0..16)
        .map(|_| {
            runtime
                .spawn(case.spec(["/bin/sleep", "300"]))
                .expect("the spec is valid")
        })
        .collect();
    drop(runtime);
    for process in &processes {
        assert!(finished(process).signal().is_some());
        assert!(within(process.wait_for_exit(&CancellationToken::new())).expect("it is gone"));
    }
    case.assert_gone();
}

/// A launcher does the start, and the caller waits for it.
fn a_shorter_handshake_is_waited_for(tier: Tier) {
    let bound = Duration::from_millis(900);
    let case = Case::with(tier, |builder| builder.handshake(bound));
    assert!(case.runtime.capabilities().immediate_pid);
    let begun = Instant::now();
    let process = case
        .runtime
        .spawn(case.probe(["sleep"]))
        .expect("the spec is valid");
    // A machine that is too busy for that has used the handshake up.
    assert!(process.pid().is_some() || begun.elapsed() >= bound);
    within(process.terminate()).expect("the tree ends");
    assert_eq!(
        case.failure(case.spec(["/nonexistent"])).kind(),
        ErrorKind::ProgramNotFound
    );
}

/// The threads of this process that start targets.
fn launchers() -> usize {
    let threads = fs::read_dir("/proc/self/task").expect("/proc is there");
    let names = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == "dsh-launch").count()
}

/// Neither of one that was disposed of nor of one that was dropped; other tests' runtimes are in other processes.
fn no_launcher_is_left_with_a_runtime(tier: Tier) {
    let here = launchers();
    let case = case(tier);
    case.run(case.probe(["exit", "0"]));
    assert!(launchers() > here);
    within(case.runtime.dispose()).expect("nothing is left");
    crate::fixture::eventually("the launchers of a disposed runtime have ended", || {
        launchers() <= here
    });
    let runtime = tier
        .builder()
        .handshake(Duration::ZERO)
        .build()
        .expect("the tier works here");
    let process = runtime
        .spawn(case.probe(["exit", "0"]))
        .expect("the spec is valid");
    assert!(finished(&process).success());
    drop((runtime, process));
    crate::fixture::eventually("the launchers of a dropped runtime have ended", || {
        launchers() <= here
    });
}

/// A program that nobody can execute until the gate is opened. It says `through`.
fn hanging() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("hanging");
    fs::copy("/bin/echo", &program).expect("the directory is ours");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
    (directory, program)
}

fn shown(program: &Path) -> &str {
    program.to_str().expect("temporary directories are text")
}

/// More execs hang than there are launchers, and the call returns all the same; others go on, terminals too.
fn a_hanging_exec_holds_up_neither_the_caller_nor_others(tier: Tier) {
    let case = case(tier);
    let (_directory, program) = hanging();
    let mut gate = Gate::close(&program);
    let count = thread::available_parallelism().map_or(1, usize::from) + 2;
    let hung: Vec<Process> = (0..count)
        .map(|_| {
            let process = case
                .runtime
                .spawn(case.spec([shown(&program), "through"]))
                .expect("the spec is valid");
            // The gate is closed, so a call that waited for the exec would have been left after 1 s at the earliest.
            assert_eq!(process.pid(), None);
            process
        })
        .collect();
    gate.wait_for("held");
    // They were submitted later, so all launchers there were are stuck by the time that one comes to them.
    for code in 0..5_u32 {
        let (outcome, _) = case.run(case.probe(["exit", &code.to_string()]));
        assert_eq!(outcome.code(), Some(code));
    }
    gate.open();
    for process in &hung {
        let started = within(process.started()).expect("it starts when the file system is back");
        assert_eq!(started.pid, process.pid());
        assert!(finished(process).success());
        assert_eq!(text(process), "through\n");
    }
    case.assert_gone();
}

/// By a kill and by a termination, while the exec hangs: the tree is gone although the gate stays closed.
fn a_hanging_exec_can_be_ended_at_once(tier: Tier) {
    let case = case(tier);
    let (_directory, program) = hanging();
    for by_kill in [true, false] {
        let mut gate = Gate::close(&program);
        let mut spec = case.spec([shown(&program), "never"]);
        // Signals wait until an exec is over, but for `SIGKILL`.
        spec.grace = Duration::from_millis(100);
        let process = case.runtime.spawn(spec).expect("the spec is valid");
        gate.wait_for("held");
        if by_kill {
            case.runtime.kill(&process);
        } else {
            drop(process.terminate());
        }
        assert!(within(process.wait_for_exit(&CancellationToken::new())).expect("it is gone"));
        match within(process.done()) {
            Ok(outcome) => assert!(outcome.signal().is_some(), "{outcome}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
        }
        assert!(text(&process).is_empty());
        gate.open();
    }
    case.assert_gone();
}
