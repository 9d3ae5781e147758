//! Where a text runs, in which shell, and what it knows.

use crate::fixture::{Case, finish, start};

#[test]
fn o25_credentials_stay_behind_and_what_programs_need_is_there() {
    let case = Case::new();
    let mut command = case.command([
        "sh",
        "--json",
        "--env",
        "GIVEN_TOKEN=given",
        "--",
        "env; cat /proc/$$/environ",
    ]);
    command.envs([
        ("OPENAI_API_KEY", "sk-hidden"),
        ("ANTHROPIC_AUTH_TOKEN", "hidden"),
        ("AWS_SECRET_ACCESS_KEY", "hidden"),
        ("GITHUB_TOKEN", "ghp_hidden"),
        ("DSH_OWN_SECRET", "hidden"),
        ("LANG", "C.UTF-8"),
    ]);
    let object = finish(start(&mut command)).sh_object();
    let printed = object["stdout"]["text"].as_str().expect("it is text");
    assert!(!printed.contains("hidden"), "{printed}");
    let own = case.path("");
    let own = own.to_str().expect("its name is text").trim_end_matches('/');
    for variable in [
        "GIVEN_TOKEN=given".to_owned(),
        "PATH=/usr/local/bin:/usr/bin:/bin".to_owned(),
        "LANG=C.UTF-8".to_owned(),
        format!("HOME={own}"),
        format!("TMPDIR={own}"),
    ] {
        assert!(printed.contains(&variable), "{variable}: {printed}");
    }
}

#[test]
fn item_120_programs_are_told_that_a_model_reads_them_unless_the_caller_says_otherwise() {
    let case = Case::new();
    let text = "echo $NO_COLOR $TERM $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT";
    assert_eq!(case.text(&[], text).text(), "1 dumb cat cat 0\n[exit code: 0]\n");
    let options = ["--env", "TERM=xterm", "--unset", "NO_COLOR"];
    assert_eq!(
        case.text(&options, text).text(),
        "xterm cat cat 0\n[exit code: 0]\n"
    );
}

#[test]
fn item_9_a_session_is_told_with_the_facts_of_the_harness() {
    let case = Case::new();
    let text = "echo $DSH_SHELL ${DSH_SESSION_ID-none}";
    assert_eq!(case.text(&[], text).text(), "1 none\n[exit code: 0]\n");
    let options = ["--session", "s-7", "--env", "DSH_SHELL=forged"];
    assert_eq!(case.text(&options, text).text(), "1 s-7\n[exit code: 0]\n");
}

#[test]
fn another_shell_reads_the_text_where_one_is_named() {
    let case = Case::new();
    let done = case.text(&["--shell", "sh"], "echo ${BASH_VERSION-none}");
    assert_eq!(done.text(), "none\n[exit code: 0]\n");
    let done = case.text(&["--shell", "no-such-shell"], "true");
    assert_eq!((done.code(), done.text()), (127, ""));
    assert!(done.line().contains("no-such-shell"), "{}", done.line());
    let done = case.text(&["--json", "--shell", "/dev/null"], "true");
    assert_eq!(done.code(), 126);
    assert_eq!(done.sh_object()["error"]["kind"], "program_not_executable");
}

#[test]
fn the_text_runs_where_it_is_told() {
    let case = Case::new();
    std::fs::create_dir(case.path("a b")).expect("a directory can be made");
    let object = case.text_object(&["--cwd", "a b"], "basename \"$PWD\"");
    assert_eq!(object["stdout"]["text"], "a b\n");
    assert!(object["cwd"].as_str().is_some_and(|cwd| cwd.ends_with("/a b")));
}

#[test]
fn o27_a_bad_directory_is_named_and_is_not_the_shells_fault() {
    let case = Case::new();
    case.file("file", "");
    for (path, kind) in [("gone", "cwd_not_found"), ("file", "cwd_not_directory")] {
        let done = case.text(&["--json", "--cwd", path], "echo hi");
        let object = done.sh_object();
        assert_eq!(
            (done.code(), &object["error"]["kind"]),
            (125, &kind.into()),
            "{object:#}"
        );
        assert!(done.line().contains(path), "{}", done.line());
        assert_eq!(object["rendered"], serde_json::Value::Null);
    }
}

#[test]
fn o27_a_removed_current_directory_is_named() {
    let case = Case::new();
    let script = "mkdir removed && cd removed && rmdir ../removed && exec \"$0\" \"$@\"";
    let done = finish(start(&mut case.command_in(script, ["sh", "echo hi"])));
    assert_eq!((done.code(), done.text()), (125, ""));
    assert!(
        done.line().contains("/removed") && done.line().contains("--cwd"),
        "{}",
        done.line()
    );
}
