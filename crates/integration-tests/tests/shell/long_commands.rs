//! A command longer than one argument may be runs as a short one would.

use dsh_shell::{ErrorKind, RunResult, ShellRequest};

use crate::fixture::{Tier, on_each_tier};
use crate::stage::{Stage, assert_exit, stderr, stdout, whole};

on_each_tier! {
    a_command_of_any_length_is_run_whole,
    no_character_is_cut_at_a_border,
    a_long_command_leaves_no_variable_and_no_parameter,
    a_long_command_has_the_exit_status_of_a_short_one,
    a_long_command_may_hold_documents_and_quotes,
    a_command_beyond_all_limits_is_an_error_with_size_and_limit,
}

/// The longest argument, without the NUL at its end (`execve(2)`).
const LONGEST: usize = 128 * 1024 - 1;
/// The largest limit for all arguments and variables together, whatever the limit of the stack (`execve(2)`).
const MOST: u64 = 6 << 20;
const TOO_MUCH: usize = 65 << 20;

/// The shells that are here. The last is not on every machine.
fn shells() -> Vec<&'static str> {
    let zsh = ["/bin/zsh", "/usr/bin/zsh"];
    let there = zsh.into_iter().find(|path| std::path::Path::new(path).exists());
    ["bash", "sh"].into_iter().chain(there).collect()
}

#[track_caller]
fn on_each_shell(tier: Tier, check: impl Fn(&Stage, &str)) {
    for shell in shells() {
        let stage = Stage::with(tier, |config| config.program = vec![shell.into()]);
        check(&stage, shell);
        stage.end();
    }
}

/// The same command, padded to this length by a comment before it.
fn padded(command: &str, length: usize) -> String {
    let padding = length
        .checked_sub(command.len() + 2)
        .expect("it is shorter than that");
    format!("#{}\n{command}", "x".repeat(padding))
}

fn a_command_of_any_length_is_run_whole(tier: Tier) {
    on_each_shell(tier, |stage, shell| {
        for length in [
            LONGEST,
            LONGEST + 1,
            LONGEST + 2,
            2 * LONGEST,
            2 * LONGEST + 1,
            1 << 20,
        ] {
            let result = stage.run(&padded("echo ran", length));
            assert_exit(&result, 0);
            assert_eq!(
                (&stdout(&result)[..], &stderr(&result)[..]),
                ("ran\n", ""),
                "{shell}, {length} bytes"
            );
        }
    });
}

/// The text comes back byte by byte, wherever its characters fall.
fn no_character_is_cut_at_a_border(tier: Tier) {
    on_each_shell(tier, |stage, shell| {
        for shift in 0..4 {
            let text = format!(
                "{}{}",
                "-".repeat(shift),
                "\u{1d11e}\u{2014}\u{e9}".repeat(16_000)
            );
            let mut request = ShellRequest::new(format!("printf %s '{text}'"));
            request.stdout_max_bytes = Some(1 << 20);
            let result = stage.run_request(request);
            assert_exit(&result, 0);
            assert!(
                whole(&result.stdout) == text.as_bytes(),
                "{shell}, shifted by {shift}"
            );
        }
    });
}

fn a_long_command_leaves_no_variable_and_no_parameter(tier: Tier) {
    on_each_shell(tier, |stage, shell| {
        let names = match shell {
            "bash" => "compgen -v",
            // Names and values; what differs from call to call by itself is left out.
            _ => "set | grep -v -e '^_=' -e '^PPID=' -e '^RANDOM=' -e '^LINENO=' -e '^DSH_SHELL_CALL='",
        };
        let command = format!("echo \"$# [$*] $0 $-\"; {names}");
        let short = stage.run(&command);
        assert_exit(&short, 0);
        for length in [LONGEST + 1, 3 * LONGEST] {
            let long = stage.run(&padded(&command, length));
            let (short, long) = (stdout(&short), stdout(&long));
            let differing: Vec<_> = short
                .lines()
                .zip(long.lines())
                .filter(|(short, long)| short != long)
                .collect();
            assert!(differing.is_empty(), "{shell}, {length} bytes: {differing:?}");
            assert_eq!(
                short.lines().count(),
                long.lines().count(),
                "{shell}, {length} bytes"
            );
        }
        assert!(stdout(&short).starts_with("0 [] "), "{short:?}");
    });
}

fn a_long_command_has_the_exit_status_of_a_short_one(tier: Tier) {
    on_each_shell(tier, |stage, shell| {
        for (command, prints) in [
            ("exit 7", ""),
            ("false", ""),
            ("true", ""),
            ("set -e; false; echo unreached", ""),
            ("trap 'echo trapped' EXIT; exit 3", "trapped\n"),
            ("(exit 9)", ""),
            ("kill -9 $$", ""),
            ("no-such-command-anywhere", ""),
            ("if", ""),
            ("echo 'unterminated", ""),
        ] {
            let short = stage.run(command);
            let long = stage.run(&padded(command, 2 * LONGEST));
            assert_eq!(long.outcome, short.outcome, "{shell}: {command}");
            assert_eq!(stdout(&long), prints, "{shell}: {command}");
            assert_eq!(
                stderr(&long).is_empty(),
                stderr(&short).is_empty(),
                "{shell}: {command}"
            );
        }
    });
}

fn a_long_command_may_hold_documents_and_quotes(tier: Tier) {
    on_each_shell(tier, |stage, shell| {
        let line = "a \"b\" 'c' $d `e` \\f !g {h} #i\n";
        let document = line.repeat(3 * LONGEST / line.len());
        let mut request = ShellRequest::new(format!("cat <<'END'\n{document}END\necho \"$0\" \"$#\""));
        request.stdout_max_bytes = Some(1 << 20);
        let result: RunResult = stage.run_request(request);
        assert_exit(&result, 0);
        let printed = stdout(&result);
        let rest = printed.strip_prefix(&document).expect("the document comes back");
        assert!(rest.ends_with(" 0\n"), "{shell}: {rest}");
    });
}

fn a_command_beyond_all_limits_is_an_error_with_size_and_limit(tier: Tier) {
    let stage = Stage::new(tier);
    let command = padded("echo ran", TOO_MUCH);
    let error = stage
        .try_run(ShellRequest::new(command))
        .expect_err("no system takes that");
    assert_eq!(error.kind(), Some(ErrorKind::ArgumentTooLong), "{error}");
    let text = error.to_string();
    let numbers: Vec<u64> = text
        .split(|character: char| !character.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    assert!(
        numbers.iter().any(|&number| number >= TOO_MUCH as u64),
        "the size is named: {text}"
    );
    assert!(
        numbers.iter().any(|&number| (1 << 17..=MOST).contains(&number)),
        "the limit is named: {text}"
    );
    assert!(
        text.len() < 1000,
        "the command itself is not repeated: {} bytes",
        text.len()
    );
    stage.end();
}
