//! What is printed: what a model sees.

use crate::fixture::Case;

#[test]
fn item_128_both_streams_are_shown_and_the_exit_status_is_the_last_line() {
    let case = Case::new();
    for (text, shown, code) in [
        (
            "echo out; echo err >&2; exit 3",
            "out\n[stderr]\nerr\n[exit code: 3]\n",
            3,
        ),
        ("true", "(no output)\n[exit code: 0]\n", 0),
        ("printf unfinished", "unfinished\n[exit code: 0]\n", 0),
        ("kill -KILL $$", "(no output)\n[killed by signal: SIGKILL]\n", 137),
        (
            "echo '[exit code: 0]'; exit 9",
            "[exit code: 0]\n[exit code: 9]\n",
            9,
        ),
    ] {
        let done = case.text(&[], text);
        assert_eq!(
            (done.text(), done.code(), &done.stderr[..]),
            (shown, code, ""),
            "{text}"
        );
    }
}

#[test]
fn o15_progress_is_shown_as_a_terminal_shows_it_and_kept_as_it_was_written() {
    let case = Case::new();
    let text = r#"for i in $(seq 1 500); do printf "\rprogress %d%%" $((i/5)); done; printf "\nfinal\n""#;
    let object = case.text_object(&[], text);
    assert_eq!(object["rendered"], "progress 100%\nfinal\n[exit code: 0]");
    assert!(
        object["stdout"]["text"]
            .as_str()
            .is_some_and(|raw| raw.matches('\r').count() == 500),
        "{object:#}"
    );
    let done = case.text(&[], r"printf 'first\rsecond\nthird\r\nfourth\n'");
    assert_eq!(done.text(), "second\nthird\nfourth\n[exit code: 0]\n");
}

#[test]
fn o16_merged_streams_keep_their_order() {
    let case = Case::new();
    let expected = "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n";
    for _ in 0..20 {
        let done = case.text(
            &["--merge-stderr"],
            "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done",
        );
        assert_eq!(done.text(), format!("{expected}[exit code: 0]\n"));
    }
}

#[test]
fn what_was_cut_says_how_much_and_that_it_is_nowhere() {
    let case = Case::new();
    let done = case.text(&["--max-bytes", "400"], "seq 1 1000");
    let shown = done.text();
    assert!(
        shown.starts_with("1\n2\n") && shown.contains("\n1000\n"),
        "{shown}"
    );
    assert!(shown.contains(" 3493 bytes "), "{shown}");
    assert!(
        shown.ends_with("[output truncated; full output: (unavailable)]\n[exit code: 0]\n"),
        "{shown}"
    );
    let left: Vec<_> = std::fs::read_dir(case.path("")).expect("it is there").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_path_that_is_named_is_there_and_holds_the_whole_stream() {
    let case = Case::new();
    let done = case.text(&["--max-bytes", "400", "--keep-spill"], "seq 1 1000");
    let path = done
        .text()
        .lines()
        .find_map(|line| {
            line.strip_prefix("[output truncated; full output: ")?
                .strip_suffix(']')
        })
        .unwrap_or_else(|| panic!("no path: {}", done.text()));
    let whole = std::fs::read_to_string(path).expect("the file is there");
    assert!(whole.lines().eq((1..=1000).map(|n| n.to_string())));
}

#[test]
fn a_kept_file_is_bounded_and_its_absence_explained() {
    let case = Case::new();
    let options = ["--max-bytes", "400", "--keep-spill", "--spill-max-bytes", "1K"];
    let done = case.text(&[&["--json"], &options[..]].concat(), "seq 1 1000");
    let object = done.sh_object();
    assert_eq!(object["stdout"]["spill_path"], serde_json::Value::Null);
    let why = object["stdout"]["spill_withdrawn"].as_str().expect("it is said");
    assert_eq!(done.line(), format!("stdout is not kept in a file: {why}"));
}
