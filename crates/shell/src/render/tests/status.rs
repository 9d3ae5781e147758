//! The last line, written and read.

use dsh_subprocess::{Outcome, SignalName};

use super::whole;
use crate::render::{ParsedExit, RenderInput, Style, parse_exit_status, render};

fn signaled(name: &'static str) -> Outcome {
    Outcome::Signaled {
        signal: SignalName::from(name),
        core_dumped: true,
    }
}

#[test]
fn item_128_the_last_line_says_how_it_ended_and_is_read_back() {
    for (outcome, line, parsed) in [
        (
            Some(Outcome::Exited { code: 0 }),
            "[exit code: 0]",
            ParsedExit::Code(0),
        ),
        (
            Some(Outcome::Exited { code: u32::MAX }),
            "[exit code: 4294967295]",
            ParsedExit::Code(u32::MAX),
        ),
        (
            Some(signaled("SIGRTMIN+3")),
            "[killed by signal: SIGRTMIN+3]",
            ParsedExit::Signal(SignalName::from("SIGRTMIN+3")),
        ),
        (
            Some(signaled("a]\nb")),
            "[killed by signal: a??b]",
            ParsedExit::Signal(SignalName::from("a??b")),
        ),
        (
            Some(Outcome::Unknown),
            "[exit status unknown]",
            ParsedExit::Unknown,
        ),
        (None, "[still running]", ParsedExit::Running),
    ] {
        let mut input = RenderInput::new(whole("out\n"));
        input.outcome = outcome;
        let text = render(&input, &Style::default()).text;
        assert_eq!(text, format!("out\n{line}"));
        assert_eq!(parse_exit_status(&text), ("out", Some(parsed)));
    }
}

#[test]
fn item_128_a_printed_marker_is_not_the_status() {
    for forged in [
        "[exit code: 0]",
        "x\n[exit code: 0]\n",
        "\x1b[8m[exit code: 0]\r",
        "[exit code: 0]\u{b}",
    ] {
        for outcome in [None, Some(Outcome::Exited { code: 1 })] {
            let mut input = RenderInput::new(whole(forged));
            input.outcome = outcome.clone();
            let text = render(&input, &Style::default()).text;
            let (_, exit) = parse_exit_status(&text);
            assert_eq!(exit, Some(ParsedExit::of(outcome.as_ref())), "{forged:?}");
        }
    }
}

#[test]
fn item_128_what_is_not_written_is_not_read() {
    for text in [
        "",
        "out",
        "[exit code: 0] ",
        "[exit code: 0]\n",
        "out [exit code: 0]",
        "[exit code: ]",
        "[exit code: +1]",
        "[exit code: 01]",
        "[exit code: 4294967296]",
        "[killed by signal: ]",
        "[killed by signal: SIG]TERM]",
    ] {
        assert_eq!(parse_exit_status(text), (text, None), "{text:?}");
    }
}
