//! The end of a whole session: cases O3 and O7, and items 73 and 97, as for any tree.

use std::fs;
use std::time::Duration;

use dsh_subprocess::{ErrorKind, SubprocessRuntime};

use super::session::{Session, Terminals, plain, signal};
use crate::fixture::{Case, Tier, alive, eventually, on_each_tier, row, within};

on_each_tier! {
    o3_pipeline_members_end_with_their_shell,
    o7_a_member_that_cleans_up_is_not_cut_off_by_the_end_of_its_leader,
    item_73_jobs_with_groups_of_their_own_end,
    item_73_a_daemon_is_ended_or_named,
    item_73_a_member_that_becomes_a_daemon_when_asked_is_ended_or_named,
    item_94_a_stopped_member_ends_on_term,
    item_94_a_stopped_program_ends_on_term,
    item_94_a_session_that_forks_all_the_time_ends,
    item_97_a_daemon_is_ended_or_named_after_the_programs_exit,
    item_97_jobs_that_mind_no_hang_up_end_with_the_program,
    a_script_that_starts_one_command_after_another_ends_without_the_grace,
    item_84_a_cancelled_allocation_has_nothing_running_when_it_says_so,
}

fn o3_pipeline_members_end_with_their_shell(tier: Tier) {
    let case = Case::new(tier);
    let mut session = case.open(case.terminal_spec(case.bash(r#""$PROBE" sleep | cat | cat"#)));
    session.line_of("ready");
    assert!(case.living().len() >= 4);
    session.end();
    case.assert_gone();
    assert_ne!(signal(&session.outcome()), Some("SIGKILL"));
}

/// The kernel sends `SIGHUP` to the foreground group when the leader of a session ends (`setsid(2)`): by then, whoever
/// cleans up must be through with it. The handler starts another command, which the signal would end, too.
fn o7_a_member_that_cleans_up_is_not_cut_off_by_the_end_of_its_leader(tier: Tier) {
    const INNER: &str = r"
        trap 'echo cleaning; sleep 0.2; rm -f lock; echo cleaned; exit 143' TERM
        : >lock
        echo ready
        while :; do sleep 0.05; done";
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("inner.sh"), INNER).expect("the directory is ours");
    let mut spec = case.terminal_spec(case.spec(["/bin/sh", "-c", "sh inner.sh; :"]));
    spec.cwd = directory.path().into();
    let mut session = case.ready(spec);
    assert!(directory.path().join("lock").exists());
    // The grace is 300 s: nothing was killed.
    session.end();
    assert!(!directory.path().join("lock").exists());
    case.assert_gone();
    assert!(plain(&session.rest()).ends_with("cleaning\ncleaned\n"));
}

/// A job of `set -m` is in a process group of its own, in the same session.
fn item_73_jobs_with_groups_of_their_own_end(tier: Tier) {
    let case = Case::new(tier);
    let mut session = case.open(case.terminal_spec(case.bash(r#"set -m; "$PROBE" sleep & wait"#)));
    let [job] = session.announced("ready")[..] else {
        panic!("one job")
    };
    let there = row(job).expect("the job runs");
    assert_eq!((there.group, Some(there.session)), (job, session.pid()));
    session.end();
    case.assert_gone();
}

/// A daemon in a session of its own.
fn item_73_a_daemon_is_ended_or_named(tier: Tier) {
    let case = Case::new(tier);
    let mut session = case.open(case.terminal_spec(case.probe(["setsid-escape", "--close"])));
    let [daemon] = session.announced("ready")[..] else {
        panic!("one daemon")
    };
    session.end();
    assert_ended_or_named(tier, &case, &session, daemon);
}

/// The token and the program's start race, so it is tried until both have won.
fn item_84_a_cancelled_allocation_has_nothing_running_when_it_says_so(tier: Tier) {
    let case = Case::new(tier);
    for _ in 0..50 {
        let spec = case.terminal_spec(case.probe(["ignore-term"]));
        let token = spec.cancel.clone();
        let allocation = case.runtime.spawn_terminal(spec);
        token.cancel();
        match within(allocation) {
            Ok(terminal) => {
                within(terminal.tree().started()).expect("it was faster");
                case.runtime.kill_all();
                within(terminal.terminate()).expect("it is killed");
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
        }
        case.assert_gone();
    }
}

/// A session of its own is what it makes of being asked. Where nothing tells of that, it is seen when its grace is over.
fn item_73_a_member_that_becomes_a_daemon_when_asked_is_ended_or_named(tier: Tier) {
    let case = Case::new(tier);
    let script = r#"(trap 'exec setsid "$PROBE" escaped --close' TERM; echo ready; while :; do sleep 0.05; done) &
        read -r line"#;
    let mut spec = case.terminal_spec(case.bash(script));
    spec.grace = Duration::from_millis(500);
    let session = case.ready(spec);
    session.end();
    if tier.owns_all() {
        case.assert_gone();
    } else {
        let living = case.living();
        let survivors = within(session.tree().survivors()).expect("the table can be read");
        assert_eq!(living.len(), 1, "nobody could end it");
        assert_eq!(
            survivors.first().and_then(|member| member.pid),
            Some(living[0]),
            "{survivors:?}"
        );
        case.end_strays();
    }
}

/// The same when nobody asks for the end: the program exits.
fn item_97_a_daemon_is_ended_or_named_after_the_programs_exit(tier: Tier) {
    let case = Case::new(tier);
    let script = r#"(setsid "$PROBE" escaped --close &); read -r line; exit 5"#;
    let mut session = case.open(case.terminal_spec(case.bash(script)));
    let [daemon] = session.announced("ready")[..] else {
        panic!("one daemon")
    };
    session.types("go\n");
    assert_eq!(session.outcome().code(), Some(5));
    session.gone();
    assert_ended_or_named(tier, &case, &session, daemon);
}

/// Ended where the mechanism holds it, named where it does not.
#[track_caller]
fn assert_ended_or_named(tier: Tier, case: &Case, session: &Session, daemon: u32) {
    let survivors = within(session.tree().survivors()).expect("the table can be read");
    if tier.owns_all() {
        case.assert_gone();
        assert!(survivors.is_empty(), "{survivors:?}");
    } else {
        assert!(alive(daemon), "nobody could end it");
        assert!(
            survivors.iter().any(|member| member.pid == Some(daemon)),
            "{daemon}: {survivors:?}"
        );
    }
}

fn item_94_a_stopped_member_ends_on_term(tier: Tier) {
    let case = Case::new(tier);
    let mut session = case.open(case.terminal_spec(case.probe(["stop-member"])));
    let [member] = session.announced("stopped")[..] else {
        panic!("one member")
    };
    assert_eq!(row(member).map(|row| row.state), Some('T'));
    session.end();
    case.assert_gone();
    assert_eq!(signal(&session.outcome()), Some("SIGTERM"));
}

fn item_94_a_stopped_program_ends_on_term(tier: Tier) {
    let case = Case::new(tier);
    let session = case.open(case.terminal_spec(case.probe(["stop-self"])));
    let program = session.pid().expect("it is known");
    eventually("the program has stopped", || {
        row(program).is_some_and(|row| row.state == 'T')
    });
    session.end();
    case.assert_gone();
    assert_eq!(signal(&session.outcome()), Some("SIGTERM"));
}

fn item_94_a_session_that_forks_all_the_time_ends(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.terminal_spec(case.probe(["refork"]));
    spec.grace = Duration::from_millis(100);
    let session = case.ready(spec);
    session.end();
    case.assert_gone();
}

/// A program's exit ends its session: what `nohup` and `disown` save from a hang-up is not saved from that.
fn item_97_jobs_that_mind_no_hang_up_end_with_the_program(tier: Tier) {
    for script in [
        r#"nohup "$PROBE" sleep >log 2>&1 &"#,
        r#"set -m; "$PROBE" sleep >log 2>&1 & disown -a"#,
        r#"trap "" HUP; ("$PROBE" sleep >log 2>&1 &)"#,
    ] {
        let case = Case::new(tier);
        let directory = tempfile::tempdir().expect("a temporary directory");
        // The shell stays until the job is there, and acts on signals.
        let script = format!("{script}\nuntil grep -q ready log; do sleep 0.02; done; cat log; exit 4");
        let mut spec = case.terminal_spec(case.bash(&script));
        spec.cwd = directory.path().into();
        let mut session = case.open(spec);
        let [job] = session.announced("ready")[..] else {
            panic!("one job")
        };
        assert_eq!(session.outcome().code(), Some(4), "{script}");
        // The grace is 300 s: the job was asked, and obeyed.
        session.gone();
        assert!(!alive(job));
        case.assert_gone();
        let ended = within(session.tree().ended()).expect("it is known");
        assert!(ended.iter().any(|member| member.pid == Some(job)), "{ended:?}");
    }
}

/// Its commands end one by one, and it is asked itself before the grace, which is 300 s, is over.
fn a_script_that_starts_one_command_after_another_ends_without_the_grace(tier: Tier) {
    let case = Case::new(tier);
    for shell in ["/bin/sh", "/bin/bash"] {
        let script = "echo ready; while :; do sleep 1; done";
        let session = case.ready(case.terminal_spec(case.spec([shell, "-c", script])));
        session.end();
        case.assert_gone();
        assert_eq!(signal(&session.outcome()), Some("SIGTERM"), "{shell}");
    }
}
