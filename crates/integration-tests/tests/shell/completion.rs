//! A command is over when its shell is: what it left behind is ended or kept, and never awaited nor forgotten (O1, O2).

use std::time::Duration;

use dsh_jobs::JobStatus;
use dsh_shell::{Cause, Config, Fate, LeftBehindPolicy, RunResult, StreamName, hand_over, render, view};

use crate::fixture::{Tier, alive, on_each_tier};
use crate::stage::{Stage, assert_exit, stdout, survivors};

on_each_tier! {
    o01_a_a_quiet_holder_of_the_output_is_ended_and_mentioned,
    o01_b_a_chatty_holder_of_the_output_cannot_keep_the_call_open,
    o01_c_what_nohup_protects_is_ended_too,
    o01_what_is_kept_becomes_a_job_whose_output_goes_on,
    o01_a_registry_that_refuses_has_what_was_kept_ended,
    o01_an_end_that_comes_by_itself_while_it_is_awaited_is_no_news,
    o01_what_is_kept_is_ended_by_the_runtimes_disposal,
    o02_a_session_of_its_own_does_not_hold_up_a_timeout,
    o02_a_session_of_its_own_does_not_hold_up_the_end_of_a_command,
}

const CHATTY: &str = "(while :; do echo tick; sleep 0.05; done) & echo fg-done";

/// Whoever was left behind is named, is gone, and a model is told.
#[track_caller]
fn assert_ended(stage: &Stage, result: &RunResult, named: &str) {
    let left_behind = result.left_behind.as_ref().expect("something was left behind");
    assert!(matches!(left_behind.fate, Fate::Ended), "{left_behind:?}");
    let commands: Vec<&str> = left_behind
        .members
        .iter()
        .map(|member| &member.command[..])
        .collect();
    assert!(
        commands.iter().any(|command| command.contains(named)),
        "{commands:?}"
    );
    stage.case.assert_gone();
    let shown = render::render(&view(result), &render::Style::default()).text;
    assert!(shown.contains("[ended what was left running: "), "{shown}");
    assert!(shown.ends_with("[exit code: 0]"), "{shown}");
}

fn o01_a_a_quiet_holder_of_the_output_is_ended_and_mentioned(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.run("sleep 300 & echo done");
    assert_exit(&result, 0);
    assert_eq!(stdout(&result), "done\n");
    assert_ended(&stage, &result, "sleep 300");
    stage.end();
}

/// It writes for ever, so that no time without output comes.
fn o01_b_a_chatty_holder_of_the_output_cannot_keep_the_call_open(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.run(CHATTY);
    assert_exit(&result, 0);
    assert!(stdout(&result).contains("fg-done\n"));
    assert!(result.stdout.snapshot.sealed, "nothing is written any more");
    assert_ended(&stage, &result, "bash");
    stage.end();
}

fn o01_c_what_nohup_protects_is_ended_too(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.run("nohup sleep 300 & echo done");
    assert_exit(&result, 0);
    assert_eq!(stdout(&result), "done\n");
    assert_ended(&stage, &result, "sleep 300");
    stage.end();
}

fn keep(config: &mut Config) {
    config.left_behind = LeftBehindPolicy::Keep;
    config.quiet = Duration::from_millis(100);
    config.drain = Duration::from_millis(200);
}

fn o01_what_is_kept_becomes_a_job_whose_output_goes_on(tier: Tier) {
    let stage = Stage::with(tier, keep);
    let session = stage.jobs.open("owner").expect("it is the first");
    let mut result = stage.run(CHATTY);
    assert_exit(&result, 0);
    assert!(stdout(&result).contains("fg-done\n"));
    stage.within(hand_over(&session, "the chatty one", &mut result));
    let left_behind = result.left_behind.as_ref().expect("something goes on");
    let Fate::Job(id) = &left_behind.fate else {
        panic!("{left_behind:?}")
    };
    let shown = render::render(&view(&result), &render::Style::default()).text;
    assert!(shown.contains(&format!("[left running as job {id}: ")), "{shown}");

    // What it prints after the command was over is read by the job's name.
    let seen = result.stdout.snapshot.total;
    let reader = session.reader(id, StreamName::Stdout).expect("it has one");
    stage.within(reader.changed(seen));
    let later = session
        .read_from(id, &[(StreamName::Stdout, seen)])
        .expect("it is there");
    assert_eq!(later.streams[0].gap, 0);
    assert!(
        "tick\n".repeat(3).contains(&later.streams[0].text[..5]),
        "{later:?}"
    );
    let first = session.read(id).expect("it is there");
    // The result has what came before, so nothing is read twice and nothing is missing between the two.
    assert_eq!((first.streams[0].offset, first.streams[0].gap), (seen, 0));
    assert_eq!(first.info.status, JobStatus::Running);

    session.kill(id).expect("it can be ended");
    let ended = stage
        .within(session.wait(
            id,
            Duration::from_secs(50),
            &tokio_util::sync::CancellationToken::new(),
        ))
        .expect("it ends");
    assert_eq!(ended.status, JobStatus::Killed, "{ended:?}");
    assert_eq!(
        ended.detail.as_deref(),
        Some("its shell had ended before, exit code: 0")
    );
    stage.case.assert_gone();
    stage.within(session.end()).expect("nothing is left to end");
    stage.end();
}

fn o01_a_registry_that_refuses_has_what_was_kept_ended(tier: Tier) {
    let stage = Stage::with(tier, keep);
    let session = stage.jobs.open("owner").expect("it is the first");
    stage.within(session.end()).expect("nothing runs");
    let mut result = stage.run("sleep 300 & echo done");
    stage.within(hand_over(&session, "refused", &mut result));
    assert_ended(&stage, &result, "sleep 300");
    let left_behind = result.left_behind.as_ref().expect("something was left");
    assert_eq!(left_behind.refused.as_deref(), Some("its owner has gone"));
    let shown = render::render(&view(&result), &render::Style::default()).text;
    assert!(
        shown.contains("; no job was made of it: its owner has gone]"),
        "{shown}"
    );
    stage.end();
}

/// A descendant that needs a moment longer than the shell is waited for.
fn o01_an_end_that_comes_by_itself_while_it_is_awaited_is_no_news(tier: Tier) {
    let stage = Stage::with(tier, |config| {
        config.quiet = Duration::from_secs(50);
        config.drain = Duration::from_secs(50);
    });
    let result = stage.run("(sleep 0.2; echo late) & echo early");
    assert_exit(&result, 0);
    assert_eq!(stdout(&result), "early\nlate\n");
    assert!(result.left_behind.is_none(), "{result:?}");
    stage.end();
}

fn o01_what_is_kept_is_ended_by_the_runtimes_disposal(tier: Tier) {
    let stage = Stage::with(tier, keep);
    let result = stage.run("sleep 300 & echo $!");
    let pid: u32 = stdout(&result).trim().parse().expect("a pid");
    assert!(alive(pid));
    let Some(Fate::Continues(execution)) = result.left_behind.map(|left_behind| left_behind.fate) else {
        panic!("it goes on")
    };
    stage
        .within(dsh_subprocess::SubprocessRuntime::dispose(&stage.case.runtime))
        .expect("it can be ended");
    stage.within(execution.done());
    assert!(!alive(pid));
    stage.end();
}

/// The ways out of a process group, and what follows while the shell still runs.
const ESCAPES: [&str; 3] = [
    "setsid sleep 300 &",
    "setsid -f sleep 300;",
    "(setsid sh -c 'sleep 300; :' &);",
];

/// Those who got away are gone too, or named where the mechanism cannot reach them.
#[track_caller]
fn assert_ended_or_named(stage: &Stage, tier: Tier, result: &RunResult) {
    if tier.owns_all() {
        assert!(survivors(result).is_empty(), "{result:?}");
        stage.case.assert_gone();
    } else {
        let named = survivors(result);
        assert!(
            named.iter().any(|command| command.contains("sleep 300")),
            "{result:?}"
        );
        let shown = render::render(&view(result), &render::Style::default()).text;
        assert!(shown.contains("[could not end: "), "{shown}");
    }
}

fn o02_a_session_of_its_own_does_not_hold_up_a_timeout(tier: Tier) {
    for escape in ESCAPES {
        let stage = Stage::new(tier);
        let command = format!("{escape} echo begun; sleep 300");
        let result = stage.run_for(&command, Duration::from_secs(2));
        assert_eq!(result.cause, Cause::TimedOut, "{escape}");
        assert_eq!(stdout(&result), "begun\n", "{escape}");
        assert_ended_or_named(&stage, tier, &result);
        stage.end_with_strays();
    }
}

fn o02_a_session_of_its_own_does_not_hold_up_the_end_of_a_command(tier: Tier) {
    for escape in ESCAPES {
        let stage = Stage::new(tier);
        // The shell stays until the other session is there: a shell's own child looks as if it were in the group.
        let result = stage.run(&format!("{escape} sleep 0.3; echo done"));
        assert_exit(&result, 0);
        assert_eq!(stdout(&result), "done\n", "{escape}");
        assert_ended_or_named(&stage, tier, &result);
        stage.end_with_strays();
    }
}
