//! Spawns that cannot succeed, and how they are told apart: case O27 and items 20, 23, 24, 26, 177 and 178.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dsh_subprocess::{ErrorKind, SubprocessRuntime, WorldPath, WorldString};
use tempfile::TempDir;

use crate::fixture::{Case, Host, Tier, on_each_tier, text};

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Writes a file with these contents and this mode.
fn file(path: &Path, contents: &[u8], mode: u32) -> String {
    fs::write(path, contents).expect("the directory is ours");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the file is ours");
    path.to_str().expect("text").to_owned()
}

on_each_tier! {
    o27_a_missing_cwd_is_told_apart_from_a_missing_program,
    item_24_a_file_as_cwd_is_no_directory,
    item_23_programs_that_cannot_run_say_why,
    item_26_a_script_without_an_interpreter_line_is_run_by_sh,
    item_177_the_childs_path_is_searched,
    item_24_an_argument_too_long_is_named_with_its_size_and_the_limit,
    item_178_nul_bytes_are_refused_by_name,
    a_relative_cwd_is_refused,
    o27_odd_directory_names_work,
    o27_d_a_host_in_a_removed_directory_spawns,
}

/// The same errno for two causes: each has its own kind and its own words.
fn o27_a_missing_cwd_is_told_apart_from_a_missing_program(tier: Tier) {
    let case = Case::new(tier);
    let gone = directory();
    let path = gone.path().to_owned();
    drop(gone);
    for program in ["/bin/true", "/bin/bash", "true"] {
        let mut spec = case.spec([program]);
        spec.cwd = path.as_path().into();
        let error = case.failure(spec);
        assert_eq!(error.kind(), ErrorKind::CwdNotFound, "{error}");
        assert!(
            error.to_string().contains(path.to_str().expect("text")),
            "{error}"
        );
    }
    let error = case.failure(case.spec(["/nonexistent/program"]));
    assert_eq!(error.kind(), ErrorKind::ProgramNotFound, "{error}");
    assert!(error.to_string().contains("/nonexistent/program"), "{error}");
    let error = case.failure(case.spec(["no-such-program-anywhere"]));
    assert_eq!(error.kind(), ErrorKind::ProgramNotFound, "{error}");
    assert!(error.to_string().contains("no-such-program-anywhere"), "{error}");
}

/// A cwd that is a file, or below one.
fn item_24_a_file_as_cwd_is_no_directory(tier: Tier) {
    let case = Case::new(tier);
    let directory = directory();
    let plain = file(&directory.path().join("plain"), b"", 0o644);
    for cwd in [plain.clone(), format!("{plain}/below")] {
        let mut spec = case.spec(["/bin/true"]);
        spec.cwd = cwd.as_str().into();
        let error = case.failure(spec);
        assert_eq!(error.kind(), ErrorKind::CwdNotDirectory, "{error}");
        assert!(error.to_string().contains(&cwd), "{error}");
    }
}

/// A program that is there and cannot be run, in each way that can be.
fn item_23_programs_that_cannot_run_say_why(tier: Tier) {
    let case = Case::new(tier);
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    let cases = [
        (
            file(&at("plain"), b"text", 0o644),
            ErrorKind::ProgramNotExecutable,
        ),
        (
            directory.path().to_str().expect("text").to_owned(),
            ErrorKind::ProgramNotExecutable,
        ),
        (
            file(&at("shebang"), b"#!/nonexistent/interpreter\n", 0o755),
            ErrorKind::InterpreterNotFound,
        ),
        (
            format!("{}/below", file(&at("other"), b"", 0o644)),
            ErrorKind::ProgramNotFound,
        ),
    ];
    for (program, kind) in cases {
        let error = case.failure(case.spec([&program]));
        assert_eq!(error.kind(), kind, "{program}: {error}");
        assert!(error.to_string().contains(&program), "{error}");
    }
    let looped = at("loop");
    std::os::unix::fs::symlink(&looped, &looped).expect("the directory is ours");
    let error = case.failure(case.spec([looped.to_str().expect("text")]));
    assert_eq!(error.kind(), ErrorKind::PathUnresolvable, "{error}");
    let endless = format!("/{}", "x".repeat(5000));
    let error = case.failure(case.spec([&endless]));
    assert_eq!(error.kind(), ErrorKind::PathUnresolvable, "{error}");
}

/// A script without a first line for the kernel is run by the shell.
fn item_26_a_script_without_an_interpreter_line_is_run_by_sh(tier: Tier) {
    let case = Case::new(tier);
    let directory = directory();
    let script = file(
        &directory.path().join("script"),
        b"echo \"$0 $1\"\nexit 5\n",
        0o755,
    );
    let (outcome, process) = case.run(case.spec([script.as_str(), "argument"]));
    assert_eq!(outcome.code(), Some(5));
    assert_eq!(text(&process), format!("{script} argument\n"));
}

/// The child's own `PATH` is searched; an entry that may not be executed is remembered while the search goes on.
fn item_177_the_childs_path_is_searched(tier: Tier) {
    let case = Case::new(tier);
    let (first, second) = (directory(), directory());
    file(&first.path().join("tool"), b"#!/bin/sh\necho wrong\n", 0o644);
    let path = |paths: &[&Path]| -> Option<WorldString> {
        Some(std::env::join_paths(paths).expect("no colon in them").into())
    };
    let mut spec = case.spec(["tool"]);
    spec.env
        .insert("PATH".into(), path(&[first.path(), second.path()]));
    let error = case.failure(spec.clone());
    assert_eq!(error.kind(), ErrorKind::ProgramNotExecutable, "{error}");
    file(&second.path().join("tool"), b"#!/bin/sh\necho right\n", 0o755);
    let (outcome, process) = case.run(spec.clone());
    assert!(outcome.success());
    assert_eq!(text(&process), "right\n");
    // A relative entry counts from the child's directory.
    spec.env.insert("PATH".into(), Some(".".into()));
    spec.cwd = second.path().into();
    let (outcome, process) = case.run(spec.clone());
    assert!(outcome.success());
    assert_eq!(text(&process), "right\n");
    // Without a PATH there still is one.
    let mut spec = case.spec(["true"]);
    spec.env.insert("PATH".into(), None);
    let (outcome, _) = case.run(spec);
    assert!(outcome.success());
}

/// One argument, one variable, or all of them together: which, its size, and the limit.
fn item_24_an_argument_too_long_is_named_with_its_size_and_the_limit(tier: Tier) {
    let case = Case::new(tier);
    // Linux: 32 pages for one string, its NUL counted.
    let (long, limit) = (200_000, "131072");
    let error = case.failure(case.spec(["/bin/true", "short", &"x".repeat(long)]));
    assert_eq!(error.kind(), ErrorKind::ArgumentTooLong);
    let text = error.to_string();
    assert!(text.contains("argv[2]") && text.contains("200000"), "{text}");
    assert!(text.contains(limit) || text.contains("131071"), "{text}");

    let mut spec = case.spec(["/bin/true"]);
    spec.env.insert("HUGE".into(), Some("x".repeat(long).into()));
    let error = case.failure(spec);
    assert_eq!(error.kind(), ErrorKind::ArgumentTooLong);
    let text = error.to_string();
    assert!(text.contains("HUGE") && text.contains("2000"), "{text}");
    assert!(!text.contains("xxxx"), "a value is never quoted");

    let many: Vec<String> = std::iter::once("/bin/true".to_owned())
        .chain((0..100).map(|_| "x".repeat(100_000)))
        .collect();
    let error = case.failure(case.spec(many));
    assert_eq!(error.kind(), ErrorKind::ArgumentTooLong, "{error}");
    assert!(
        error
            .to_string()
            .chars()
            .any(|character| character.is_ascii_digit()),
        "{error}"
    );
    // Exactly at the limit it still runs.
    let (outcome, _) = case.run(case.spec(["/bin/true", &"x".repeat(131_071)]));
    assert!(outcome.success());
}

/// A NUL byte is refused at once, and the text says where it is.
fn item_178_nul_bytes_are_refused_by_name(tier: Tier) {
    let case = Case::new(tier);
    let nul = |change: &dyn Fn(&mut dsh_subprocess::SpawnSpec)| {
        let mut spec = case.spec(["/bin/true", "first"]);
        change(&mut spec);
        let error = case.runtime.spawn(spec).expect_err("it cannot reach a program");
        assert_eq!(error.kind(), ErrorKind::InvalidSpec);
        error.to_string()
    };
    assert!(nul(&|spec| spec.argv[1] = "a\0b".into()).contains("argv[1]"));
    assert!(nul(&|spec| spec.cwd = "/tmp\0".into()).contains("cwd"));
    assert!(nul(&|spec| drop(spec.env.insert("NAME".into(), Some("a\0".into())))).contains("NAME"));
    assert!(nul(&|spec| drop(spec.env.insert("N\0".into(), None))).contains("name"));
}

/// A relative cwd names no place.
fn a_relative_cwd_is_refused(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.spec(["/bin/true"]);
    spec.cwd = "relative".into();
    match case.runtime.spawn(spec) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidSpec),
        Ok(process) => panic!("{process:?} runs somewhere"),
    }
}

/// Names are bytes: spaces, line ends and what is not UTF-8 arrive as they are, in the directory and in `PWD`.
fn o27_odd_directory_names_work(tier: Tier) {
    let case = Case::new(tier);
    let parent = directory();
    for name in [&b"with space"[..], b"line\nend", b"not-utf8-\xff\xfe", b"-dash"] {
        let path = parent.path().join(OsStr::from_bytes(name));
        fs::create_dir(&path).expect("the directory is ours");
        let mut spec = case.probe(["pwd"]);
        spec.cwd = WorldPath::from(path.as_path());
        let (outcome, process) = case.run(spec);
        assert!(outcome.success());
        let bytes = process
            .collected_stdout()
            .expect("it is collected")
            .read_from(0)
            .bytes;
        let real = path.canonicalize().expect("it is there");
        assert_eq!(bytes[..], *real.as_os_str().as_bytes());
        let mut spec = case.spec(["/bin/sh", "-c", r#"printf %s "$PWD""#]);
        spec.cwd = WorldPath::from(path.as_path());
        let (_, process) = case.run(spec);
        let bytes = process
            .collected_stdout()
            .expect("it is collected")
            .read_from(0)
            .bytes;
        assert_eq!(bytes[..], *path.as_os_str().as_bytes());
    }
}

/// A host that sits in a removed directory spawns elsewhere as any other does.
fn o27_d_a_host_in_a_removed_directory_spawns(tier: Tier) {
    let report = Host::new(tier)
        .peculiar("--removed-cwd")
        .report(["run", "--cwd=/", "/bin/pwd"]);
    assert_eq!(report.get("outcome"), "exited with code 0");
    assert_eq!(report.get("stdout"), "/\\n");
}

/// Permission to enter a directory is something only an ordinary user can lack.
#[test]
fn o27_a_directory_without_search_permission_is_named() {
    let parent = tempfile::tempdir_in("/tmp").expect("/tmp is writable");
    fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).expect("it is ours");
    let closed = parent.path().join("closed");
    fs::create_dir(&closed).expect("it is ours");
    fs::set_permissions(&closed, Permissions::from_mode(0o600)).expect("it is ours");
    let cwd = format!("--cwd={}", closed.display());
    let report = Host::new(Tier::ProcessGroup)
        .unprivileged()
        .report(["run", &cwd, "/bin/true"]);
    assert_eq!(report.get("failed"), "CwdNotSearchable");
    assert!(report.get("failed-text").contains(closed.to_str().expect("text")));
}

/// A bound that no clock can add up is refused, whichever mechanism is asked for.
#[test]
fn a_kill_bound_beyond_any_clock_is_refused() {
    for choice in [
        dsh_subprocess_local::OwnershipChoice::Auto,
        dsh_subprocess_local::OwnershipChoice::ProcessGroup,
    ] {
        let error = dsh_subprocess_local::LocalRuntime::builder()
            .ownership(choice)
            .kill_bound(std::time::Duration::MAX)
            .build()
            .expect_err("it is no bound");
        assert_eq!(error.kind(), ErrorKind::InvalidSpec, "{error}");
        assert!(error.to_string().contains("kill bound"), "{error}");
    }
}
