//! Contract I: the end of a session.

use std::time::Duration;

use dsh_subprocess::{ErrorKind, Outcome, TerminalSignal, TerminalSize};

use super::World;
use super::child::{by_now, finish, gone};
use super::session::{open, ready, ready_with};
use super::watchdog::within;

/// A grace that is over soon, for sessions that are known to outlive `SIGTERM`.
const SHORT: Duration = Duration::from_millis(100);

/// A termination lets the program clean up, whatever it prints while it does, and whoever reads that.
pub async fn item_93_a_termination_gives_time_to_clean_up(world: &World) {
    let Some(session) = ready(world, &["trap-term", "cleaned", "50"]).await else {
        return;
    };
    session.end().await;
    let (outcome, printed) = session.finish().await;
    assert_eq!(outcome, Outcome::Exited { code: 0 });
    assert!(
        String::from_utf8_lossy(&printed).contains("cleaned"),
        "{:?}",
        String::from_utf8_lossy(&printed)
    );
}

/// What outlives the grace is killed.
pub async fn item_93_kill_comes_after_the_grace(world: &World) {
    let mut spec = world.terminal_spec(&["ignore-term"]);
    spec.grace = SHORT;
    let Some(session) = ready_with(world, spec).await else {
        return;
    };
    session.end().await;
    let killed = Outcome::Signaled {
        signal: "SIGKILL".into(),
        core_dumped: false,
    };
    assert_eq!(session.outcome().await, killed);
}

/// A second termination joins the first.
pub async fn item_93_a_second_termination_joins_the_first(world: &World) {
    let Some(session) = ready(world, &["trap-term", "once", "50"]).await else {
        return;
    };
    let (first, second) = (session.terminate(), session.terminate());
    within("the second termination", second)
        .await
        .expect("the session can be ended");
    within("the first termination", first)
        .await
        .expect("the session can be ended");
    let (outcome, printed) = session.finish().await;
    assert_eq!(outcome, Outcome::Exited { code: 0 });
    let printed = String::from_utf8_lossy(&printed);
    assert_eq!(printed.matches("once").count(), 1, "{printed:?}");
}

/// A termination of a session that is gone does nothing.
pub async fn item_93_a_session_that_is_gone_is_left_alone(world: &World) {
    let Some(session) = open(world, world.terminal_spec(&["exit", "6"])).await else {
        return;
    };
    assert_eq!(session.outcome().await.code(), Some(6));
    gone(session.tree()).await;
    session.end().await;
    assert_eq!(session.outcome().await.code(), Some(6));
}

/// Every member of the session is ended, in whichever group it is.
pub async fn item_94_every_member_of_the_session_is_ended(world: &World) {
    let Some(session) = ready(world, &["tree", "3", "--depth", "3"]).await else {
        return;
    };
    let members = within("members", session.tree().members())
        .await
        .expect("an answer");
    let program = usize::from(world.guarantees.process_ids);
    assert_eq!(members.len(), 9 + program, "{members:?}");
    session.end().await;
    let members = within("members", session.tree().members())
        .await
        .expect("an answer");
    assert!(members.is_empty(), "{members:?}");

    let Some(session) = ready(world, &["new-group"]).await else {
        return;
    };
    session.end().await;
    let members = within("members", session.tree().members())
        .await
        .expect("an answer");
    assert!(members.is_empty(), "{members:?}");
}

/// A daemon that left for a session of its own is ended where the world promises that, and named where it does not.
pub async fn item_96_a_daemon_is_ended_or_named(world: &World) {
    let Some(mut session) = open(world, world.terminal_spec(&["setsid-escape"])).await else {
        return;
    };
    let line = session.line().await;
    session.end().await;
    let named = within("survivors", session.tree().survivors())
        .await
        .expect("an answer");
    if world.guarantees.ends_session_leavers {
        return assert!(named.is_empty(), "{named:?}");
    }
    // It is nobody's now but the check's: it is ended before anything else can fail.
    let daemon: u32 = line
        .trim_start_matches("ready ")
        .parse()
        .expect("the daemon tells its id");
    let kill = world
        .shell_spec(&format!("kill -s KILL {daemon}"))
        .expect("a world with daemons has a shell");
    let killed = finish(&session.runtime().spawn(kill).expect("a valid spec")).await;
    assert!(killed.outcome.success(), "{}", killed.outcome);
    assert!(
        named.iter().any(|member| member.pid == Some(daemon)),
        "{daemon} escaped, and only these are named: {named:?}"
    );
}

/// The exit of the program is the end of its session: what it leaves there is ended without being asked.
pub async fn item_97_the_exit_ends_the_session(world: &World) {
    for call in [&["hold-stdout"][..], &["hold-stdout", "ignore-term"]] {
        let mut spec = world.terminal_spec(call);
        spec.grace = SHORT;
        let Some(session) = open(world, spec).await else {
            return;
        };
        assert_eq!(session.outcome().await.code(), Some(0));
        gone(session.tree()).await;
        let members = within("members", session.tree().members())
            .await
            .expect("an answer");
        assert!(members.is_empty(), "{members:?}");
    }
}

/// A termination ends the calls that are in flight, and refuses later ones.
pub async fn item_98_no_call_outlives_a_termination(world: &World) {
    let Some(session) = ready(world, &["terminal", "raw", "sleep"]).await else {
        return;
    };
    let mut write = session.write(vec![b'x'; 200_000]);
    let begun = by_now(&mut write);
    session.end().await;
    // Where time is no matter, the write was given up before.
    let given_up = begun.is_some();
    let error = begun
        .or_else(|| by_now(write))
        .expect("a write outlived the termination")
        .expect_err("it was taken although nobody reads");
    let expected = if given_up {
        ErrorKind::InputNotRead
    } else {
        ErrorKind::Exited
    };
    assert_eq!(error.kind(), expected, "{error}");
    assert!(
        error.written().is_some_and(|written| written < 200_000),
        "{:?}",
        error.written()
    );

    let size = TerminalSize { rows: 5, cols: 6 };
    let refused = [
        within("a write", session.write("late")).await.err(),
        within("a resize", session.resize(size)).await.err(),
        within("a look", session.inspect_foreground()).await.err(),
        within("a signal", session.signal_foreground(TerminalSignal::HangUp))
            .await
            .err(),
    ];
    for error in refused {
        assert_eq!(error.expect("the session is gone").kind(), ErrorKind::Exited);
    }
}
