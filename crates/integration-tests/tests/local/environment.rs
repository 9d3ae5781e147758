//! The environment of an ordinary child: case O25 and items 1 to 6.

use std::collections::BTreeMap;

use crate::fixture::{Case, Host, Report, Tier, on_each_tier};

pub(crate) const SECRETS: [(&str, &str); 5] = [
    ("OPENAI_API_KEY", "sk-o25-openai"),
    ("ANTHROPIC_AUTH_TOKEN", "o25-anthropic"),
    ("AWS_SECRET_ACCESS_KEY", "o25-aws"),
    ("GITHUB_TOKEN", "ghp_o25github"),
    ("DSH_SESSION", "o25-own"),
];

/// A host that was started with credentials and with what programs need.
pub(crate) fn host(tier: Tier) -> Host {
    let mut host = Host::new(tier);
    for (name, value) in SECRETS {
        host = host.variable(name, value);
    }
    for (name, value) in NEEDED {
        host = host.variable(name, value);
    }
    host
}

pub(crate) const NEEDED: [(&str, &str); 6] = [
    ("HOME", "/nonexistent/home"),
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("USER", "somebody"),
    ("LANG", "C.UTF-8"),
    ("TMPDIR", "/tmp"),
    ("SSH_AUTH_SOCK", "/nonexistent/agent"),
];

/// What a child printed with a NUL after each entry.
fn variables(report: &Report) -> BTreeMap<String, String> {
    report
        .get("stdout")
        .split('\0')
        .filter_map(|entry| entry.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

on_each_tier! {
    o25_credentials_stay_and_the_rest_arrives,
    item_3_explicit_entries_win_and_reach_one_child,
    values_that_are_not_utf8_arrive_unchanged,
    item_21_arguments_are_not_interpreted,
}

/// No credential reaches a child, in its variables or anywhere the kernel shows them; what programs need does.
fn o25_credentials_stay_and_the_rest_arrives(tier: Tier) {
    let report = host(tier).report(["run", env!("CARGO_BIN_EXE_probe"), "env"]);
    let child = variables(&report);
    for (name, secret) in SECRETS {
        assert!(!child.contains_key(name), "{name} reached the child");
        assert!(!child.values().any(|value| value.contains(secret)));
    }
    for (name, value) in NEEDED {
        assert_eq!(child.get(name).map(String::as_str), Some(value), "{name}");
    }
    let report = host(tier).report(["run", "/bin/cat", "/proc/self/environ", "/proc/self/cmdline"]);
    let raw = report.get("stdout");
    for (name, secret) in SECRETS {
        assert!(!raw.contains(name) && !raw.contains(secret), "{name}");
    }
}

/// An explicit entry wins over the scrub, reaches that child only, and an explicit removal removes.
fn item_3_explicit_entries_win_and_reach_one_child(tier: Tier) {
    let case = Case::new(tier);
    let printed = |set: &[(&str, Option<&str>)]| {
        let mut spec = case.probe(["env"]);
        for &(name, value) in set {
            spec.env.insert(name.into(), value.map(Into::into));
        }
        let (outcome, process) = case.run(spec);
        assert!(outcome.success());
        let bytes = process
            .collected_stdout()
            .expect("it is collected")
            .read_from(0)
            .bytes;
        String::from_utf8_lossy(&bytes)
            .split('\0')
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let with = printed(&[
        ("X_TOKEN", Some("given")),
        ("DSH_MINE", Some("too")),
        ("PATH", None),
        ("ABSENT", None),
    ]);
    assert!(
        with.contains(&"X_TOKEN=given".to_owned()) && with.contains(&"DSH_MINE=too".to_owned()),
        "{with:?}"
    );
    assert!(!with.iter().any(|entry| entry.starts_with("PATH=")), "{with:?}");
    let without = printed(&[]);
    assert!(
        !without
            .iter()
            .any(|entry| entry.starts_with("X_TOKEN=") || entry.starts_with("DSH_MINE="))
    );
    assert!(without.iter().any(|entry| entry.starts_with("PATH=")));
}

/// Values are bytes.
fn values_that_are_not_utf8_arrive_unchanged(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.probe(["env"]);
    spec.env.insert("ODD".into(), Some((&b"\xff\xfe\n="[..]).into()));
    let (_, process) = case.run(spec);
    let bytes = process
        .collected_stdout()
        .expect("it is collected")
        .read_from(0)
        .bytes;
    assert!(
        bytes
            .split(|&byte| byte == 0)
            .any(|entry| entry == b"ODD=\xff\xfe\n=")
    );
}

/// Arguments reach the program as they are, never through a shell.
fn item_21_arguments_are_not_interpreted(tier: Tier) {
    let case = Case::new(tier);
    let odd = [
        "",
        "two words",
        "$HOME",
        "*",
        "; exit 1",
        "\u{1b}[31m",
        "line\nend",
    ];
    let mut spec = case.probe(std::iter::once("argv").chain(odd));
    spec.argv.push((&b"\xff"[..]).into());
    let (outcome, process) = case.run(spec);
    assert!(outcome.success());
    let bytes = process
        .collected_stdout()
        .expect("it is collected")
        .read_from(0)
        .bytes;
    let received: Vec<&[u8]> = bytes.split(|&byte| byte == 0).skip(1).collect();
    let expected: Vec<&[u8]> = odd
        .iter()
        .map(|argument| argument.as_bytes())
        .chain([&b"\xff"[..], b""])
        .collect();
    assert_eq!(received, expected);
}
