//! What of the environment reaches the command.

use crate::fixture::{Case, Finished, finish, start};

/// What a client gives a server in its configuration, beside what the client itself has.
#[track_caller]
fn configured(options: &[&str]) -> Finished {
    let case = Case::new();
    let mut command = case.exec(options, &["env"]);
    command
        .env("GITHUB_TOKEN", "needed")
        .env("OPENAI_API_KEY", "stray")
        .env("DSH_INTERNAL", "managed")
        .env("CLI_TEST_URL", "https://ada:pw@host/")
        .env("CLI_TEST_PLAIN", "plain");
    let done = finish(start(&mut command));
    assert_eq!(done.code(), 0, "{}", done.stderr);
    done
}

impl Finished {
    fn has(&self, variable: &str) -> bool {
        self.text().lines().any(|line| line == variable)
    }
}

#[test]
fn credentials_stay_behind_but_the_one_that_is_named() {
    let done = configured(&["--keep", "GITHUB_TOKEN"]);
    assert!(done.has("GITHUB_TOKEN=needed"));
    assert!(done.has("CLI_TEST_PLAIN=plain"));
    assert!(done.has("CLI_TEST_URL=https://host/"));
    for gone in ["stray", "managed", "ada:pw"] {
        assert!(!done.text().contains(gone), "{}", done.text());
    }
}

#[test]
fn names_alone_may_be_scrubbed() {
    let done = configured(&["--scrub", "names"]);
    assert!(done.has("CLI_TEST_URL=https://ada:pw@host/"));
    assert!(!done.text().contains("TOKEN") && !done.text().contains("API_KEY"));
}

#[test]
fn without_a_scrub_everything_arrives() {
    let done = configured(&["--scrub", "off"]);
    for variable in [
        "GITHUB_TOKEN=needed",
        "OPENAI_API_KEY=stray",
        "DSH_INTERNAL=managed",
        "CLI_TEST_URL=https://ada:pw@host/",
    ] {
        assert!(done.has(variable), "{variable}: {}", done.text());
    }
}

#[test]
fn a_managed_name_can_be_kept_as_well() {
    assert!(configured(&["--keep", "DSH_INTERNAL"]).has("DSH_INTERNAL=managed"));
}

#[test]
fn what_is_kept_need_not_be_there() {
    assert!(
        !configured(&["--keep", "CLI_TEST_NEVER_KEY"])
            .text()
            .contains("NEVER")
    );
}

#[test]
fn variables_are_set_and_unset_as_for_a_run() {
    for scrub in ["all", "off"] {
        let options = [
            "--scrub",
            scrub,
            "--env",
            "A_KEY=x",
            "--unset",
            "CLI_TEST_PLAIN",
            "--env",
            "GITHUB_TOKEN=other",
        ];
        let done = configured(&options);
        assert!(
            done.has("A_KEY=x") && done.has("GITHUB_TOKEN=other"),
            "{}",
            done.text()
        );
        assert!(!done.text().contains("CLI_TEST_PLAIN"), "{}", done.text());
    }
}
