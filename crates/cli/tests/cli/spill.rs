//! Files for streams that do not fit.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fixture::{Case, finish, start};

const NONE: [&Path; 0] = [];

/// Lists the files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .expect("it is a directory")
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}

#[test]
fn a_kept_spill_holds_the_whole_stream() {
    let case = Case::new();
    let object = case.json(
        &["--max-bytes", "10", "--keep-spill"],
        "seq 1 20000; echo short >&2",
    );
    let path = object["stdout"]["spill_path"]
        .as_str()
        .unwrap_or_else(|| panic!("there is a path: {object:#}"));
    assert_eq!(std::fs::read(path).expect("it is there").len(), 108_894);
    assert_eq!(files(&case.path("")), [Path::new(path)]);
    assert_eq!(
        object["stderr"]["spill_path"],
        Value::Null,
        "a stream that fits has no file"
    );
}

#[test]
fn a_spill_that_is_not_kept_leaves_nothing_behind() {
    let case = Case::new();
    let object = case.json(&["--max-bytes", "10", "--spill-max-bytes", "1M"], "seq 1 20000");
    assert_eq!(object["stdout"]["spill_path"], Value::Null);
    assert_eq!(files(&case.path("")), NONE);
}

#[test]
fn without_a_word_there_is_no_file() {
    let case = Case::new();
    let object = case.json(&["--max-bytes", "10"], "seq 1 20000");
    assert_eq!(object["stdout"]["spill_path"], Value::Null);
    assert_eq!(files(&case.path("")), NONE);
}

#[test]
fn o14_a_stream_above_the_cap_has_no_file_and_says_why() {
    let case = Case::new();
    let options = ["--max-bytes", "10", "--keep-spill", "--spill-max-bytes", "1K"];
    let object = case.json(&options, "seq 1 20000");
    assert_eq!(object["stdout"]["spill_path"], Value::Null);
    assert!(
        object["stdout"]["spill_withdrawn"]
            .as_str()
            .is_some_and(|why| !why.is_empty()),
        "{object:#}"
    );
    assert_eq!(object["stdout"]["total_bytes"], 108_894);
    assert_eq!(files(&case.path("")), NONE);
}

#[test]
fn a_file_that_cannot_be_made_is_said_in_one_line_and_in_the_object() {
    let case = Case::new();
    let call = |options: &[&str]| {
        let words = [
            &["run", "--json", "--max-bytes", "10"],
            options,
            &["seq", "1", "20000"],
        ]
        .concat();
        // Neither a private directory nor one for what is kept can be made there.
        let places = [
            ("TMPDIR", case.path("nowhere")),
            ("XDG_STATE_HOME", "/dev/null".into()),
        ];
        finish(start(case.command(words).envs(places)))
    };
    let done = call(&["--keep-spill"]);
    let object = done.object();
    assert_eq!(done.code(), 0, "the status is the command's");
    assert_eq!(object["stdout"]["spill_path"], Value::Null);
    let why = object["stdout"]["spill_withdrawn"].as_str().expect("it is said");
    assert_eq!(done.line(), format!("stdout is not kept in a file: {why}"));
    assert!(why.contains("Not a directory"), "{why}");
    assert_eq!(
        object["stderr"].get("spill_withdrawn"),
        None,
        "a stream that fits has no file"
    );

    let done = call(&["--keep-spill", "--quiet"]);
    assert!(done.object()["stdout"]["spill_withdrawn"].is_string());
    assert_eq!(done.stderr, "");
    let done = call(&["--spill-max-bytes", "1M"]);
    assert_eq!(
        (done.object()["stdout"].get("spill_withdrawn"), &done.stderr[..]),
        (None, ""),
        "nobody was to get it"
    );
}
