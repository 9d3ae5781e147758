//! The directory that a program on a terminal starts in: case O27.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dsh_subprocess::{Error, ErrorKind, MayHaveStarted};

use super::session::Terminals;
use crate::fixture::{Case, Host, Tier, on_each_tier};

on_each_tier! {
    o27_a_directory_that_cannot_be_entered_is_an_error_of_its_kind,
    o27_a_directory_that_may_not_be_searched_is_an_error_of_its_kind,
    o27_any_name_of_a_directory_is_entered,
    o27_d_a_host_in_a_removed_directory_starts_programs_elsewhere,
}

#[track_caller]
fn refusal(case: &Case, cwd: &Path, program: &str) -> Error {
    let mut spec = case.terminal_spec(case.spec([program]));
    spec.cwd = cwd.into();
    let error = case.try_terminal(spec).expect_err("it cannot start");
    assert_eq!(error.started(), MayHaveStarted::No);
    error
}

fn o27_a_directory_that_cannot_be_entered_is_an_error_of_its_kind(tier: Tier) {
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let removed = directory.path().join("removed");
    fs::create_dir(&removed).expect("it is ours");
    fs::remove_dir(&removed).expect("it is ours");
    let file = directory.path().join("file");
    fs::write(&file, "").expect("it is ours");
    for (cwd, kind) in [
        (&removed, ErrorKind::CwdNotFound),
        (&file, ErrorKind::CwdNotDirectory),
    ] {
        // The program is not blamed, whether it is there or not.
        for program in ["/bin/true", "/nonexistent/program"] {
            let error = refusal(&case, cwd, program);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(&*cwd.to_string_lossy()), "{error}");
        }
    }
    let error = refusal(&case, directory.path(), "/nonexistent/program");
    assert_eq!(error.kind(), ErrorKind::ProgramNotFound, "{error}");
    case.assert_gone();
}

/// Root may search every directory.
fn o27_a_directory_that_may_not_be_searched_is_an_error_of_its_kind(tier: Tier) {
    let directory = tempfile::tempdir_in("/tmp").expect("/tmp is writable");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o600)).expect("it is ours");
    // A control group of its own is not an ordinary user's to make.
    let host = if tier == Tier::Cgroup {
        Host::new(Tier::ProcessGroup)
    } else {
        Host::new(tier)
    };
    let cwd = format!("--cwd={}", directory.path().display());
    let report = host.unprivileged().report(["terminal", &cwd, "/bin/true"]);
    assert_eq!(report.get("refused"), "CwdNotSearchable", "{report:?}");
}

fn o27_any_name_of_a_directory_is_entered(tier: Tier) {
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let parent = directory.path().canonicalize().expect("it is there");
    for name in [
        &b"two words"[..],
        b"line\nend",
        b"not UTF-8: \xff\xfe",
        b"-leading",
    ] {
        let cwd = parent.join(OsStr::from_bytes(name));
        fs::create_dir(&cwd).expect("it is ours");
        let mut spec = case.terminal_spec(case.bash(r#"stty -opost; exec "$PROBE" pwd"#));
        spec.cwd = cwd.as_path().into();
        let (outcome, printed) = case.open(spec).finish();
        assert!(outcome.success());
        assert_eq!(printed, cwd.as_os_str().as_bytes());
    }
}

fn o27_d_a_host_in_a_removed_directory_starts_programs_elsewhere(tier: Tier) {
    let report = Host::new(tier)
        .peculiar("--removed-cwd")
        .report(["terminal", "--cwd=/usr", "/bin/pwd"]);
    assert_eq!(report.get("output"), "/usr\r\\n", "{report:?}");
    assert_eq!(report.get("outcome"), "exited with code 0");
}
