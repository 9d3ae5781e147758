//! Which terminal a child has, when its host has one, too: case O19.

use super::session::{Terminals, plain};
use crate::fixture::{Case, Tier, on_each_tier};

on_each_tier! {
    o19_the_terminal_of_a_child_is_its_own_and_never_its_hosts,
    o19_a_child_without_a_terminal_does_not_get_its_hosts,
}

/// Runs a host on a terminal, between two looks at that terminal's settings, and returns what came out of it: the lines
/// before the host's, those of the host, and whether the settings are the same.
#[track_caller]
fn host_on_a_terminal(tier: Tier, scenario: &str) -> (String, String, bool) {
    let case = Case::new(tier);
    let script = format!(
        r#"echo "own $(tty)"; before=$(stty -g)
        "$PROBE" host --ownership={} {scenario} </dev/null
        echo "settings $([ "$before" = "$(stty -g)" ] && echo same)""#,
        tier.mechanism()
    );
    let (outcome, printed) = case.open(case.terminal_spec(case.bash(&script))).finish();
    let printed = plain(&printed);
    assert!(outcome.success(), "{printed}");
    let own = printed.lines().next().and_then(|line| line.strip_prefix("own "));
    let own = own.expect("the terminal has a name").to_owned();
    let same = printed.ends_with("\nsettings same\n");
    case.assert_gone();
    (own, printed, same)
}

/// What a host said of one thing.
#[track_caller]
fn said<'a>(printed: &'a str, key: &str) -> &'a str {
    let line = printed
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no `{key}` in {printed}"))
}

/// The child takes its terminal by name, makes it raw, and writes to it.
fn o19_the_terminal_of_a_child_is_its_own_and_never_its_hosts(tier: Tier) {
    let child = r#"terminal /bin/sh -c 'stty raw -echo </dev/tty; tty; echo "by name" >/dev/tty'"#;
    let (own, printed, same) = host_on_a_terminal(tier, child);
    let output = said(&printed, "output");
    assert!(
        output.starts_with("/dev/pts/") && output.ends_with("by name\\n"),
        "{printed}"
    );
    assert!(!output.contains(&format!("{own}\\n")), "{printed}");
    assert_eq!(printed.matches("by name").count(), 1, "{printed}");
    assert_eq!(said(&printed, "outcome"), "exited with code 0");
    assert!(same, "{printed}");
}

/// A child with pipes has none at all, so that nothing can prompt there.
fn o19_a_child_without_a_terminal_does_not_get_its_hosts(tier: Tier) {
    let child = r#"run /bin/sh -c 'echo "by name" >/dev/tty || echo none'"#;
    let (_, printed, same) = host_on_a_terminal(tier, child);
    assert_eq!(said(&printed, "stdout"), "none\\n", "{printed}");
    assert!(same, "{printed}");
}
