//! The environment of a program on a terminal: case O25, and item 184's `TERM`.

use std::collections::BTreeMap;

use crate::environment::{NEEDED, SECRETS, host};
use crate::fixture::{Tier, on_each_tier};

on_each_tier! {
    o25_credentials_stay_and_the_rest_arrives,
    item_184_the_terminal_is_described_by_its_own_facts,
    item_85_explicit_entries_win_over_the_terminals_own,
}

/// What a program on a terminal of a host with credentials has in its environment, as the kernel shows it. The host has
/// a terminal's description in its own.
fn child(tier: Tier, explicit: &[&str]) -> (BTreeMap<String, String>, String) {
    let host = host(tier)
        .variable("TERM", "of-the-host")
        .variable("LINES", "11")
        .variable("COLUMNS", "22");
    let mut scenario = vec!["terminal", "--terminal-type=of-the-terminal"];
    scenario.extend(explicit);
    scenario.extend(["/bin/cat", "/proc/self/environ", "/proc/self/cmdline"]);
    let report = host.report(scenario);
    assert_eq!(report.get("outcome"), "exited with code 0");
    let raw = report.get("output").to_owned();
    let variables = raw
        .split('\0')
        .filter_map(|entry| entry.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    (variables, raw)
}

fn o25_credentials_stay_and_the_rest_arrives(tier: Tier) {
    let (variables, raw) = child(tier, &[]);
    for (name, secret) in SECRETS {
        assert!(!raw.contains(name) && !raw.contains(secret), "{name}");
    }
    for (name, value) in NEEDED {
        assert_eq!(variables.get(name).map(String::as_str), Some(value), "{name}");
    }
}

/// A size in the environment would be believed before the window's own.
fn item_184_the_terminal_is_described_by_its_own_facts(tier: Tier) {
    let (variables, _) = child(tier, &[]);
    assert_eq!(variables.get("TERM").map(String::as_str), Some("of-the-terminal"));
    assert!(!variables.contains_key("LINES") && !variables.contains_key("COLUMNS"));
}

fn item_85_explicit_entries_win_over_the_terminals_own(tier: Tier) {
    let explicit = ["--env=TERM=explicit", "--env=LINES=7", "--env=X_TOKEN=given"];
    let (variables, _) = child(tier, &explicit);
    for (name, value) in [("TERM", "explicit"), ("LINES", "7"), ("X_TOKEN", "given")] {
        assert_eq!(variables.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!variables.contains_key("COLUMNS"));
}
