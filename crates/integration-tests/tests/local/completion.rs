//! When a run is over although somebody still holds its streams: cases O1 and O2.

use std::time::Duration;

use dsh_subprocess::{SignalName, StreamName};

use crate::fixture::{Case, Tier, alive, announced, finished, line_of, on_each_tier, text, within};

/// Runs a script that leaves a background child on its streams, and shows that the run ends without it.
fn background_child_is_named_and_ended(tier: Tier, script: &str) {
    let case = Case::new(tier);
    let mut spec = case.bash(script);
    spec.drain = Duration::from_millis(300);
    let process = case.spawn(spec);
    let outcome = finished(&process);
    assert!(outcome.success(), "{outcome}");
    // The child stays until it is ended, so `done` did not wait for it.
    let [child] = announced(&process, "background")[..] else {
        panic!("one child")
    };
    assert!(alive(child));
    let text = text(&process);
    assert!(text.contains("foreground\n"), "{text:?}");
    let holders = within(process.holders()).expect("the table can be read");
    assert!(
        holders
            .iter()
            .any(|holder| holder.member.pid == Some(child) && holder.stream == StreamName::Stdout),
        "{holders:?}"
    );
    let members = within(process.members()).expect("the tree can be read");
    assert!(
        members.iter().any(|member| member.pid == Some(child)),
        "{members:?}"
    );
    within(process.terminate()).expect("the tree ends");
    case.assert_gone();
    let ended = within(process.ended()).expect("it is known");
    assert!(ended.iter().any(|member| member.pid == Some(child)), "{ended:?}");
}

on_each_tier! {
    o1_a_quiet_background_child_does_not_hold_up_done,
    o1_b_noisy_background_child_does_not_hold_up_done,
    o1_c_nohup_child_does_not_hold_up_done,
    o2_termination_is_bounded_although_a_daemon_holds_the_pipe,
    item_57_done_waits_for_a_member_that_closes_the_stream_in_time,
    o17_output_before_a_termination_is_kept,
}

/// A quiet child keeps the pipe.
fn o1_a_quiet_background_child_does_not_hold_up_done(tier: Tier) {
    background_child_is_named_and_ended(tier, r#""$PROBE" sleep & echo "background $!"; echo foreground"#);
}

/// A child that never stops printing re-arms no timer.
fn o1_b_noisy_background_child_does_not_hold_up_done(tier: Tier) {
    background_child_is_named_and_ended(
        tier,
        r#""$PROBE" chatter & echo "background $!"; echo foreground"#,
    );
}

/// `nohup` changes nothing: the child is still a member.
fn o1_c_nohup_child_does_not_hold_up_done(tier: Tier) {
    background_child_is_named_and_ended(
        tier,
        r#"nohup "$PROBE" sleep 2>&1 </dev/null & echo "background $!"; echo foreground"#,
    );
}

/// What left the session still holds the pipe after the rest was ended; the run is over all the same.
fn o2_termination_is_bounded_although_a_daemon_holds_the_pipe(tier: Tier) {
    for script in [
        r#"setsid "$PROBE" sleep & wait"#,
        r#"setsid --fork "$PROBE" sleep; sleep 300"#,
        r#"(setsid sh -c '"$PROBE" sleep' &); sleep 300"#,
        r#"exec "$PROBE" setsid-escape"#,
    ] {
        let case = Case::new(tier);
        let mut spec = case.bash(script);
        spec.drain = Duration::from_millis(200);
        let process = case.spawn(spec);
        let [daemon] = announced(&process, "ready")[..] else {
            panic!("one daemon")
        };
        let end = within(process.terminate());
        let outcome = finished(&process);
        assert_eq!(
            outcome.signal(),
            Some(&SignalName::from("SIGTERM")),
            "{script}: {outcome}"
        );
        match tier {
            Tier::Cgroup | Tier::Reaper => {
                end.expect("the tree ends");
                case.assert_gone();
            }
            Tier::ProcessGroup => {
                end.expect("what the mechanism holds is gone");
                assert!(alive(daemon), "nobody could end it: {script}");
                let survivors = within(process.survivors()).expect("the table can be read");
                assert!(
                    survivors.iter().any(|member| member.pid == Some(daemon)),
                    "{script}: {survivors:?}"
                );
                let holders = within(process.holders()).expect("the table can be read");
                assert!(
                    holders.iter().any(|holder| holder.member.pid == Some(daemon)),
                    "{script}: {holders:?}"
                );
            }
        }
    }
}

/// The drain is what bounds `done`, and nothing else: with none held, it is not waited for.
fn item_57_done_waits_for_a_member_that_closes_the_stream_in_time(tier: Tier) {
    let case = Case::new(tier);
    // The drain is 300 s: this ends only because the late writer does.
    let (outcome, process) =
        case.run(case.bash(r#"(read -r _ < <("$PROBE" nap 50); echo late) & echo early"#));
    assert!(outcome.success());
    assert_eq!(text(&process), "early\nlate\n");
    assert!(within(process.holders()).expect("it is known").is_empty());
}

/// What was captured before the end is kept, and the end is never taken for a success (O17).
fn o17_output_before_a_termination_is_kept(tier: Tier) {
    for cancel in [false, true] {
        let case = Case::new(tier);
        let spec = case.bash("echo CRITICAL; echo warn >&2; echo ready; sleep 300");
        let token = spec.cancel.clone();
        let process = case.spawn(spec);
        line_of(&process, "ready");
        if cancel {
            token.cancel();
        } else {
            drop(process.terminate());
        }
        let outcome = finished(&process);
        assert_eq!(outcome.signal(), Some(&SignalName::from("SIGTERM")));
        assert_eq!(text(&process), "CRITICAL\nready\n");
        let errors = process.collected_stderr().expect("it is collected");
        assert_eq!(errors.text(), "warn\n");
    }
}
