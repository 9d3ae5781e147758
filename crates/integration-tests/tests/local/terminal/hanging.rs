//! A terminal whose program's exec hangs, as on a dead network file system: its allocation can be given up.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dsh_subprocess::{ErrorKind, SubprocessRuntime, TerminalSpec};

use super::session::{Session, Terminals, plain};
use crate::fixture::{Case, Tier, alive, eventually, on_each_tier, within};
use crate::hanging::Gate;

/// A program that nobody can execute until the gate is opened. It says `through`, and leaves a file.
struct Hanging {
    directory: tempfile::TempDir,
    program: PathBuf,
}

impl Hanging {
    #[track_caller]
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = directory.path().join("hanging");
        fs::copy("/bin/dash", &program).expect("the directory is ours");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
        Self { directory, program }
    }

    #[track_caller]
    fn spec(&self, case: &Case) -> TerminalSpec {
        let program = self.program.to_str().expect("temporary directories are text");
        let mut spec = case.terminal_spec(case.spec([program, "-c", ": >ran; echo through; exit 4"]));
        spec.cwd = self.directory.path().into();
        spec
    }

    fn ran(&self) -> PathBuf {
        self.directory.path().join("ran")
    }
}

/// By its token, and by dropping the future: in both cases nothing is left, and the program never runs.
fn item_84_an_allocation_that_hangs_is_given_up(tier: Tier) {
    for by_token in [true, false] {
        let case = Case::new(tier);
        let hanging = Hanging::new();
        let mut gate = Gate::close(Path::new(&hanging.program));
        let spec = hanging.spec(&case);
        let token = spec.cancel.clone();
        let allocation = case.runtime.spawn_terminal(spec);
        let held = gate.held();
        if by_token {
            token.cancel();
            let error = within(allocation).expect_err("it was cancelled");
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        } else {
            // That waits for nothing: a warden may be about to kill it.
            drop(allocation);
            eventually("it is killed while it hangs", || !alive(held));
        }
        gate.open();
        eventually("nothing is left", || case.living().is_empty());
        within(case.runtime.dispose()).expect("nothing is left");
        assert!(!hanging.ran().exists());
    }
}

/// Others have their terminals meanwhile, and it has its own when the file system is back.
fn a_hanging_exec_holds_up_no_other_terminal(tier: Tier) {
    let case = Case::new(tier);
    let hanging = Hanging::new();
    let mut gate = Gate::close(Path::new(&hanging.program));
    let allocation = case.runtime.spawn_terminal(hanging.spec(&case));
    gate.wait_for("held");
    let other = case.open(case.terminal_spec(case.probe(["exit", "6"])));
    assert_eq!(other.outcome().code(), Some(6));
    gate.open();
    let mut terminal = within(allocation).expect("it starts");
    let output = terminal.output().expect("it was not taken yet");
    let (outcome, printed) = Session::new(terminal, output).finish();
    assert_eq!(outcome.code(), Some(4));
    assert_eq!(plain(&printed), "through\n");
    assert!(hanging.ran().exists());
}

on_each_tier! {
    as root:
    item_84_an_allocation_that_hangs_is_given_up,
    a_hanging_exec_holds_up_no_other_terminal,
}
