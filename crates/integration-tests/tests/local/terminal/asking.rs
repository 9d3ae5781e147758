//! Who is asked to end, and how often: item 93's order, in which the program comes last.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::session::{Terminals, signal};
use crate::fixture::{Case, Tier, eventually, on_each_tier, row};

on_each_tier! {
    item_93_every_member_is_asked_once,
    item_93_a_crowd_of_members_ends_without_the_grace,
    item_93_a_member_that_is_born_while_others_clean_up_is_ended,
}

/// The lines `NAME WORD PID` of a crowd's log with this word, as name and pid, in the order of the names.
fn logged(log: &Path, word: &str) -> Vec<(String, u32)> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let mut found: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let [name, said, pid] = line.split(' ').collect::<Vec<_>>()[..] else {
                return None;
            };
            (said == word).then(|| Some((name.to_owned(), pid.parse().ok()?)))?
        })
        .collect();
    found.sort_unstable();
    found
}

/// None of them obeys, so that each is there for all that is sent.
fn item_93_every_member_is_asked_once(tier: Tier) {
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let script = r#"trap "" HUP; exec "$PROBE" crowd log"#;
    let mut spec = case.terminal_spec(case.bash(script));
    spec.cwd = directory.path().into();
    spec.grace = Duration::from_secs(1);
    // Whoever left the session holds the terminal open, where nobody can end him.
    spec.drain = Duration::ZERO;
    let session = case.open(spec);
    eventually("the crowd is complete", || {
        let ready = logged(&log, "ready");
        let stopped = ready.iter().find(|(name, _)| name == "stopped");
        ready.len() == 5
            && stopped
                .and_then(|(_, pid)| row(*pid))
                .is_some_and(|row| row.state == 'T')
    });
    session.end();
    assert_eq!(signal(&session.outcome()), Some("SIGKILL"));
    let asked: Vec<String> = logged(&log, "TERM").into_iter().map(|(name, _)| name).collect();
    if tier.owns_all() {
        case.assert_gone();
        assert_eq!(asked, ["child", "daemon", "session", "stopped", "target"]);
    } else {
        assert_eq!(asked, ["child", "stopped", "target"]);
    }
}

/// More of them than are watched at a time. The grace is 300 s.
fn item_93_a_crowd_of_members_ends_without_the_grace(tier: Tier) {
    const COUNT: usize = 150;
    let case = Case::new(tier);
    let script = format!("for i in $(seq {COUNT}); do \"$PROBE\" trap-term cleaned 0 & done; wait");
    let mut session = case.open(case.terminal_spec(case.bash(&script)));
    for _ in 0..COUNT {
        session.line_of("ready");
    }
    session.end();
    case.assert_gone();
    let printed = String::from_utf8_lossy(&session.rest()).into_owned();
    assert_eq!(printed.matches("cleaned").count(), COUNT);
}

/// It was not there when the others were asked. The grace is 300 s.
fn item_93_a_member_that_is_born_while_others_clean_up_is_ended(tier: Tier) {
    let case = Case::new(tier);
    let member = r#"trap '"$PROBE" sleep & exit 0' TERM; echo ready; while :; do sleep 0.05; done"#;
    let mut spec = case.terminal_spec(case.spec(["/bin/bash", "-c", r#"bash -c "$MEMBER"; sleep 300"#]));
    spec.env.insert("MEMBER".into(), Some(member.into()));
    let session = case.ready(spec);
    session.end();
    case.assert_gone();
    assert_ne!(signal(&session.outcome()), Some("SIGKILL"));
}
