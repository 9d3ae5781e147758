//! Running other programs with their output passed through.

use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};

/// Runs the command without standard input, and fails unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs the command without standard input, and returns how it ended.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run `{}`", shown(command)))
}

/// Runs the command and returns what it wrote to standard output; its standard error is passed through.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", shown(command), output.status);
    }
    Ok(output.stdout)
}

/// Whether the command can be started and succeeds; whatever it prints is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as a person would type it: the program's file name and the arguments.
pub(crate) fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let mut line = program
        .file_name()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned();
    for argument in command.get_args() {
        let argument = argument.to_string_lossy();
        line.push(' ');
        if argument.is_empty() || argument.contains([' ', '\'', '"', '*', '(', '$']) {
            line.push('\'');
            line.push_str(&argument.replace('\'', r"'\''"));
            line.push('\'');
        } else {
            line.push_str(&argument);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["nextest", "run", "-E", "package(xtask) - test(x)", ""]);
        assert_eq!(
            shown(&command),
            "cargo nextest run -E 'package(xtask) - test(x)' ''"
        );
    }

    #[test]
    fn a_failure_names_the_command_and_its_status() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).expect_err("sh exits with 3");
        assert_eq!(error.to_string(), "`sh -c 'exit 3'` failed: exit status: 3");
    }
}
