//! The managed facts of a call (item 9).

use dsh_shell::{Contributor, ShellError, ShellRequest, WorldString};
use dsh_subprocess_testkit::scripted::Script;

use crate::stage::Stage;

/// A contributor that gives what it is told to give.
fn giving(name: &str, keys: &[&str], gives: &'static [(&'static str, &'static str)]) -> Contributor {
    let facts = move |_: &dsh_shell::Call<'_>| {
        let pairs = gives
            .iter()
            .map(|&(key, value)| (key.to_owned(), WorldString::from(value)));
        pairs.collect()
    };
    Contributor::new(name, keys.iter().copied(), facts).expect("the names are valid")
}

#[test]
fn item_009_names_are_checked_when_they_are_declared() {
    let refused = |name: &str, keys: &[&str]| {
        let error = Contributor::new(name, keys.iter().copied(), |_| vec![]).expect_err("it is wrong");
        error.to_string()
    };
    assert!(refused("", &["DSH_A"]).contains("empty"));
    for key in ["A", "DSH_", "DSH_a", "DSH_A-B", "dsh_A", " DSH_A", "DSH_A=", ""] {
        assert!(refused("somebody", &[key]).contains("somebody"), "{key}");
    }
    for key in [
        "DSH_HOME",
        "DSH_SHELL",
        "DSH_SESSION_ID",
        "DSH_SUBPROCESS_CONTROL",
    ] {
        assert!(refused("somebody", &[key]).contains(key));
    }
    assert!(refused("somebody", &["DSH_A", "DSH_B", "DSH_A"]).contains("DSH_A is declared twice"));
}

#[test]
fn item_009_a_name_and_a_key_have_one_contributor() {
    let stage = Stage::new(Script::new());
    stage
        .shell
        .contribute(giving("first", &["DSH_A"], &[]))
        .expect("nobody has it");
    let taken = stage
        .shell
        .contribute(giving("first", &["DSH_B"], &[]))
        .expect_err("the name is taken");
    assert!(taken.to_string().contains("first"), "{taken}");
    let taken = stage
        .shell
        .contribute(giving("second", &["DSH_B", "DSH_A"], &[]))
        .expect_err("the key is taken");
    assert!(
        taken.to_string().contains("DSH_A") && taken.to_string().contains("second"),
        "{taken}"
    );
    stage
        .shell
        .contribute(giving("second", &["DSH_B"], &[]))
        .expect("nothing of the refused one is left");
}

#[test]
fn item_009_a_fact_that_was_not_declared_stops_the_call() {
    for (gives, named) in [
        (&[("DSH_OTHER", "1")][..], "DSH_OTHER"),
        (&[("DSH_A", "1"), ("DSH_A", "2")], "DSH_A"),
        (&[("DSH_A", "1\0")], "DSH_A"),
    ] {
        let stage = Stage::new(Script::new().exits(0));
        stage
            .shell
            .contribute(giving("somebody", &["DSH_A"], gives))
            .expect("nobody has it");
        let spec = stage
            .shell
            .resolve(ShellRequest::new("env"))
            .expect("nobody is asked yet");
        let error = stage
            .play(stage.shell.run(spec))
            .expect_err("the facts are wrong");
        assert!(matches!(&error, ShellError::Facts(_)), "{error}");
        assert!(
            error.to_string().contains(named) && error.to_string().contains("somebody"),
            "{error}"
        );
        assert!(stage.world.requests().is_empty(), "nothing was started");
    }
}

#[test]
fn item_009_facts_win_over_the_caller_s_own_and_the_session_is_told() {
    let stage = Stage::new(Script::new().exits(0));
    stage
        .shell
        .contribute(giving("zoe", &["DSH_Z"], &[("DSH_Z", "z")]))
        .expect("nobody has it");
    stage
        .shell
        .contribute(giving("abe", &["DSH_A", "DSH_UNSAID"], &[("DSH_A", "a")]))
        .expect("nobody has it");
    let mut request = ShellRequest::new("env");
    request.session = Some("session-7".to_owned());
    for name in ["DSH_A", "DSH_Z", "DSH_SHELL", "DSH_SESSION_ID"] {
        request.env.insert(name.into(), Some("forged".into()));
    }
    let spec = stage.shell.resolve(request).expect("it is valid");
    stage.play(stage.shell.run(spec)).expect("it is run");
    let environment = stage.request().environment;
    let value = |name: &str| environment.get(name).map(ToString::to_string);
    for (name, expected) in [
        ("DSH_A", Some("a")),
        ("DSH_Z", Some("z")),
        ("DSH_SHELL", Some("1")),
        ("DSH_SESSION_ID", Some("session-7")),
        ("DSH_UNSAID", None),
        ("DSH_HOME", None),
    ] {
        assert_eq!(value(name).as_deref(), expected, "{name}");
    }
}
