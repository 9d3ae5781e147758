//! Trees that start from an environment that was given: `LocalRuntime::with_ambient`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use dsh_subprocess::{ErrorKind, Lookup, Process, SubprocessRuntime, WorldPath};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Case, Tier, announced, finished, on_each_tier, text, within};

on_each_tier! {
    item_1_a_tree_starts_from_what_was_given_and_nothing_else,
    item_177_a_given_path_is_searched,
    item_180_a_given_shell_is_told,
    a_runtime_lives_as_long_as_a_reference_of_either_kind,
}

fn pairs(pairs: &[(&str, &str)]) -> Arc<Vec<(OsString, OsString)>> {
    Arc::new(
        pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
    )
}

fn variables(process: &Process) -> BTreeMap<String, String> {
    assert!(finished(process).success());
    text(process)
        .split('\0')
        .filter_map(|entry| entry.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Nothing of this process's environment arrives, what was given is scrubbed, and the spec's entries win.
fn item_1_a_tree_starts_from_what_was_given_and_nothing_else(tier: Tier) {
    let case = Case::new(tier);
    let given = pairs(&[
        ("GIVEN", "1"),
        ("CHANGED", "before"),
        ("REMOVED", "1"),
        ("GIVEN_API_KEY", "sk-given"),
        ("DSH_GIVEN", "own"),
        ("PWD", "/elsewhere"),
    ]);
    let world = case.runtime.with_ambient(given);
    for _ in 0..2 {
        let mut spec = case.probe(["env"]);
        spec.env.insert("CHANGED".into(), Some("after".into()));
        spec.env.insert("REMOVED".into(), None);
        let mut expected: BTreeMap<String, String> = spec
            .env
            .iter()
            .filter_map(|(name, value)| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                Some((text(name.as_bytes()), text(value.as_ref()?.as_bytes())))
            })
            .collect();
        expected.insert("GIVEN".into(), "1".into());
        expected.insert("PWD".into(), "/".into());
        let process = world.spawn(spec).expect("the spec is valid");
        assert_eq!(variables(&process), expected);
    }
    // The other reference goes on with this process's own.
    let own = variables(&case.spawn(case.probe(["env"])));
    assert!(own.contains_key("PATH") && !own.contains_key("GIVEN"));
}

/// By look-ups, and by spawns of a bare name.
fn item_177_a_given_path_is_searched(tier: Tier) {
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("only-there");
    symlink("/bin/echo", &program).expect("the directory is ours");
    let path = directory.path().to_str().expect("temporary directories are text");
    let world = case.runtime.with_ambient(pairs(&[("PATH", path)]));
    let lookup = || Lookup {
        command: "only-there".into(),
        env: BTreeMap::new(),
        cancel: CancellationToken::new(),
    };
    let found = within(world.resolve_executable(lookup())).expect("it is there");
    assert_eq!(found, WorldPath::from(program));
    let missed = within(case.runtime.resolve_executable(lookup())).expect_err("it is nowhere else");
    assert_eq!(missed.kind(), ErrorKind::ProgramNotFound);
    let process = world
        .spawn(case.spec(["only-there", "said"]))
        .expect("the spec is valid");
    assert!(finished(&process).success());
    assert_eq!(text(&process), "said\n");
    fs::remove_dir_all(directory.path()).expect("it is ours");
}

fn item_180_a_given_shell_is_told(tier: Tier) {
    let case = Case::new(tier);
    let world = case.runtime.with_ambient(pairs(&[("SHELL", "/bin/given")]));
    let told = within(world.terminal_environment()).expect("it is known");
    assert_eq!(told.shell, WorldPath::from("/bin/given"));
}

/// The drop of the last one ends the trees, and of no other.
fn a_runtime_lives_as_long_as_a_reference_of_either_kind(tier: Tier) {
    let case = Case::new(tier);
    let first = tier.builder().build().expect("the tier works here");
    let process = first.spawn(case.probe(["sleep"])).expect("the spec is valid");
    announced(&process, "ready");
    let other = first.with_ambient(pairs(&[("GIVEN", "1")]));
    drop(first);
    let again = other.with_ambient(pairs(&[]));
    drop(other);
    let next = again
        .spawn(case.probe(["exit", "2"]))
        .expect("the runtime is there");
    assert_eq!(finished(&next).code(), Some(2));
    drop(again);
    assert!(finished(&process).signal().is_some());
    case.assert_gone();
}
