//! Where a command runs, and in which environment.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::fixture::{Case, finish, start};

#[test]
fn the_command_runs_where_we_are_unless_told_otherwise() {
    let case = Case::new();
    let here = case.path("").canonicalize().expect("it exists");
    std::fs::create_dir(here.join("below")).expect("a directory can be made");
    let pwd = |options: &[&str]| {
        case.run(&[options, &["--quiet"]].concat(), &["pwd", "-P"])
            .text()
            .to_owned()
    };
    assert_eq!(pwd(&[]), format!("{}\n", here.display()));
    assert_eq!(
        pwd(&["--cwd", "below"]),
        format!("{}\n", here.join("below").display())
    );
    assert_eq!(pwd(&["--cwd", "/"]), "/\n");
}

#[test]
fn o27_a_directory_may_have_any_name() {
    let case = Case::new();
    for name in [&b"with space"[..], b"with\nnewline", b"not\xffutf8"] {
        let path = case.path("").join(OsString::from_vec(name.to_vec()));
        std::fs::create_dir(&path).expect("a directory can be made");
        let mut command = case.command(["run", "--quiet", "--cwd"]);
        command.arg(&path).arg("pwd");
        let done = finish(start(&mut command));
        assert_eq!(done.code(), 0, "{}", done.stderr);
        assert_eq!(done.stdout, [path.as_os_str().as_bytes(), b"\n"].concat());
    }
}

#[test]
fn o27_a_removed_current_directory_is_named() {
    let case = Case::new();
    let path = case.path("removed");
    let binary = env!("CARGO_BIN_EXE_dsh-subprocess");
    let script =
        format!("mkdir removed && cd removed && rmdir ../removed && exec {binary} run -- touch ../started");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &script]).current_dir(case.path(""));
    let done = finish(start(
        shell
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped()),
    ));
    assert_eq!(done.code(), 125);
    let line = done.line();
    assert!(
        line.contains(path.to_str().unwrap()) && line.contains("--cwd"),
        "{line}"
    );
    assert!(!case.path("started").exists());
}

#[test]
fn o25_ambient_credentials_stay_behind_and_the_rest_arrives() {
    let case = Case::new();
    let mut command = case.command(["run", "--quiet", "--", "env"]);
    command
        .env("CLI_TEST_TOKEN", "t0p")
        .env("DSH_INTERNAL", "1")
        .env("CLI_TEST_PLAIN", "plain");
    let done = finish(start(&mut command));
    let lines: Vec<_> = done.text().lines().collect();
    assert!(lines.contains(&"CLI_TEST_PLAIN=plain"), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("PATH=")), "{lines:?}");
    assert!(
        !done.text().contains("t0p") && !done.text().contains("DSH_INTERNAL"),
        "{lines:?}"
    );
}

#[test]
fn env_sets_whatever_the_name_and_the_last_one_counts() {
    let options = [
        "--quiet",
        "--env",
        "A_TOKEN=x=y",
        "--env",
        "B=1",
        "--env",
        "B=2",
        "--env",
        "EMPTY=",
    ];
    let done = Case::new().sh(&options, r#"echo "$A_TOKEN $B ${EMPTY-unset}""#);
    assert_eq!(done.text(), "x=y 2 \n");
}

#[test]
fn env_decides_where_the_program_is_searched() {
    let case = Case::new();
    let path = format!("PATH={}", case.path("").display());
    assert_eq!(case.run(&["--quiet", "--env", &path], &["true"]).code(), 127);
}

#[test]
fn unset_removes_a_variable_and_one_that_is_not_there_is_no_error() {
    let case = Case::new();
    let words = [
        "run",
        "--quiet",
        "--unset",
        "CLI_TEST_GONE",
        "--unset",
        "CLI_TEST_NEVER",
        "--",
    ];
    let mut command = case.command(words);
    command
        .args(["/bin/sh", "-c", "echo ${CLI_TEST_GONE-unset}"])
        .env("CLI_TEST_GONE", "here");
    assert_eq!(finish(start(&mut command)).text(), "unset\n");
}
