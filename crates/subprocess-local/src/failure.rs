//! Failed spawns, in words that name the input and the cause.

use std::io;

use dsh_subprocess::{Environment, Error, ErrorKind, MayHaveStarted, WorldPath, WorldString};
use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::limits;
use dsh_subprocess_sys::spawn::{ExecFailure, FailedStep, Program, StartError};
use dsh_subprocess_sys::warden::{LaunchError, StartWardenError};

use crate::lookup;
use crate::warden::RefusedTree;

/// File types in a mode (inode(7)).
const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

fn error(kind: ErrorKind, message: String, errno: Errno) -> Error {
    Error::new(kind, "spawn", message).with_source(io::Error::from(errno))
}

/// A spawn for which no child could be made, or its pipes, or its group.
pub(crate) fn no_child(what: &str, errno: Errno) -> Error {
    let (kind, cause) = match errno {
        Errno::MFILE => (ErrorKind::ResourceExhausted, descriptors()),
        Errno::NFILE => (
            ErrorKind::ResourceExhausted,
            "this machine has no file descriptor left".to_owned(),
        ),
        Errno::AGAIN => (ErrorKind::ResourceExhausted, processes()),
        Errno::NOMEM => (
            ErrorKind::ResourceExhausted,
            "this machine has no memory left for it".to_owned(),
        ),
        Errno::PERM | Errno::ACCESS => (
            ErrorKind::PermissionDenied,
            "a security policy forbids it".to_owned(),
        ),
        other => (ErrorKind::Os, io::Error::from(other).to_string()),
    };
    error(kind, format!("{what} could not be made: {cause}"), errno)
}

/// As [`no_child`], for errors of the standard library.
pub(crate) fn no_child_io(what: &str, cause: &io::Error) -> Error {
    no_child(what, Errno::from_io_error(cause).unwrap_or(Errno::IO))
}

/// No terminal could be made.
pub(crate) fn no_terminal(errno: Errno) -> Error {
    let (kind, cause) = match errno {
        Errno::NOSPC => (
            ErrorKind::ResourceExhausted,
            "this machine has no terminal left (/proc/sys/kernel/pty/max)".to_owned(),
        ),
        Errno::NOENT | Errno::NODEV | Errno::NXIO | Errno::IO => (
            ErrorKind::Unsupported,
            format!("/dev/ptmx gives none ({})", io::Error::from(errno)),
        ),
        other => return no_child("a terminal", other),
    };
    error(kind, format!("a terminal could not be made: {cause}"), errno)
}

fn descriptors() -> String {
    match limits::descriptors().0 {
        Some(limit) => format!("this process has no file descriptor left (its limit is {limit})"),
        None => "this process has no file descriptor left".to_owned(),
    }
}

fn processes() -> String {
    match limits::processes().0 {
        Some(limit) => format!(
            "no process is left (this user's limit is {limit}; a cgroup or the machine may have another)"
        ),
        None => "no process is left".to_owned(),
    }
}

/// A clone that failed.
pub(crate) fn start(failure: &StartError) -> Error {
    match failure {
        StartError::Stack(errno) => no_child("the stack of the child", *errno),
        StartError::Clone(errno) => no_child("the child process", *errno),
    }
}

/// There is no thread to start the target on.
pub(crate) fn no_launcher(cause: io::Error) -> Error {
    Error::new(
        ErrorKind::ResourceExhausted,
        "spawn",
        "no thread could be made to start the target",
    )
    .with_source(cause)
}

/// No warden could be had for a tree.
pub(crate) fn no_warden(refused: &RefusedTree) -> Error {
    match refused {
        RefusedTree::Io(errno) => no_child("a warden for the tree", *errno),
        RefusedTree::Start(cause) => {
            let (kind, why) = match cause {
                StartWardenError::Resource { what, source } => return no_child(what, *source),
                StartWardenError::Start(failure) => return start(failure),
                other => (ErrorKind::OwnershipUnavailable, chain(other)),
            };
            Error::new(
                kind,
                "spawn",
                format!("the runtime's warden could not be started: {why}"),
            )
        }
    }
}

/// A tree's warden could not be told what to start.
pub(crate) fn unlaunched(cause: &LaunchError) -> Error {
    match cause {
        LaunchError::Block(errno) => {
            no_child("a file in memory for the arguments and the environment", *errno)
        }
        LaunchError::Send(errno) => no_child("the message to the tree's warden", *errno),
        LaunchError::Unsupported => Error::new(ErrorKind::InvalidSpec, "spawn", cause.to_string()),
    }
}

/// An error with all that caused it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The warden that was to start the target ended, or never answered.
pub(crate) fn lost_warden(how: &str, started: MayHaveStarted) -> Error {
    Error::new(
        ErrorKind::OwnershipLost,
        "spawn",
        format!("the warden that was to start the target {how}; whatever it started is ended"),
    )
    .with_started(started)
}

/// A child that never reached its program.
pub(crate) fn exec(failure: &ExecFailure, program: &Program, asked: &Asked) -> Error {
    let errno = Errno::from_raw_os_error(failure.errno);
    match failure.step {
        FailedStep::EnterCwd => cwd(asked, failure.mode, errno),
        FailedStep::Exec => exec_candidate(failure, program, asked, errno),
        FailedStep::ExecShell => error(
            ErrorKind::InterpreterNotFound,
            format!(
                "{} has no interpreter line, and /bin/sh cannot run it: {}",
                shown(program.candidate(failure.candidate)),
                cause(errno)
            ),
            errno,
        ),
        FailedStep::JoinCgroup => error(
            ErrorKind::OwnershipUnavailable,
            format!("the child could not enter its cgroup: {}", cause(errno)),
            errno,
        ),
        FailedStep::Stdio => error(
            ErrorKind::Os,
            format!(
                "the child's standard descriptors could not be put in place: {}",
                cause(errno)
            ),
            errno,
        ),
        FailedStep::CloseDescriptors => error(
            ErrorKind::Os,
            format!(
                "the host's descriptors could not be closed in the child: {}",
                cause(errno)
            ),
            errno,
        ),
        FailedStep::Limits => error(
            ErrorKind::Os,
            format!("the child's resource limits could not be set: {}", cause(errno)),
            errno,
        ),
        // To a process that leads no session it is refused.
        FailedStep::ControllingTerminal if errno == Errno::PERM => error(
            ErrorKind::PermissionDenied,
            "the child could not be given a session on the terminal: a security policy forbids it".to_owned(),
            errno,
        ),
        FailedStep::ControllingTerminal => error(
            ErrorKind::Os,
            format!(
                "the terminal could not be made the controlling one of the child's session: {}",
                cause(errno)
            ),
            errno,
        ),
    }
}

/// What was asked for, as far as the words of a failure need it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) argv: Vec<WorldString>,
    pub(crate) cwd: WorldPath,
    /// The environment that the child would have had.
    pub(crate) environment: Environment,
}

impl Asked {
    /// Returns the child's `PATH`.
    pub(crate) fn path(&self) -> &[u8] {
        self.environment
            .get("PATH")
            .map_or(lookup::DEFAULT_PATH, WorldString::as_bytes)
    }
}

fn cwd(asked: &Asked, mode: Option<u32>, errno: Errno) -> Error {
    let cwd = shown(asked.cwd.as_bytes());
    let (kind, why) = match errno {
        Errno::NOENT => (ErrorKind::CwdNotFound, "does not exist".to_owned()),
        Errno::NOTDIR => (ErrorKind::CwdNotDirectory, "is not a directory".to_owned()),
        Errno::ACCESS if mode.is_some_and(|mode| mode & TYPE == DIRECTORY) => (
            ErrorKind::CwdNotSearchable,
            "may not be entered: it lacks search permission".to_owned(),
        ),
        Errno::ACCESS => (
            ErrorKind::CwdNotSearchable,
            "may not be reached: a directory above it lacks search permission".to_owned(),
        ),
        Errno::NAMETOOLONG | Errno::LOOP => (
            ErrorKind::PathUnresolvable,
            format!("cannot be resolved: {}", cause(errno)),
        ),
        other => (ErrorKind::Os, format!("cannot be entered: {}", cause(other))),
    };
    error(kind, format!("the working directory {cwd} {why}"), errno)
}

fn exec_candidate(failure: &ExecFailure, program: &Program, asked: &Asked, errno: Errno) -> Error {
    let path = shown(program.candidate(failure.candidate));
    let name = shown(asked.argv.first().map_or(b"", |program| program.as_bytes()));
    let searched = !asked
        .argv
        .first()
        .is_some_and(|program| program.as_bytes().contains(&b'/'));
    match errno {
        Errno::NOENT if failure.mode.is_some() => {
            let interpreter = interpreter(&failure.sample);
            let what = interpreter.map_or_else(
                || "its loader".to_owned(),
                |interpreter| format!("its interpreter {}", shown(interpreter)),
            );
            error(
                ErrorKind::InterpreterNotFound,
                format!("{path} cannot be executed: {what} does not exist"),
                errno,
            )
        }
        Errno::NOENT if searched => {
            let places = shown(asked.path());
            error(
                ErrorKind::ProgramNotFound,
                format!("the program {name} was not found on PATH (searched {places})"),
                errno,
            )
        }
        Errno::NOENT => error(
            ErrorKind::ProgramNotFound,
            format!("the program {path} does not exist"),
            errno,
        ),
        Errno::NOTDIR => error(
            ErrorKind::ProgramNotFound,
            format!("the program {path} does not exist: a part of its path is not a directory"),
            errno,
        ),
        Errno::ACCESS => {
            let why = match failure.mode {
                Some(mode) if mode & TYPE == DIRECTORY => "is a directory",
                Some(mode) if mode & TYPE != REGULAR => "is not a regular file",
                Some(mode) if mode & 0o111 == 0 => "is not executable: its mode has no execute permission",
                Some(_) => {
                    "may not be executed by this user, lies on a file system mounted noexec, or names an interpreter that may not be executed"
                }
                None => "may not be reached: a directory above it lacks search permission",
            };
            error(
                ErrorKind::ProgramNotExecutable,
                format!("the program {path} {why}"),
                errno,
            )
        }
        Errno::PERM => error(
            ErrorKind::ProgramNotExecutable,
            format!("the program {path} may not be executed: a security policy forbids it"),
            errno,
        ),
        Errno::TXTBSY => error(
            ErrorKind::ProgramNotExecutable,
            format!("the program {path} is open for writing, so it cannot be executed"),
            errno,
        ),
        Errno::NOEXEC => error(
            ErrorKind::ProgramFormat,
            format!("the program {path} is of no format that this machine can run"),
            errno,
        ),
        Errno::LIBBAD | Errno::INVAL | Errno::ISDIR => error(
            ErrorKind::ProgramFormat,
            format!("the program {path} cannot be loaded: {}", cause(errno)),
            errno,
        ),
        Errno::TOOBIG => too_big(asked, errno),
        Errno::LOOP if failure.mode.is_some() => error(
            ErrorKind::ProgramFormat,
            format!(
                "the program {path} cannot be executed: its interpreter is a script, whose interpreter is one, and so on"
            ),
            errno,
        ),
        Errno::NAMETOOLONG | Errno::LOOP => error(
            ErrorKind::PathUnresolvable,
            format!(
                "the path of the program {path} cannot be resolved: {}",
                cause(errno)
            ),
            errno,
        ),
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => {
            no_child(&format!("the process for {path}"), errno)
        }
        other => error(
            ErrorKind::Os,
            format!("the program {path} cannot be executed: {}", cause(other)),
            errno,
        ),
    }
}

/// Names the argument that is too long, or the sum that is.
pub(crate) fn too_big(asked: &Asked, errno: Errno) -> Error {
    let limit = limits::argument_bytes();
    let argument = asked
        .argv
        .iter()
        .enumerate()
        .find(|(_, argument)| argument.as_bytes().len() >= limit);
    if let Some((index, argument)) = argument {
        let length = argument.as_bytes().len();
        let message = format!(
            "argv[{index}] is {length} bytes long, and one argument may have at most {} here",
            limit - 1
        );
        return error(ErrorKind::ArgumentTooLong, message, errno);
    }
    // A variable is passed as NAME=value.
    let length = |name: &WorldString, value: &WorldString| name.as_bytes().len() + 1 + value.as_bytes().len();
    let variable = asked
        .environment
        .iter()
        .find(|(name, value)| length(name, value) >= limit);
    if let Some((name, value)) = variable {
        let length = length(name, value);
        let message = format!(
            "the variable {} is {length} bytes long, and one may have at most {} here",
            shown(name.as_bytes()),
            limit - 1
        );
        return error(ErrorKind::ArgumentTooLong, message, errno);
    }
    // Each string with its NUL, and a pointer to it (execve(2)).
    let each = 1 + size_of::<usize>();
    let arguments: usize = asked
        .argv
        .iter()
        .map(|argument| argument.as_bytes().len() + each)
        .sum();
    let variables: usize = asked
        .environment
        .iter()
        .map(|(name, value)| length(name, value) + each)
        .sum();
    let message = format!(
        "the {} arguments ({arguments} bytes) and {} variables ({variables} bytes) take {} bytes together, and may take at most {} here",
        asked.argv.len(),
        asked.environment.len(),
        arguments + variables,
        limits::arguments_total_bytes()
    );
    error(ErrorKind::ArgumentTooLong, message, errno)
}

/// Returns the interpreter that a script's first line names.
fn interpreter(sample: &[u8]) -> Option<&[u8]> {
    let line = sample
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?
        .trim_ascii_start();
    line.split(|byte| matches!(byte, b' ' | b'\t'))
        .next()
        .filter(|interpreter| !interpreter.is_empty())
}

/// An exec that nobody can follow any more.
pub(crate) fn unobserved(cause: io::Error) -> Error {
    Error::new(
        ErrorKind::ResourceExhausted,
        "spawn",
        "the program took longer than 1 s to start, and no thread could be made to follow it",
    )
    .with_started(MayHaveStarted::Unknown)
    .with_source(cause)
}

fn cause(errno: Errno) -> String {
    let text = io::Error::from(errno).to_string();
    // The standard library adds the number, which is in the source already.
    match text.rfind(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// Quotes bytes of the caller's for one line of text, at most 512 of them.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const LONGEST: usize = 512;
    let cut = &bytes[..bytes.len().min(LONGEST)];
    let more = if bytes.len() > LONGEST { "…" } else { "" };
    let text: String = String::from_utf8_lossy(cut)
        .chars()
        .flat_map(|c| {
            if c.is_control() {
                c.escape_default().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect();
    format!("`{text}{more}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_of_a_script_is_the_first_word_of_its_first_line() {
        assert_eq!(interpreter(b"#!/bin/foo -x\nrest"), Some(&b"/bin/foo"[..]));
        assert_eq!(interpreter(b"#! /bin/foo\n"), Some(&b"/bin/foo"[..]));
        assert_eq!(interpreter(b"#!\n"), None);
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn quoted_input_stays_on_one_line_and_is_bounded() {
        assert_eq!(shown(b"a\nb\x1b"), "`a\\nb\\u{1b}`");
        assert!(shown(&[b'x'; 10_000]).len() < 600);
    }
}
