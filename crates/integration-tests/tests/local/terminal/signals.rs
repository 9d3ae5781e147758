//! The signal state of a program on a terminal, whatever its host's is: case O28.

use super::session::{Terminals, plain, signal};
use crate::fixture::{Case, Host, Tier, on_each_tier};
use crate::signals::hosts_with_signals_of_their_own;

on_each_tier! {
    o28_a_sigpipe_ends_a_writer,
    o28_b_an_interrupt_ends_a_child_of_a_host_that_ignores_it,
    o28_c_term_reaches_a_child_of_a_host_that_blocks_it,
    o28_d_no_signal_is_ignored_or_blocked,
    every_key_that_makes_a_signal_makes_it,
}

/// The Rust runtime of this very process ignores `SIGPIPE`; a child must not.
fn o28_a_sigpipe_ends_a_writer(tier: Tier) {
    let case = Case::new(tier);
    let script = "yes | head -1; echo ${PIPESTATUS[0]}";
    let (outcome, printed) = case.open(case.terminal_spec(case.bash(script))).finish();
    assert!(outcome.success());
    assert_eq!(plain(&printed), "y\n141\n");
}

/// A shell gives its background commands an ignored `SIGINT`, which outlives every exec.
fn o28_b_an_interrupt_ends_a_child_of_a_host_that_ignores_it(tier: Tier) {
    let hosts = [
        Host::new(tier).under(["bash", "-c", "\"$@\" & wait $!", "bash"]),
        Host::new(tier).under(["nohup"]),
        Host::new(tier).under(["env", "--ignore-signal=INT,QUIT,HUP"]),
        Host::new(tier).under(["env", "--block-signal=INT,QUIT,HUP"]),
    ];
    for host in hosts {
        let report = host.report([
            "terminal",
            "--once=ready",
            "--type=\u{3}",
            env!("CARGO_BIN_EXE_probe"),
            "sleep",
        ]);
        assert_eq!(report.get("outcome"), "ended by SIGINT", "{report:?}");
    }
}

fn o28_c_term_reaches_a_child_of_a_host_that_blocks_it(tier: Tier) {
    let report = Host::new(tier).peculiar("--block-signals").report([
        "terminal",
        "--once=ready",
        "--terminate",
        env!("CARGO_BIN_EXE_probe"),
        "sleep",
    ]);
    // The grace is 300 s.
    assert_eq!(report.get("outcome"), "ended by SIGTERM", "{report:?}");
    assert_eq!(report.get("gone"), "true");
}

fn o28_d_no_signal_is_ignored_or_blocked(tier: Tier) {
    for host in hosts_with_signals_of_their_own(tier) {
        let report = host.report([
            "terminal",
            "/bin/grep",
            "-E",
            "^Sig(Blk|Ign):",
            "/proc/self/status",
        ]);
        assert_eq!(
            report.get("output"),
            "SigBlk:\t0000000000000000\r\\nSigIgn:\t0000000000000000\r\\n"
        );
    }
}

/// As a login would have set them (`stty -a`): `^C`, `^\` and `^Z`.
fn every_key_that_makes_a_signal_makes_it(tier: Tier) {
    for (key, ended) in [("\u{3}", "SIGINT"), ("\u{1c}", "SIGQUIT")] {
        let case = Case::new(tier);
        let script = r#"ulimit -c 0; exec "$PROBE" sleep"#;
        let session = case.ready(case.terminal_spec(case.bash(script)));
        session.types(key);
        assert_eq!(signal(&session.outcome()), Some(ended));
        session.gone();
        case.assert_gone();
    }
    let case = Case::new(tier);
    let mut session = case.ready(case.terminal_spec(case.probe(["terminal", "signals"])));
    session.types("\u{1a}");
    // Behind the echo of the key.
    session.until("got SIGTSTP");
}
