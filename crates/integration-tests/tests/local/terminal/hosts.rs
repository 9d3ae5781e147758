//! Terminals of hosts that are special as a process, and of runtimes that are dropped.

use dsh_subprocess::SubprocessRuntime;

use super::session::{Session, Terminals};
use crate::fixture::{Case, Host, Tier, on_each_tier, within};

on_each_tier! {
    a_program_gets_its_terminal_three_times_and_nothing_else,
    a_forked_child_is_refused_and_harms_no_terminal,
    a_host_that_is_refused_newer_calls_has_terminals,
    a_refused_setsid_is_an_error_and_leaves_nothing,
    a_rival_reaper_never_makes_an_exit_code_wrong,
    sessions_end_with_the_last_reference_to_their_runtime,
}

/// Whatever its host holds without close-on-exec, or has closed.
fn a_program_gets_its_terminal_three_times_and_nothing_else(tier: Tier) {
    for peculiarities in [
        &["--leak=100"][..],
        &["--leak=100", "--without=close-range"],
        &["--close-stdio"],
    ] {
        let host = peculiarities
            .iter()
            .fold(Host::new(tier), |host, &peculiar| host.peculiar(peculiar));
        let report = host.report(["terminal", env!("CARGO_BIN_EXE_probe"), "fds"]);
        let list = report.get("output").replace("\r\\n", "\n");
        let held: Vec<(&str, &str)> = list.lines().filter_map(|line| line.split_once(' ')).collect();
        let [("0", terminal), ("1", second), ("2", third)] = held[..] else {
            panic!("{peculiarities:?}: {list}")
        };
        assert!(terminal.starts_with("/dev/pts/"), "{list}");
        assert_eq!((second, third), (terminal, terminal));
    }
}

/// The parent's session goes on as if nothing had been tried.
fn a_forked_child_is_refused_and_harms_no_terminal(tier: Tier) {
    let report = Host::new(tier).report(["terminal-forked"]);
    for call in ["write", "resize", "signal", "inspect", "spawn"] {
        let refused = report.get(&format!("child-{call}"));
        assert_eq!(refused, "ForkedProcess", "{call}: {report:?}");
    }
    assert_eq!(report.get("child-tried"), "everything");
    assert_eq!(report.get("child-status"), "0");
    assert_eq!(
        report.get("output").replace("\r\\n", "\n"),
        "ready\nread after 24 80\n"
    );
    assert_eq!(report.get("outcome"), "ended by SIGTERM");
    // Of one that was not awaited yet the child has dropped its copy.
    assert_eq!(report.get("other-outcome"), "exited with code 0");
}

/// A `/proc` that shows another pid namespace names strangers: nothing is read of it. There is no reaper without one.
#[test]
fn on_process_group_item_102_with_another_namespaces_process_table_it_cannot_be_told_who_waits() {
    let script = "echo ready; read x";
    let report = Host::new(Tier::ProcessGroup)
        .under(["unshare", "--map-root-user", "--pid", "--fork", "--kill-child"])
        .report([
            "terminal",
            "--once=ready",
            "--inspect",
            "--type=x\n",
            "/bin/sh",
            "-c",
            script,
        ]);
    let input = report.get("input");
    assert!(input.starts_with("not known: "), "{report:?}");
    assert!(input.contains("another pid namespace"), "{report:?}");
    assert_eq!(report.get("gone"), "true");
}

/// A seccomp profile that knows newer system calls not: the older ones do.
fn a_host_that_is_refused_newer_calls_has_terminals(tier: Tier) {
    for refused in [
        "--enosys=clone3",
        "--enosys=close_range",
        "--enosys=pidfd_open-flags",
    ] {
        let script = "[ -t 0 ] && echo by name >/dev/tty; exit 7";
        let report = Host::new(tier)
            .peculiar(refused)
            .report(["terminal", "/bin/sh", "-c", script]);
        assert_eq!(report.get("output"), "by name\r\\n", "{refused}");
        assert_eq!(report.get("outcome"), "exited with code 7", "{refused}");
        assert_eq!(report.get("gone"), "true", "{refused}");
    }
}

/// There is no terminal without a session of its own.
fn a_refused_setsid_is_an_error_and_leaves_nothing(tier: Tier) {
    let mut host = Host::new(tier)
        .peculiar("--eperm=setsid")
        .start(["terminal", "/bin/sleep", "300"]);
    assert_eq!(host.wait_for("refused"), "PermissionDenied");
    host.end();
}

fn a_rival_reaper_never_makes_an_exit_code_wrong(tier: Tier) {
    for without in ["--without=memfd-exec", "--without=pidfd-get-info"] {
        let report = Host::new(tier)
            .peculiar("--rival-reaper")
            .peculiar(without)
            .report(["terminal", "/bin/sh", "-c", "echo printed; exit 7"]);
        assert_eq!(report.get("output"), "printed\r\\n");
        let outcome = report.get("outcome");
        let unknown = "ended, with a status that is not known";
        assert!(
            outcome == "exited with code 7" || (without.ends_with("info") && outcome == unknown),
            "{without}: {outcome}"
        );
    }
}

/// The handle is still there, and says how it ended.
fn sessions_end_with_the_last_reference_to_their_runtime(tier: Tier) {
    let case = Case::new(tier);
    let own = tier.builder().build().expect("the tier works here");
    let spec = case.terminal_spec(case.probe(["tree", "3"]));
    let mut terminal = within(own.spawn_terminal(spec)).expect("it starts");
    let output = terminal.output().expect("it was not taken yet");
    let mut session = Session::new(terminal, output);
    session.line_of("ready");
    drop(own);
    session.rest();
    assert!(!session.outcome().success());
    session.gone();
    case.assert_gone();
}
