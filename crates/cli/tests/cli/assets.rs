//! Help, version, completions, manual pages, and the doctor.

use serde_json::Value;

use crate::fixture::Case;

#[test]
fn help_names_every_option_and_its_default() {
    let case = Case::new();
    let done = case.call(["run", "--help"]);
    assert_eq!((done.code(), &done.stderr[..]), (0, ""));
    let help = done.text().split_whitespace().collect::<Vec<_>>().join(" ");
    for option in [
        "--cwd",
        "--env",
        "--unset",
        "--timeout",
        "--grace",
        "--drain",
        "--max-bytes",
        "--head-bytes",
        "--spill-max-bytes",
        "--keep-spill",
        "--stdin",
        "--stdin-file",
        "--merge-stderr",
        "--ownership",
        "--quiet",
        "--json",
    ] {
        assert!(help.contains(option), "{option}: {help}");
    }
    for default in [
        "[default: 3s]",
        "[default: 1s]",
        "[default: 65536]",
        "[default: 0]",
        "[default: auto]",
        "[default: nothing]",
    ] {
        assert!(help.contains(default), "{default}: {help}");
    }
    for status in ["124", "125", "126", "127", "130", "143"] {
        assert!(help.contains(status), "{status}: {help}");
    }
}

#[test]
fn version_and_help_are_successes_on_stdout() {
    let case = Case::new();
    let version = case.call(["--version"]);
    assert_eq!(
        version.text(),
        format!("dsh-subprocess {}\n", env!("CARGO_PKG_VERSION"))
    );
    for words in [
        &["--help"][..],
        &["-h"],
        &["run", "-h"],
        &["sh", "-h"],
        &["mcp", "-h"],
        &["term", "-h"],
        &["exec", "-h"],
        &["doctor", "--help"],
        &["man", "--help"],
    ] {
        let done = case.call(words);
        assert_eq!((done.code(), &done.stderr[..]), (0, ""), "{words:?}");
        assert!(
            done.text().contains("Usage: dsh-subprocess"),
            "{words:?}: {}",
            done.text()
        );
    }
}

#[test]
fn completions_know_every_option_in_every_shell() {
    let case = Case::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let done = case.call(["completions", shell]);
        assert_eq!((done.code(), &done.stderr[..]), (0, ""));
        for word in [
            "merge-stderr",
            "spill-max-bytes",
            "no-timeout",
            "token-file",
            "die-with",
            "record",
            "doctor",
        ] {
            assert!(done.text().contains(word), "{shell} does not know {word}");
        }
    }
    // The script is one that the shell itself can read.
    let script = case.file("completions", case.call(["completions", "bash"]).stdout);
    assert_eq!(
        case.run(&["--quiet"], &["bash", "-n", script.to_str().unwrap()])
            .code(),
        0
    );
}

#[test]
fn the_manual_has_a_page_for_the_command_and_for_each_subcommand_of_weight() {
    let case = Case::new();
    for (words, title, content) in [
        (&["man"][..], ".TH dsh-subprocess 1", "doctor"),
        (
            &["man", "run"],
            ".TH dsh-subprocess-run 1",
            r"\-\-spill\-max\-bytes",
        ),
        (&["man", "sh"], ".TH dsh-subprocess-sh 1", r"\-\-no\-timeout"),
        (&["man", "mcp"], ".TH dsh-subprocess-mcp 1", r"\-\-token\-file"),
        (&["man", "term"], ".TH dsh-subprocess-term 1", r"\-\-record"),
        (&["man", "exec"], ".TH dsh-subprocess-exec 1", r"\-\-die\-with"),
        (&["man", "doctor"], ".TH dsh-subprocess-doctor 1", r"\-\-json"),
    ] {
        let done = case.call(words);
        assert_eq!((done.code(), &done.stderr[..]), (0, ""));
        assert!(
            done.text().contains(title) && done.text().contains(content),
            "{words:?}: {}",
            done.text()
        );
    }
}

#[test]
fn doctor_says_which_mechanism_this_machine_gives_and_why() {
    let case = Case::new();
    let done = case.call(["doctor", "--json"]);
    assert_eq!((done.code(), &done.stderr[..]), (0, ""));
    let object: Value = serde_json::from_slice(&done.stdout).expect("it is JSON");
    let chosen = object["mechanism"].as_str().expect("there is one");
    assert!(!object["why"].as_str().expect("it is text").is_empty());
    let candidates = object["candidates"].as_array().expect("it is a list");
    let first = candidates
        .iter()
        .find(|candidate| candidate["works"] == true)
        .expect("one works");
    assert_eq!(
        first["mechanism"], chosen,
        "the strongest one that works is chosen"
    );
    for facility in ["warden", "records"] {
        assert!(object[facility]["works"].is_boolean(), "{facility}");
        assert!(
            !object[facility]["finding"]
                .as_str()
                .expect("it is text")
                .is_empty(),
            "{facility}"
        );
    }
    for list in ["features", "limits"] {
        assert!(
            !object[list].as_array().expect("it is a list").is_empty(),
            "{list}"
        );
    }
    assert!(object["weaknesses"].is_array() && object["improvements"].is_array());
    // What the doctor says is what a run gets.
    assert_eq!(case.json(&[], "exit 0")["ownership"], chosen);

    let text = case.call(["doctor"]);
    assert_eq!(text.code(), 0);
    assert!(
        text.text().starts_with(&format!("ownership  {chosen}: ")),
        "{}",
        text.text()
    );
    for feature in object["features"].as_array().unwrap() {
        assert!(
            text.text().contains(feature["name"].as_str().unwrap()),
            "{}",
            text.text()
        );
    }
}

#[test]
fn as_root_the_doctor_finds_control_groups() {
    let done = Case::new().call(["doctor", "--json"]);
    let object: Value = serde_json::from_slice(&done.stdout).expect("it is JSON");
    assert_eq!(object["mechanism"], "cgroup");
}
