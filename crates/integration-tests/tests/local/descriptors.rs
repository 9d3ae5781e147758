//! Descriptors: none leaks into a child, none stays behind a run, and an idle child costs few (case O23).

use crate::fixture::{Case, Host, Tier, finished, on_each_tier, text, within};
use dsh_subprocess::{ErrorOutput, Output, Stdin};

/// The numbers in the probe's list of its descriptors.
fn numbers(list: &str) -> Vec<&str> {
    list.lines()
        .map(|line| line.split(' ').next().unwrap_or_default())
        .collect()
}

on_each_tier! {
    o23_no_descriptor_stays_behind_a_run,
    a_child_gets_none_of_the_hosts_descriptors,
    a_host_without_standard_streams_spawns,
    no_pipe_end_leaks_into_another_child,
    an_idle_child_costs_at_most_three_descriptors,
    the_streams_are_of_the_kinds_asked_for,
}

/// 600 runs and 200 failed spawns leave the host's descriptors as they were.
fn o23_no_descriptor_stays_behind_a_run(tier: Tier) {
    let report = Host::new(tier).report(["descriptors", "600", "200"]);
    assert_eq!(report.get("good"), "600");
    assert_eq!(report.get("bad"), "200");
    let (before, after): (u32, u32) = (report.number("before"), report.number("after"));
    assert!(
        after.abs_diff(before) <= 2,
        "{before} descriptors became {after}: {:?}",
        report.all("open").collect::<Vec<_>>()
    );
}

/// What other code of the host holds without close-on-exec reaches no child.
fn a_child_gets_none_of_the_hosts_descriptors(tier: Tier) {
    for without in [None, Some("--without=close-range")] {
        let mut host = Host::new(tier).peculiar("--leak=100");
        if let Some(without) = without {
            host = host.peculiar(without);
        }
        let report = host.report(["run", env!("CARGO_BIN_EXE_probe"), "fds"]);
        assert_eq!(report.get("outcome"), "exited with code 0");
        assert_eq!(
            numbers(&report.get("stdout").replace("\\n", "\n")),
            ["0", "1", "2"]
        );
    }
}

/// A host whose own descriptors 0 to 2 are closed spawns as any other.
fn a_host_without_standard_streams_spawns(tier: Tier) {
    let report =
        Host::new(tier)
            .peculiar("--close-stdio")
            .report(["run", env!("CARGO_BIN_EXE_probe"), "fds"]);
    assert_eq!(report.get("outcome"), "exited with code 0");
    let list = report.get("stdout").replace("\\n", "\n");
    assert_eq!(numbers(&list), ["0", "1", "2"]);
    assert!(list.contains("1 pipe:") && list.contains("2 pipe:"), "{list}");
    assert_eq!(report.get("gone"), "true");
}

/// Trees that live at the same time hold none of each other's pipes: each one sees its own end of file.
fn no_pipe_end_leaks_into_another_child(tier: Tier) {
    let case = Case::new(tier);
    let raw = |call: &'static str| {
        let mut spec = case.probe([call]);
        spec.stdin = Stdin::Pipe;
        spec.stdout = Output::Pipe;
        spec.stderr = ErrorOutput::Own(Output::Pipe);
        spec
    };
    let mut first = case.spawn(raw("cat"));
    let second = case.spawn(raw("cat"));
    drop(first.stdin());
    // The second child would keep the first one's input open for ever.
    assert!(finished(&first).success());
    within(second.terminate()).expect("the tree ends");
}

/// At most three descriptors of the host stand for a child that is only awaited.
fn an_idle_child_costs_at_most_three_descriptors(tier: Tier) {
    let mut host = Host::new(tier).start(["idle", "100"]);
    let descriptors: u32 = host.wait_for("descriptors").parse().expect("a number");
    // What a runtime keeps at hand (a spare leaf, a pipe) is not per child.
    assert!(
        descriptors <= 3 * 100 + 16,
        "{descriptors} descriptors for 100 children"
    );
    host.wait_for("ready");
    host.go_on();
    host.wait_for("disposed");
    host.end();
}

/// A child's own descriptors are the three streams, of the kinds that the spec says.
fn the_streams_are_of_the_kinds_asked_for(tier: Tier) {
    let case = Case::new(tier);
    let (outcome, process) = case.run(case.probe(["fds"]));
    assert!(outcome.success());
    let list = text(&process);
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 3, "{list}");
    assert_eq!(lines[0], "0 /dev/null");
    assert!(
        lines[1].starts_with("1 pipe:") && lines[2].starts_with("2 pipe:"),
        "{list}"
    );
    assert_ne!(lines[1][2..], lines[2][2..], "two pipes");
}
