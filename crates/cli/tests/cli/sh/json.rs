//! The JSON object. Each one that the fixture reads is checked against the schema.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::fixture::{Case, finish, start};

#[test]
fn an_object_has_every_fact_of_a_command() {
    let case = Case::new();
    let done = case.text(&["--json"], "echo out; echo err >&2; exit 3");
    assert_eq!((done.code(), &done.stderr[..]), (3, ""));
    let object = done.sh_object();
    assert_eq!(object["command"], "echo out; echo err >&2; exit 3");
    assert_eq!(
        object["cwd"],
        case.path("").canonicalize().unwrap().to_str().unwrap()
    );
    assert_eq!(object["outcome"], json!({ "exit_code": 3, "signal": null }));
    assert_eq!(
        (&object["cause"], &object["error"]),
        (&json!("ended"), &Value::Null)
    );
    assert_eq!(object["timeout_ms"], 120_000);
    let stream = |text: &str| {
        json!({
            "text": text, "head": "", "total_bytes": text.len(), "dropped_bytes": 0, "truncated": false,
            "spill_path": null,
        })
    };
    assert_eq!(object["stdout"], stream("out\n"));
    assert_eq!(object["stderr"], stream("err\n"));
    assert_eq!(object["left_behind"], Value::Null);
    assert_eq!(object["rendered"], "out\n[stderr]\nerr\n[exit code: 3]");
    assert!(object["ownership"].is_string());
}

#[test]
fn pid_is_the_shells_own() {
    let object = Case::new().text_object(&[], "echo $$");
    assert_eq!(object["stdout"]["text"], format!("{}\n", object["pid"]));
}

#[test]
fn merged_streams_are_one() {
    let object = Case::new().text_object(&["--merge-stderr"], "echo out; echo err >&2");
    assert_eq!(object["stdout"]["text"], "out\nerr\n");
    assert_eq!(object["stderr"], Value::Null);
}

#[test]
fn the_bytes_that_are_kept_are_a_quarter_head_and_three_quarters_tail() {
    let object = Case::new().text_object(&["--max-bytes", "400"], "seq 1 1000; seq 1 1000 >&2");
    for stream in ["stdout", "stderr"] {
        let length = |part: &str| object[stream][part].as_str().expect("it is text").len();
        assert_eq!((length("head"), length("text")), (100, 300));
        assert_eq!(object[stream]["total_bytes"], 3893);
        assert_eq!(object[stream]["dropped_bytes"], 3493);
    }
}

#[test]
fn o12_output_that_is_no_text_is_given_in_base64_and_shown_as_text() {
    let object = Case::new().text_object(&[], r"printf 'a\377\000z'");
    assert_eq!(object["stdout"]["text_base64"], "Yf8Aeg==");
    let rendered = object["rendered"].as_str().expect("it is text");
    assert!(
        rendered.starts_with("a\u{fffd}") && !rendered.contains('\0'),
        "{rendered:?}"
    );
}

#[test]
fn o13_a_flood_takes_no_more_memory_than_asked_for() {
    let object = Case::new().text_object(&[], "yes | head -c 300000000");
    assert_eq!(object["stdout"]["total_bytes"], 300_000_000);
    assert_eq!(object["stdout"]["dropped_bytes"], 300_000_000 - 64_000);
}

#[test]
fn a_text_that_is_no_utf8_is_given_in_base64_beside() {
    let case = Case::new();
    let mut command = case.command(["sh", "--json"]);
    command.arg(OsStr::from_bytes(b"echo \xff"));
    let object = finish(start(&mut command)).sh_object();
    assert_eq!(object["command"], "echo \u{fffd}");
    assert_eq!(object["command_base64"], "ZWNobyD/");
    assert_eq!(object["stdout"]["text_base64"], "/wo=");
}

#[test]
fn without_a_timeout_none_is_told() {
    let object = Case::new().text_object(&["--no-timeout"], "true");
    assert_eq!(object["timeout_ms"], Value::Null);
    let object = Case::new().text_object(&["--timeout", "2h"], "true");
    assert_eq!(object["timeout_ms"], 7_200_000);
}
