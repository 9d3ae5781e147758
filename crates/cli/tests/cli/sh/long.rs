//! Texts that are longer than one argument may be.

use std::io::Write;
use std::process::Stdio;

use crate::fixture::{Case, Finished, finish, start};

/// Runs a text from standard input.
fn from_input(case: &Case, text: &[u8]) -> Finished {
    let mut call = start(
        case.command(["sh", "--json", "--file", "-"])
            .stdin(Stdio::piped()),
    );
    let mut input = call.stdin.take().expect("it is piped");
    input.write_all(text).expect("it is read");
    drop(input);
    finish(call)
}

/// A text with this many bytes in one word, and what it tells of its own parameters and variables after that.
fn long(bytes: usize) -> Vec<u8> {
    let text = format!(
        "word={}\necho ${{#word}} $# \"$0\"\nenv | wc -c",
        "x".repeat(bytes)
    );
    text.into_bytes()
}

#[test]
fn a_long_text_runs_as_a_short_one_does() {
    let case = Case::new();
    let tell = |bytes: usize| {
        let object = from_input(&case, &long(bytes)).sh_object();
        assert_eq!(object["exit_status"], 0, "{}", object["error"]);
        let printed = object["stdout"]["text"].as_str().expect("it is text").to_owned();
        let (length, rest) = printed.split_once(' ').expect("there are several words");
        assert_eq!(length, bytes.to_string());
        rest.to_owned()
    };
    let short = tell(10);
    assert!(short.starts_with("0 bash\n"), "{short}");
    for bytes in [200 << 10, 1 << 20] {
        assert_eq!(
            tell(bytes),
            short,
            "{bytes} bytes: no parameter and no variable is left"
        );
    }
}

#[test]
fn a_text_beyond_every_limit_is_an_error_with_its_size_and_the_limit() {
    let case = Case::new();
    let done = from_input(&case, &long(10 << 20));
    assert_eq!(done.code(), 126);
    let object = done.sh_object();
    assert_eq!(object["error"]["kind"], "argument_too_long");
    let message = object["error"]["message"].as_str().expect("it is text");
    // Beside the text stand only a few words and the variables.
    let numbers: Vec<usize> = message
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect();
    assert!(
        numbers.iter().any(|number| (10 << 20..11 << 20).contains(number)),
        "{message}"
    );
    assert!(
        numbers.iter().any(|number| (1 << 17..10 << 20).contains(number)),
        "{message}"
    );
}

#[test]
fn a_text_may_be_a_file() {
    let case = Case::new();
    let file = case.file("script", "#!/bin/false\necho from the file\nexit 4\n");
    let done = case.call(["sh", "--file", file.to_str().expect("its name is text")]);
    assert_eq!((done.code(), done.text()), (4, "from the file\n[exit code: 4]\n"));
}
