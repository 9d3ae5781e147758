//! The signal state of a child: case O28, and item 28.

use dsh_subprocess::SignalName;
use nix::sys::signal::{SigSet, Signal};

use crate::fixture::{Case, Host, Tier, announced, finished, on_each_tier, text, within};

on_each_tier! {
    o28_a_sigpipe_ends_a_writer,
    o28_c_term_reaches_a_child_of_a_thread_that_blocks_it,
    o28_d_no_signal_is_ignored_or_blocked,
    o28_a_host_that_blocks_every_signal_terminates,
    item_28_the_target_leads_its_session,
}

/// The Rust runtime of this very process ignores `SIGPIPE`; a child must not.
fn o28_a_sigpipe_ends_a_writer(tier: Tier) {
    let case = Case::new(tier);
    let (outcome, process) = case.run(case.bash("yes | head -1; echo ${PIPESTATUS[0]}"));
    assert!(outcome.success());
    assert_eq!(text(&process), "y\n141\n");
    assert_eq!(process.collected_stderr().expect("it is collected").text(), "");
}

/// A thread that blocks `SIGTERM` spawns children that do not.
fn o28_c_term_reaches_a_child_of_a_thread_that_blocks_it(tier: Tier) {
    let case = Case::new(tier);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD])
                .thread_block()
                .expect("it can");
            let process = case.spawn(case.probe(["sleep"]));
            announced(&process, "ready");
            // The grace is 300 s: `SIGKILL` is not what ends it.
            within(process.terminate()).expect("the tree ends");
            assert_eq!(finished(&process).signal(), Some(&SignalName::from("SIGTERM")));
        });
    });
    case.assert_gone();
}

/// Hosts that ignore or block signals, and one that does neither.
pub(crate) fn hosts_with_signals_of_their_own(tier: Tier) -> [Host; 5] {
    [
        Host::new(tier),
        Host::new(tier).under([
            "env",
            "--ignore-signal=HUP,INT,QUIT,PIPE,USR1,CHLD,TSTP,TTIN,TTOU,XFSZ",
        ]),
        Host::new(tier).under(["env", "--block-signal"]),
        Host::new(tier).peculiar("--block-signals"),
        Host::new(tier).peculiar("--without=clone3").under([
            "env",
            "--ignore-signal=HUP,INT,QUIT",
            "--block-signal=TERM",
        ]),
    ]
}

/// Whatever the host ignores or blocks, a child starts with nothing ignored and nothing blocked.
fn o28_d_no_signal_is_ignored_or_blocked(tier: Tier) {
    for host in hosts_with_signals_of_their_own(tier) {
        let report = host.report(["run", "/bin/grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"]);
        assert_eq!(
            report.get("stdout"),
            "SigBlk:\\t0000000000000000\\nSigIgn:\\t0000000000000000\\n".replace("\\t", "\t")
        );
    }
}

/// A host that blocks everything ends its trees with `SIGTERM` as any other.
fn o28_a_host_that_blocks_every_signal_terminates(tier: Tier) {
    let report = Host::new(tier).peculiar("--block-signals").report([
        "run",
        "--grace-ms=300000",
        "--until=ready",
        env!("CARGO_BIN_EXE_probe"),
        "sleep",
    ]);
    assert_eq!(report.get("outcome"), "ended by SIGTERM");
    assert_eq!(report.get("gone"), "true");
}

/// The target leads a session and a group of its own.
fn item_28_the_target_leads_its_session(tier: Tier) {
    let case = Case::new(tier);
    let (outcome, process) = case.run(case.probe(["ids"]));
    assert!(outcome.success());
    let text = text(&process);
    let ids: Vec<u32> = text
        .split_whitespace()
        .map(|id| id.parse().expect("an id"))
        .collect();
    let [pid, _, group, session] = ids[..] else {
        panic!("four ids: {text}")
    };
    assert_eq!((group, session), (pid, pid));
}
