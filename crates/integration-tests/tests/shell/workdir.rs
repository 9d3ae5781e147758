//! A directory that cannot be used is named with its cause, and no command runs anywhere else instead (O27).

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use dsh_shell::{ErrorKind, ShellError, ShellRequest, Status};

use crate::fixture::{Host, Tier, on_each_tier};
use crate::stage::{Stage, assert_exit, stdout, whole};

on_each_tier! {
    o27_a_missing_directory_is_told_apart_from_a_missing_shell,
    o27_a_file_is_no_directory,
    o27_odd_names_work,
    o27_a_directory_that_goes_while_a_command_runs_harms_no_later_one,
    o27_d_a_host_in_a_removed_directory_needs_one_to_be_named,
    o27_a_relative_directory_begins_at_the_configured_one,
}

fn request(workdir: impl Into<dsh_shell::WorldPath>) -> ShellRequest {
    let mut request = ShellRequest::new("echo hi");
    request.workdir = Some(workdir.into());
    request
}

fn o27_a_missing_directory_is_told_apart_from_a_missing_shell(tier: Tier) {
    let stage = Stage::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gone = directory.path().to_owned();
    drop(directory);
    let error = stage.try_run(request(gone.clone())).expect_err("it is gone");
    assert_eq!(error.kind(), Some(ErrorKind::CwdNotFound), "{error}");
    assert!(
        error.to_string().contains(gone.to_str().expect("text")),
        "{error}"
    );
    assert!(
        !error.to_string().contains("bash"),
        "the shell is not to blame: {error}"
    );

    // In the background it is no error of the call, but the first thing that is read.
    let request = request(gone.clone());
    let execution = stage.execute(request);
    let ended = stage.within(execution.done());
    assert_eq!(ended.status, Status::Killed);
    let told = execution.read_output().delta;
    assert!(
        told.starts_with("[stderr]\nspawn failed: ") && told.contains(gone.to_str().expect("text")),
        "{told}"
    );

    let missing = Stage::with(tier, |config| config.program = vec!["/nonexistent/bash".into()]);
    let error = missing
        .try_run(ShellRequest::new("echo hi"))
        .expect_err("there is no such shell");
    assert_eq!(error.kind(), Some(ErrorKind::ProgramNotFound), "{error}");
    assert!(error.to_string().contains("/nonexistent/bash"), "{error}");
    missing.end();
    stage.end();
}

fn o27_a_file_is_no_directory(tier: Tier) {
    let stage = Stage::new(tier);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    for path in [file.path().to_owned(), file.path().join("below")] {
        let error = stage.try_run(request(path.clone())).expect_err("it is a file");
        assert_eq!(error.kind(), Some(ErrorKind::CwdNotDirectory), "{error}");
        assert!(
            error.to_string().contains(path.to_str().expect("text")),
            "{error}"
        );
    }
    stage.end();
}

/// Permission to enter a directory is something only an ordinary user can lack.
#[test]
fn o27_a_directory_without_search_permission_is_named() {
    let parent = tempfile::tempdir_in("/tmp").expect("/tmp is writable");
    fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).expect("it is ours");
    let closed = parent.path().join("closed");
    fs::create_dir(&closed).expect("it is ours");
    fs::set_permissions(&closed, Permissions::from_mode(0o600)).expect("it is ours");
    let workdir = format!("--workdir={}", closed.display());
    let report = Host::new(Tier::ProcessGroup)
        .unprivileged()
        .report(["shell", &workdir, "echo hi"]);
    assert_eq!(report.get("failed"), "Some(CwdNotSearchable)");
    assert!(report.get("failed-text").contains(closed.to_str().expect("text")));
}

fn o27_odd_names_work(tier: Tier) {
    let stage = Stage::new(tier);
    let parent = tempfile::tempdir().expect("a temporary directory");
    let parent = parent.path().canonicalize().expect("it is there");
    for name in [
        &b"with space"[..],
        b"with\nline",
        b"with'quote\"",
        b"not\xffutf8",
        b"-n",
    ] {
        let path = parent.join(OsStr::from_bytes(name));
        fs::create_dir(&path).expect("it is new");
        let mut request = request(path.clone());
        request.command = "printf %s \"$PWD\"; pwd -P >/dev/null".into();
        let result = stage.run_request(request);
        assert_exit(&result, 0);
        assert_eq!(whole(&result.stdout), path.as_os_str().as_bytes());
    }
    stage.end();
}

fn o27_a_directory_that_goes_while_a_command_runs_harms_no_later_one(tier: Tier) {
    let stage = Stage::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().to_owned();
    let mut removing = request(path.clone());
    removing.command = "rmdir \"$PWD\"; echo removed".into();
    assert_eq!(stdout(&stage.run_request(removing)), "removed\n");
    let error = stage.try_run(request(path)).expect_err("it is gone");
    assert_eq!(error.kind(), Some(ErrorKind::CwdNotFound));
    assert_eq!(stdout(&stage.run("echo hi")), "hi\n");
    stage.end();
}

/// A directory that nobody named cannot be guessed.
fn o27_d_a_host_in_a_removed_directory_needs_one_to_be_named(tier: Tier) {
    let report = Host::new(tier)
        .peculiar("--removed-cwd")
        .report(["shell", "echo hi"]);
    assert_eq!(report.get("failed"), "None");
    let why = report.get("failed-text");
    assert!(
        why.contains("current directory") && why.contains("workdir"),
        "{why}"
    );
    let report = Host::new(tier)
        .peculiar("--removed-cwd")
        .report(["shell", "--workdir=/", "echo hi; pwd"]);
    assert_eq!(report.get("stdout"), "hi\\n/\\n");
}

fn o27_a_relative_directory_begins_at_the_configured_one(tier: Tier) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let base = directory.path().canonicalize().expect("it is there");
    fs::create_dir_all(base.join("a/b")).expect("it is new");
    let stage = Stage::with(tier, |config| config.cwd = Some(base.clone().into()));
    let mut inner = request("a/b");
    inner.command = "pwd".into();
    let result = stage.run_request(inner);
    assert_eq!(stdout(&result), format!("{}/a/b\n", base.display()));
    let error = stage.try_run(request("")).expect_err("it names nothing");
    assert!(matches!(error, ShellError::Request(_)), "{error}");
    stage.end();
}
