//! Files for streams that do not fit.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fixture::Case;

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
