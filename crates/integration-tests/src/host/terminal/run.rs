//! One command on a terminal.

use std::error::Error;
use std::time::Duration;

use dsh_subprocess::SubprocessRuntime;
use dsh_subprocess_local::LocalRuntime;
use pollster::block_on;
use tokio_util::sync::CancellationToken;

use super::{Screen, spec, words};
use crate::host::Report;

/// `terminal [--cwd=DIR] [--env=NAME=VALUE]… [--terminal-type=NAME] [--once=WORD] [--inspect] [--type=TEXT | --terminate]
/// ARGV…`: one command to the end of its session. Once it has printed a line that begins with the word, it is told whether the
/// foreground waits for input, the text is typed, or the session is terminated, with a grace that no test waits out.
pub(in crate::host) fn run(
    runtime: &LocalRuntime,
    report: &Report,
    args: Vec<String>,
) -> Result<(), Box<dyn Error>> {
    let mut spec = spec(&[]);
    let (mut once, mut typed, mut inspect, mut terminate) = (None, None, false, false);
    let mut rest = args.into_iter().peekable();
    while let Some(option) = rest.next_if(|argument| argument.starts_with("--")) {
        match option.split_once('=').unwrap_or((&option, "")) {
            ("--cwd", directory) => spec.cwd = directory.into(),
            ("--env", entry) => {
                let (name, value) = entry.split_once('=').ok_or("the entry has no value")?;
                spec.env.insert(name.into(), Some(value.into()));
            }
            ("--terminal-type", name) => spec.terminal_type = name.into(),
            ("--once", word) => once = Some(word.to_owned()),
            ("--type", text) => typed = Some(text.to_owned()),
            ("--inspect", "") => inspect = true,
            ("--terminate", "") => terminate = true,
            _ => return Err(format!("`{option}` is no option of `terminal`").into()),
        }
    }
    let argv: Vec<String> = rest.collect();
    spec.argv = words(&argv).into_iter().map(Into::into).collect();
    spec.grace = Duration::from_secs(300);
    let mut terminal = match block_on(runtime.spawn_terminal(spec)) {
        Ok(terminal) => terminal,
        Err(error) => {
            report.error("refused", &error);
            return Ok(());
        }
    };
    let mut screen = Screen::of(&mut terminal)?;
    if let Some(word) = once {
        screen.wait_for(&word, 1)?;
    }
    if inspect {
        let foreground = block_on(terminal.inspect_foreground())?.ok_or("nobody has the terminal")?;
        report.line("input", foreground.input.to_string());
    }
    if let Some(text) = typed {
        block_on(terminal.write(text))?;
    }
    if terminate {
        drop(terminal.terminate());
    }
    report.line("output", screen.rest()?);
    report.line("outcome", block_on(terminal.done())?.to_string());
    let gone = block_on(terminal.wait_for_exit(&CancellationToken::new()))?;
    report.line("gone", gone.to_string());
    block_on(runtime.dispose())?;
    Ok(())
}
