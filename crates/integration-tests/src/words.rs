//! Calls about what a child is given: arguments, environment, directory, input.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;

use crate::{Answer, number};

/// `exit N`: ends with that code.
pub(crate) fn exit(args: &[String]) -> Answer {
    Ok(ExitCode::from(number::<u8>(args, 0, "the exit code")?))
}

/// `argv ARGUMENT…`: writes each argument with a NUL after it, the program's own name first.
pub(crate) fn argv(args: &[OsString]) -> Answer {
    let program = std::env::args_os().next().unwrap_or_default();
    let mut out = io::stdout().lock();
    for argument in std::iter::once(&program).chain(args) {
        out.write_all(argument.as_bytes())?;
        out.write_all(b"\0")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// `echo ARGUMENT…`: writes the arguments with a space between, and a line end.
pub(crate) fn echo(args: &[OsString]) -> Answer {
    let mut line = args.join(" ".as_ref()).into_vec();
    line.push(b'\n');
    io::stdout().write_all(&line)?;
    Ok(ExitCode::SUCCESS)
}

/// `env`: writes each variable as `NAME=VALUE` with a NUL after it.
pub(crate) fn env() -> Answer {
    let mut out = io::stdout().lock();
    for (name, value) in std::env::vars_os() {
        out.write_all(&[name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// `pwd`: writes the working directory, as the kernel knows it, with nothing after it.
pub(crate) fn pwd() -> Answer {
    let mut out = io::stdout().lock();
    out.write_all(std::env::current_dir()?.as_os_str().as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// `cat`: copies its input to its output, as it comes.
pub(crate) fn cat() -> Answer {
    let mut out = io::stdout().lock();
    io::copy(&mut io::stdin().lock(), &mut out)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
