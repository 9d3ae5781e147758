//! An exec that hangs, as one on a dead network file system does. The stand-in is a file whose execution the kernel
//! asks the probe's `gate` about, which only root may be asked.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use dsh_subprocess::SubprocessRuntime;

use crate::fixture::{BOUND, Case, InlineWait, Tier, finished, text, within};

/// A file that nobody can execute until the gate is opened.
pub(crate) struct Gate {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Gate {
    /// Whoever executes the file waits until the gate is opened.
    pub(crate) fn close(file: &Path) -> Self {
        Self::start(file, &[])
    }

    /// Whoever executes the file waits until the gate is opened, and then fails.
    fn close_for_good(file: &Path) -> Self {
        Self::start(file, &["--deny"])
    }

    fn start(file: &Path, how: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_probe"))
            .arg("gate")
            .arg(file)
            .args(how)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the probe starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut gate = Self { child, lines };
        gate.wait_for("ready");
        gate
    }

    pub(crate) fn wait_for(&mut self, word: &str) {
        self.told(word);
    }

    /// Waits until somebody hangs, and returns who.
    pub(crate) fn held(&mut self) -> u32 {
        self.told("held").parse().expect("a pid")
    }

    /// Waits for a line that begins with this word, and returns its rest.
    fn told(&mut self, word: &str) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the probe writes text");
        let rest = line.strip_prefix(word);
        let rest = rest.unwrap_or_else(|| panic!("{line:?} instead of `{word}`"));
        rest.trim().to_owned()
    }

    pub(crate) fn open(mut self) {
        drop(self.child.stdin.take());
        assert!(
            self.child
                .wait()
                .expect("it is a child of this process")
                .success()
        );
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn a_hanging_exec_holds_up_nobody_else(tier: Tier) {
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("hanging");
    std::fs::copy("/bin/echo", &program).expect("the directory is ours");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let program = program.to_str().expect("text");
    let mut gate = Gate::close(Path::new(program));

    let begun = Instant::now();
    let hanging = case
        .runtime
        .spawn(case.spec([program, "through"]))
        .expect("the spec is valid");
    // 1 s is promised; what is beyond it is this machine's load.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    gate.wait_for("held");
    // The gate is still closed, so the handshake was left, not won: nobody knows yet how it ends.
    assert!(is_pending(&mut hanging.started()) && is_pending(&mut hanging.done()));
    // The clone goes on, and so do all others.
    for _ in 0..3 {
        let (outcome, _) = case.run(case.probe(["exit", "0"]));
        assert!(outcome.success());
    }
    let late = case
        .runtime
        .spawn(case.spec([program, "too"]))
        .expect("the spec is valid");
    gate.open();
    for (process, word) in [(&hanging, "through\n"), (&late, "too\n")] {
        let started = within(process.started()).expect("it starts when the file system is back");
        assert_eq!(started.pid, process.pid());
        assert!(finished(process).success());
        assert_eq!(text(process), word);
    }
}

#[test]
fn as_root_on_cgroup_a_hanging_exec_holds_up_nobody_else() {
    a_hanging_exec_holds_up_nobody_else(Tier::Cgroup);
}

#[test]
fn as_root_on_reaper_a_hanging_exec_holds_up_nobody_else() {
    a_hanging_exec_holds_up_nobody_else(Tier::Reaper);
}

#[test]
fn as_root_on_process_group_a_hanging_exec_holds_up_nobody_else() {
    a_hanging_exec_holds_up_nobody_else(Tier::ProcessGroup);
}

fn is_pending<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send>>) -> bool {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_pending()
}

/// A spawn that fails late seals its streams, and that may wake somebody who uses the handle.
fn a_waker_that_uses_its_handle_at_a_failed_spawn_comes_back(tier: Tier) {
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("hanging");
    std::fs::copy("/bin/echo", &program).expect("the directory is ours");
    let program = program.to_str().expect("text");
    let mut gate = Gate::close_for_good(Path::new(program));
    let process = case
        .runtime
        .spawn(case.spec([program, "never"]))
        .expect("the spec is valid");
    let process = Arc::new(process);
    gate.wait_for("held");
    let wait = InlineWait::new(&process, process.collected_stdout().expect("it is collected"));
    gate.open();
    wait.returned();
    let error = within(process.started()).expect_err("the target cannot start");
    assert_eq!(
        error.kind(),
        dsh_subprocess::ErrorKind::ProgramNotExecutable,
        "{error}"
    );
    within(process.terminate()).expect("there is nothing to end");
    let (outcome, _) = case.run(case.probe(["exit", "0"]));
    assert!(outcome.success());
    case.assert_gone();
}

#[test]
fn as_root_on_cgroup_a_waker_that_uses_its_handle_at_a_failed_spawn_comes_back() {
    a_waker_that_uses_its_handle_at_a_failed_spawn_comes_back(Tier::Cgroup);
}

#[test]
fn as_root_on_reaper_a_waker_that_uses_its_handle_at_a_failed_spawn_comes_back() {
    a_waker_that_uses_its_handle_at_a_failed_spawn_comes_back(Tier::Reaper);
}

#[test]
fn as_root_on_process_group_a_waker_that_uses_its_handle_at_a_failed_spawn_comes_back() {
    a_waker_that_uses_its_handle_at_a_failed_spawn_comes_back(Tier::ProcessGroup);
}

/// A termination does not have to wait until the file system is back.
fn a_hanging_exec_can_be_terminated(tier: Tier) {
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("hanging");
    std::fs::copy("/bin/echo", &program).expect("the directory is ours");
    let program = program.to_str().expect("text");
    let mut gate = Gate::close(Path::new(program));
    let mut spec = case.spec([program, "never"]);
    spec.grace = Duration::from_millis(100);
    let hanging = case.runtime.spawn(spec).expect("the spec is valid");
    gate.wait_for("held");
    let begun = Instant::now();
    within(hanging.terminate()).expect("the tree ends");
    assert!(begun.elapsed() < BOUND);
    match within(hanging.done()) {
        Ok(outcome) => assert!(outcome.signal().is_some(), "{outcome}"),
        Err(error) => assert_eq!(error.kind(), dsh_subprocess::ErrorKind::Cancelled, "{error}"),
    }
    gate.open();
    case.assert_gone();
}

#[test]
fn as_root_on_cgroup_a_hanging_exec_can_be_terminated() {
    a_hanging_exec_can_be_terminated(Tier::Cgroup);
}

#[test]
fn as_root_on_reaper_a_hanging_exec_can_be_terminated() {
    a_hanging_exec_can_be_terminated(Tier::Reaper);
}

#[test]
fn as_root_on_process_group_a_hanging_exec_can_be_terminated() {
    a_hanging_exec_can_be_terminated(Tier::ProcessGroup);
}
