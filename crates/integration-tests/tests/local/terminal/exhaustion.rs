//! A host that has no descriptors left, and terminals.

use crate::fixture::{Host, Tier, on_each_tier};

on_each_tier! {
    item_25_a_terminal_that_cannot_be_had_is_an_error_of_its_own,
    item_25_terminals_end_without_descriptors,
}

/// However few there are: a session that works, or an error that says what is missing. What a failed one had is back.
fn item_25_a_terminal_that_cannot_be_had_is_an_error_of_its_own(tier: Tier) {
    let mut refused = 0;
    for free in 0..8 {
        let report = Host::new(tier).report(["terminal-starved", &free.to_string(), "/bin/true"]);
        match report.find("starved") {
            Some(kind) => {
                assert_eq!(kind, "ResourceExhausted", "{free} free: {report:?}");
                assert!(report.get("starved-text").contains("descriptor"), "{report:?}");
                refused += 1;
            }
            None => assert_eq!(report.get("starved-outcome"), "exited with code 0", "{free} free"),
        }
        assert_eq!(report.get("after"), "exited with code 0", "{free} free");
        let (before, after): (u32, u32) = (report.number("open-before"), report.number("open-after"));
        assert!(after <= before + 2, "{free} free: {before} became {after}");
    }
    // A terminal has two ends.
    assert!(refused >= 2, "{refused}");
}

/// The grace is 300 s: every member was reached, and obeyed.
fn item_25_terminals_end_without_descriptors(tier: Tier) {
    const JOBS: &str = r#""$0" sleep & "$0" sleep & "$0" sleep | cat & "$0" sleep"#;
    for free in [0, 1, 2, 20] {
        let report = Host::new(tier).report([
            "terminal-hungry",
            &free.to_string(),
            "4",
            "/bin/bash",
            "-c",
            JOBS,
            env!("CARGO_BIN_EXE_probe"),
        ]);
        assert_eq!(report.find("gone"), Some("true"), "{free} free: {report:?}");
        assert_eq!(report.get("left"), "", "{free} free");
    }
}
