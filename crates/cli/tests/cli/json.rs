//! The JSON object of a run. Each one that the fixture reads is checked against the schema.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::fixture::{Case, finish, start};

#[test]
fn an_object_says_what_was_run_and_how_it_ended() {
    let case = Case::new();
    let done = case.sh(&["--json"], "echo out; echo err >&2; exit 3");
    assert_eq!((done.code(), &done.stderr[..]), (3, ""));
    let object = done.object();
    assert_eq!(
        object["argv"],
        json!(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"])
    );
    assert_eq!(
        object["cwd"],
        case.path("").canonicalize().unwrap().to_str().unwrap()
    );
    assert!(object["pid"].as_u64().is_some_and(|pid| pid > 1));
    assert_eq!(object["outcome"], json!({ "exit_code": 3, "signal": null }));
    assert_eq!(object["cause"], "exited");
    assert_eq!(object["error"], Value::Null);
    let stream = |text: &str| {
        json!({
            "text": text, "head": "", "total_bytes": text.len(), "dropped_bytes": 0, "truncated": false,
            "spill_path": null,
        })
    };
    assert_eq!(object["stdout"], stream("out\n"));
    assert_eq!(object["stderr"], stream("err\n"));
    assert_eq!(
        (&object["ended"], &object["survivors"], &object["holders"]),
        (&json!([]), &json!([]), &json!([]))
    );
}

#[test]
fn pid_is_the_commands_own() {
    let object = Case::new().json(&[], "echo $$");
    assert_eq!(object["stdout"]["text"], format!("{}\n", object["pid"]));
}

#[test]
fn ownership_is_the_mechanism_that_was_asked_for() {
    let object = Case::new().json(&["--ownership", "process-group"], "exit 0");
    assert_eq!(object["ownership"], "process_group");
}

#[test]
fn as_root_ownership_is_the_control_group() {
    for ownership in ["auto", "cgroup"] {
        assert_eq!(
            Case::new().json(&["--ownership", ownership], "exit 0")["ownership"],
            "cgroup"
        );
    }
}

#[test]
fn the_time_and_the_processor_time_of_the_run_are_told() {
    // About a quarter of a second of work, by the shell's own count of it.
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; times";
    let object = Case::new().json(&[], script);
    let milliseconds = |what: &Value| what.as_u64().expect("it is a number");
    let used = milliseconds(&object["usage"]["user_ms"]) + milliseconds(&object["usage"]["system_ms"]);
    assert!(used > 0, "{object:#}");
    assert!(milliseconds(&object["duration_ms"]) > 0);
    // A shell takes more than a hundred KiB and less than a GiB.
    assert!(
        (100..1 << 20).contains(&milliseconds(&object["usage"]["max_rss_kib"])),
        "{object:#}"
    );
}

#[test]
fn tail_and_head_and_the_dropped_bytes_add_up() {
    let case = Case::new();
    let script = "seq -w 0 9999"; // 50,000 bytes in lines of five
    for (max, head, text, beginning) in [
        ("10", "0", "9998\n9999\n", ""),
        ("10", "5", "9998\n9999\n", "0000\n"),
        ("0", "10", "", "0000\n0001\n"),
        ("5", "0", "9999\n", ""),
    ] {
        let stream = &case.json(&["--max-bytes", max, "--head-bytes", head], script)["stdout"];
        assert_eq!(
            (stream["text"].as_str(), stream["head"].as_str()),
            (Some(text), Some(beginning))
        );
        assert_eq!(stream["total_bytes"], 50_000);
        assert_eq!(stream["dropped_bytes"], 50_000 - text.len() - beginning.len());
        assert_eq!(stream["truncated"], true);
    }
    let stream = &case.json(&["--max-bytes", "49K", "--head-bytes", "1K"], script)["stdout"];
    let length = |part: &str| stream[part].as_str().expect("it is text").len();
    assert_eq!(
        (length("head"), length("text")),
        (0, 50_000),
        "a stream that fits is all tail"
    );
    assert_eq!(
        (&stream["dropped_bytes"], &stream["truncated"]),
        (&json!(0), &json!(false))
    );
}

#[test]
fn the_bounds_hold_for_each_stream_by_itself() {
    let object = Case::new().json(&["--max-bytes", "4"], "printf 0123456789; printf abc >&2");
    assert_eq!(
        (&object["stdout"]["text"], &object["stderr"]["text"]),
        (&json!("6789"), &json!("abc"))
    );
    assert_eq!(
        (
            &object["stdout"]["dropped_bytes"],
            &object["stderr"]["dropped_bytes"]
        ),
        (&json!(6), &json!(0))
    );
}

#[test]
fn by_default_64_kib_of_the_end_are_kept() {
    let stream = &Case::new().json(&[], "head -c 100000 /dev/zero | tr '\\0' x")["stdout"];
    assert_eq!(stream["text"].as_str().unwrap().len(), 65_536);
    assert_eq!(stream["dropped_bytes"], 100_000 - 65_536);
}

#[test]
fn characters_are_not_cut_in_two() {
    // Three bytes each: no bound here falls between two characters.
    let stream = &Case::new().json(&["--max-bytes", "4", "--head-bytes", "4"], "printf €€€€€")["stdout"];
    assert_eq!((&stream["head"], &stream["text"]), (&json!("€"), &json!("€")));
    assert_eq!(
        (&stream["total_bytes"], &stream["dropped_bytes"]),
        (&json!(15), &json!(9))
    );
    assert_eq!(stream.get("not_utf8"), None);
}

#[test]
fn o12_output_that_is_no_text_is_flagged_and_given_in_base64() {
    let object = Case::new().json(&[], r"printf 'a\377\000z'; printf 'plain' >&2");
    let stream = &object["stdout"];
    assert_eq!(stream["text"], "a\u{fffd}\0z");
    assert_eq!(stream["not_utf8"], true);
    assert_eq!(stream["text_base64"], "Yf8Aeg==");
    assert_eq!(stream.get("head_base64"), None);
    assert_eq!(object["stderr"].get("not_utf8"), None);
}

#[test]
fn merged_streams_are_one() {
    let object = Case::new().json(&["--merge-stderr"], "echo o1; echo e1 >&2; echo o2");
    assert_eq!(object["stdout"]["text"], "o1\ne1\no2\n");
    assert_eq!(
        (&object["stderr"]["text"], &object["stderr"]["total_bytes"]),
        (&json!(""), &json!(0))
    );
}

#[test]
fn words_that_are_no_text_are_given_in_base64_beside() {
    let case = Case::new();
    let directory = case.path("").join(OsStr::from_bytes(b"d\xff"));
    std::fs::create_dir(&directory).expect("a directory can be made");
    let mut command = case.command(["run", "--json", "--cwd"]);
    command
        .arg(&directory)
        .args(["--", "printf", "%s"])
        .arg(OsStr::from_bytes(b"\xfe"));
    let object = finish(start(&mut command)).object();
    assert_eq!(object["argv"], json!(["printf", "%s", "\u{fffd}"]));
    assert_eq!(object["argv_base64"], json!(["cHJpbnRm", "JXM=", "/g=="]));
    assert!(object["cwd"].as_str().unwrap().ends_with("/d\u{fffd}"));
    assert!(object["cwd_base64"].is_string());
    assert_eq!(object["stdout"]["text_base64"], "/g==");
}

#[test]
fn the_json_of_a_command_is_its_own() {
    let case = Case::new();
    let done = case.call(["run", "--quiet", "echo", "--json"]);
    assert_eq!(done.text(), "--json\n");
    // A bad option of ours before a command with such a word: still no object.
    let done = case.call(["run", "--timeout", "5", "echo", "--json"]);
    assert_eq!((done.code(), done.text()), (125, ""));
}

#[test]
fn o13_a_flood_takes_no_more_memory_than_asked_for() {
    let object = Case::new().json(&[], "yes | head -c 300000000");
    assert_eq!(object["stdout"]["total_bytes"], 300_000_000);
    assert_eq!(object["stdout"]["dropped_bytes"], 300_000_000 - 65_536);
}
