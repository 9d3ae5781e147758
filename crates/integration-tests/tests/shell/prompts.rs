//! Nothing that a command starts can ask anybody anything (O19).

use std::path::Path;

use dsh_subprocess::{SubprocessRuntime, TerminalSize, TerminalSpec};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Case, Tier, on_each_tier, within};
use crate::stage::{LONG, Stage, assert_exit, stderr, stdout};

on_each_tier! {
    o19_a_host_on_a_terminal_keeps_it_to_itself,
    o19_an_editor_fails_at_once,
    o19_a_pager_passes_everything_on,
    o19_a_password_is_not_asked_for,
}

/// The host has a terminal, on which somebody has typed a line for it.
fn o19_a_host_on_a_terminal_keeps_it_to_itself(tier: Tier) {
    let case = Case::new(tier);
    // The host reads nothing itself, and the shell around it reads what is left afterwards.
    let script = "stty -g; \"$PROBE\" host --ownership=$0 shell \
                  'read -r x </dev/tty; echo rc=$?' 'cat; echo rc=$?' 'tty; echo rc=$?' 'stty -g; echo rc=$?'; \
                  stty -g; read -r line; echo \"left: $line\"";
    let mechanism = tier.mechanism().to_string();
    let spec = TerminalSpec {
        argv: ["/bin/bash", "-c", script, &mechanism].map(Into::into).to_vec(),
        cwd: "/".into(),
        env: case.spec(["unused"]).env,
        terminal_type: "dumb".into(),
        size: TerminalSize { rows: 24, cols: 80 },
        grace: LONG,
        drain: LONG,
        cancel: CancellationToken::new(),
    };
    let mut terminal = within(case.runtime.spawn_terminal(spec)).expect("it starts");
    let mut output = terminal.output().expect("it was not taken");
    within(terminal.write("typed\n")).expect("somebody is there");
    let mut screen = Vec::new();
    within(output.read_to_end(&mut screen)).expect("the end of a terminal is no error");
    assert!(within(terminal.done()).expect("it ends").success());
    within(terminal.terminate()).expect("nothing is left");
    let screen = String::from_utf8(screen).expect("text").replace("\r\n", "\n");

    let answers: Vec<&str> = screen
        .lines()
        .filter_map(|line| line.strip_prefix("stdout "))
        .collect();
    assert_eq!(
        answers,
        ["rc=1\\n", "rc=0\\n", "not a tty\\nrc=1\\n", "rc=1\\n"],
        "{screen}"
    );
    let settings: Vec<&str> = screen
        .lines()
        .filter(|line| {
            line.contains(':') && line.split(':').all(|part| u64::from_str_radix(part, 16).is_ok())
        })
        .collect();
    assert_eq!(settings.len(), 2, "{screen}");
    assert_eq!(settings[0], settings[1], "the terminal's settings are as before");
    assert!(screen.ends_with("left: typed\n"), "{screen}");
    case.assert_gone();
}

/// A repository with some commits, of somebody with a name.
#[track_caller]
fn repository(stage: &Stage, directory: &Path, commits: usize) -> String {
    let enter = format!(
        "cd '{}'; export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@example.invalid \
         GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@example.invalid;",
        directory.display()
    );
    let made = stage.run(&format!(
        "{enter} git init -q . && for i in $(seq 1 {commits}); do git commit -q --allow-empty -m \"commit $i\"; done"
    ));
    assert_exit(&made, 0);
    enter
}

fn o19_an_editor_fails_at_once(tier: Tier) {
    let stage = Stage::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let enter = repository(&stage, directory.path(), 1);
    let result = stage.run(&format!("{enter} unset GIT_EDITOR; git commit --allow-empty"));
    assert_exit(&result, 1);
    assert!(stderr(&result).contains("editor"), "{result:?}");
    let result = stage.run(&format!("{enter} git rebase -i --root"));
    assert_ne!(result.outcome.code(), Some(0), "{result:?}");
    stage.end();
}

fn o19_a_pager_passes_everything_on(tier: Tier) {
    let stage = Stage::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let enter = repository(&stage, directory.path(), 101);
    let result = stage.run(&format!("{enter} git -c core.pager=less -p log --oneline"));
    assert_exit(&result, 0);
    assert_eq!(stdout(&result).lines().count(), 101);
    stage.end();
}

/// Nothing listens there, and none of them may wait for somebody who knows a password.
fn o19_a_password_is_not_asked_for(tier: Tier) {
    let stage = Stage::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let result = stage.run(&format!(
        "cd '{}'; git clone https://127.0.0.1:1/x",
        directory.path().display()
    ));
    assert_exit(&result, 128);
    // The second configuration names a program that would open a window, and here would answer at once.
    for configured in ["", "-c core.askPass=echo"] {
        let result = stage.run(&format!(
            "printf 'protocol=https\\nhost=127.0.0.1\\n\\n' | HOME='{}' git {configured} credential fill",
            directory.path().display()
        ));
        assert_exit(&result, 128);
        assert!(stderr(&result).contains("prompts disabled"), "{result:?}");
    }
    // Neither is on every machine.
    for (program, call) in [
        ("ssh", "ssh -o ConnectTimeout=2 nosuchhost.invalid"),
        ("sudo", "sudo -k true; sudo -n true; true"),
    ] {
        let result = stage.run(&format!("command -v {program} || exit 77; {call}"));
        assert!(result.outcome.code().is_some(), "{program}: {result:?}");
    }
    stage.end();
}
