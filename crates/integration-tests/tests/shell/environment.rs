//! What a command knows: no secret of its host, what programs need, and the facts of this call (O25, item 9).

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dsh_jobs::JobStatus;
use dsh_shell::{Contributor, ShellRequest, StreamName};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Case, Tier, on_each_tier};
use crate::stage::{Stage, assert_exit, stdout};

on_each_tier! {
    o25_no_secret_of_the_host_reaches_a_command_or_a_job,
    o25_what_programs_need_stays,
    o25_an_explicit_entry_reaches_its_own_command_alone,
    o25_a_path_of_ones_own_holds_for_the_command_too,
    item_009_managed_facts_are_fresh_and_win,
    item_120_the_layers_of_the_environment,
}

const SECRETS: [&str; 5] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "DSH_DEPLOYMENT_KEY",
];
const SECRET: &str = "hunter2-hunter2";
const NEEDED: [(&str, &str); 5] = [
    ("HOME", "/somebodys/home"),
    ("USER", "somebody"),
    ("LANG", "C.UTF-8"),
    ("TMPDIR", "/somebodys/tmp"),
    ("SSH_AUTH_SOCK", "/somebodys/agent"),
];

/// A shell of a host with secrets, what programs need, and managed facts of another day.
fn stage(tier: Tier) -> Stage {
    let case = Case::new(tier);
    let path = std::env::var("PATH").expect("there is one");
    let mut ambient: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), path.into()),
        ("PAGER".into(), "less".into()),
        ("DSH_SESSION_ID".into(), "yesterday".into()),
        ("DSH_STALE".into(), "yesterday".into()),
        ("FORCE_COLOR".into(), "1".into()),
    ];
    ambient.extend(SECRETS.map(|name| (name.into(), SECRET.into())));
    ambient.extend(NEEDED.map(|(name, value)| (name.into(), value.into())));
    let world = Arc::new(case.runtime.with_ambient(ambient));
    Stage::of(case, world, |_| {})
}

/// Everything a command can find out of its environment and of that of the processes around it.
const EVERYTHING: &str = "env; tr '\\0' '\\n' </proc/$$/environ; tr '\\0' '\\n' </proc/$$/cmdline; \
                          tr '\\0' '\\n' </proc/self/environ";

fn o25_no_secret_of_the_host_reaches_a_command_or_a_job(tier: Tier) {
    let stage = stage(tier);
    let result = stage.run(EVERYTHING);
    assert_exit(&result, 0);
    let session = stage.jobs.open("owner").expect("it is the first");
    let id = stage.start_job(&session, EVERYTHING);
    let info = stage
        .within(session.wait(&id, std::time::Duration::from_secs(50), &CancellationToken::new()))
        .expect("it ends");
    assert_eq!(info.status, JobStatus::Completed);
    let reader = session.reader(&id, StreamName::Stdout).expect("it has one");
    for seen in [stdout(&result), reader.text()] {
        assert!(seen.contains("USER=somebody\n"), "{seen}");
        assert!(!seen.contains(SECRET), "{seen}");
        for name in SECRETS {
            assert!(!seen.contains(name), "{name}: {seen}");
        }
        assert!(!seen.contains("yesterday"), "{seen}");
    }
    stage.within(session.end()).expect("nothing is left to end");
    stage.end();
}

fn o25_what_programs_need_stays(tier: Tier) {
    let stage = stage(tier);
    for (name, value) in NEEDED {
        let result = stage.run(&format!("printf %s \"${name}\""));
        assert_eq!(stdout(&result), value, "{name}");
    }
    let result = stage.run("printf %s \"$PATH\"");
    assert_eq!(stdout(&result), std::env::var("PATH").expect("there is one"));
    stage.end();
}

fn o25_an_explicit_entry_reaches_its_own_command_alone(tier: Tier) {
    let stage = stage(tier);
    let ask = "echo ${GITHUB_TOKEN-none} ${HOME-none}";
    let mut request = ShellRequest::new(ask);
    request.env.insert("GITHUB_TOKEN".into(), Some("given".into()));
    request.env.insert("HOME".into(), None);
    assert_eq!(stdout(&stage.run_request(request)), "given none\n");
    assert_eq!(stdout(&stage.run(ask)), "none /somebodys/home\n");
    stage.end();
}

/// It is where the shell is found, and what the shell finds things in.
fn o25_a_path_of_ones_own_holds_for_the_command_too(tier: Tier) {
    let stage = stage(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink("/bin/echo", directory.path().join("bash")).expect("it is new");
    let mut request = ShellRequest::new("not a command");
    request
        .env
        .insert("PATH".into(), Some(directory.path().to_owned().into()));
    let result = stage.run_request(request);
    assert_exit(&result, 0);
    assert_eq!(
        stdout(&result),
        "-c not a command\n",
        "the program of that name on that path was run"
    );
    stage.end();
}

fn item_009_managed_facts_are_fresh_and_win(tier: Tier) {
    let stage = stage(tier);
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let contributor = Contributor::new("counter", ["DSH_COUNT", "DSH_WHERE"], move |call| {
        let count = counted.fetch_add(1, Ordering::Relaxed);
        let mut facts = vec![("DSH_COUNT".to_owned(), count.to_string().into())];
        if call.session.is_some() {
            facts.push(("DSH_WHERE".to_owned(), call.workdir.to_string().into()));
        }
        facts
    });
    stage
        .shell
        .contribute(contributor.expect("it is valid"))
        .expect("nobody else has these");
    let ask = "echo $DSH_SHELL ${DSH_SESSION_ID-none} $DSH_COUNT ${DSH_WHERE-nowhere} ${DSH_STALE-none}";
    assert_eq!(stdout(&stage.run(ask)), "1 none 0 nowhere none\n");

    let mut request = ShellRequest::new(ask);
    request.session = Some("today".to_owned());
    request.workdir = Some("/tmp".into());
    for name in ["DSH_SESSION_ID", "DSH_COUNT", "DSH_SHELL"] {
        request.env.insert(name.into(), Some("forged".into()));
    }
    assert_eq!(stdout(&stage.run_request(request)), "1 today 1 /tmp none\n");
    // What did not hold this time is not remembered from the last.
    assert_eq!(stdout(&stage.run(ask)), "1 none 2 nowhere none\n");
    stage.end();
}

/// Each layer wins over the one below: the host's, what suits a model, the deployment's, the request's, the managed facts.
fn item_120_the_layers_of_the_environment(tier: Tier) {
    let stage = stage(tier);
    let ask = "echo $NO_COLOR $TERM $PAGER $GIT_PAGER ${FORCE_COLOR-none}";
    assert_eq!(stdout(&stage.run(ask)), "1 dumb cat cat none\n");
    let mut request = ShellRequest::new(ask);
    request.env.insert("TERM".into(), Some("vt100".into()));
    request.env.insert("NO_COLOR".into(), None);
    request.env.insert("FORCE_COLOR".into(), Some("3".into()));
    assert_eq!(stdout(&stage.run_request(request)), "vt100 cat cat 3\n");
    stage.end();

    let case = Case::new(tier);
    let world = Arc::new(case.runtime.clone());
    let deployed = Stage::of(case, world, |config| {
        config.env.insert("PAGER".into(), Some("more".into()));
        config.env.insert("TERM".into(), Some("ansi".into()));
    });
    let mut request = ShellRequest::new("echo $TERM $PAGER");
    request.env.insert("TERM".into(), Some("vt100".into()));
    assert_eq!(stdout(&deployed.run_request(request)), "vt100 more\n");
    deployed.end();
}
