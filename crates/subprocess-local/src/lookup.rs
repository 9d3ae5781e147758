//! Where a program is: the candidates for a child, and the search for a caller.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use dsh_subprocess::{Error, ErrorKind, WorldPath, WorldString, validate_overlay};
use dsh_subprocess_sys::{Errno, file};
use tokio_util::sync::CancellationToken;

use crate::failure::shown;

/// What is searched without a `PATH` (contract item 177).
pub(crate) const DEFAULT_PATH: &[u8] = b"/usr/bin:/bin";

/// Returns the paths that a child tries in order. A name with a slash is the only one; relative ones are the child's own,
/// from its working directory.
pub(crate) fn candidates(program: &[u8], path: &[u8]) -> Vec<Vec<u8>> {
    if program.contains(&b'/') {
        return vec![program.to_vec()];
    }
    path.split(|&byte| byte == b':')
        .map(|directory| join(directory, program))
        .collect()
}

/// An empty entry is the current directory, spelt so that no program takes the result for an option.
fn join(directory: &[u8], program: &[u8]) -> Vec<u8> {
    let directory = if directory.is_empty() { b"." } else { directory };
    let mut path = Vec::with_capacity(directory.len() + 1 + program.len());
    path.extend_from_slice(directory);
    if !directory.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(program);
    path
}

/// Finds an executable by the rules of the seam's `resolve_executable`. Relative entries of `path` are looked up from this
/// process's own working directory. It may take as long as the file systems do.
pub(crate) fn resolve(
    command: &WorldString,
    path: &[u8],
    cancel: &CancellationToken,
) -> Result<WorldPath, Error> {
    let bytes = command.as_bytes();
    let program = Path::new(OsStr::from_bytes(bytes));
    check_cancelled(command, cancel)?;
    if program.is_absolute() {
        let result = file::check_executable(program);
        check_cancelled(command, cancel)?;
        return result
            .map(|()| WorldPath::from(command.clone()))
            .map_err(|errno| {
                let why = match errno {
                    Errno::NOENT => "it does not exist",
                    Errno::ACCESS if program.is_dir() => "it is a directory",
                    Errno::ACCESS => "it may not be executed, or is no regular file",
                    _ => "it cannot be looked at",
                };
                failure(
                    ErrorKind::ProgramNotExecutable,
                    format!("{} is not an executable file: {why}", shown(bytes)),
                )
                .with_source(std::io::Error::from(errno))
            });
    }
    for directory in path.split(|&byte| byte == b':') {
        check_cancelled(command, cancel)?;
        let candidate = absolute(join(directory, bytes))?;
        let found = file::check_executable(&candidate).is_ok();
        check_cancelled(command, cancel)?;
        if found {
            return Ok(WorldPath::from(candidate));
        }
    }
    Err(failure(
        ErrorKind::ProgramNotFound,
        format!(
            "{} was not found on PATH (searched {})",
            shown(bytes),
            shown(path)
        ),
    ))
}

/// Refuses what needs no look: an empty command, a relative path, a NUL byte, a bad overlay.
pub(crate) fn validate(lookup: &dsh_subprocess::Lookup) -> Result<(), Error> {
    let bytes = lookup.command.as_bytes();
    check_cancelled(&lookup.command, &lookup.cancel)?;
    if bytes.is_empty() {
        return Err(failure(
            ErrorKind::InvalidSpec,
            "the command must be non-empty".to_owned(),
        ));
    }
    if bytes.contains(&0) {
        return Err(failure(
            ErrorKind::InvalidSpec,
            format!("the command {} contains a NUL byte", shown(bytes)),
        ));
    }
    if bytes.contains(&b'/') && !bytes.starts_with(b"/") {
        return Err(failure(
            ErrorKind::InvalidSpec,
            format!(
                "{} is a relative path, and no directory is there to look it up from",
                shown(bytes)
            ),
        ));
    }
    validate_overlay(&lookup.env)
}

fn absolute(path: Vec<u8>) -> Result<PathBuf, Error> {
    let path = PathBuf::from(std::ffi::OsString::from_vec(path));
    if path.is_absolute() {
        return Ok(path);
    }
    std::path::absolute(&path).map_err(|error| {
        failure(
            ErrorKind::CwdNotFound,
            format!(
                "{} is relative, and this process has no working directory",
                path.display()
            ),
        )
        .with_source(error)
    })
}

fn check_cancelled(command: &WorldString, cancel: &CancellationToken) -> Result<(), Error> {
    if cancel.is_cancelled() {
        return Err(cancelled(command));
    }
    Ok(())
}

/// The answer to a look-up that was cancelled.
pub(crate) fn cancelled(command: &WorldString) -> Error {
    failure(
        ErrorKind::Cancelled,
        format!("the look-up of {} was cancelled", shown(command.as_bytes())),
    )
}

fn failure(kind: ErrorKind, message: String) -> Error {
    Error::new(kind, "look-up", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(program: &str, path: &str) -> Vec<String> {
        candidates(program.as_bytes(), path.as_bytes())
            .into_iter()
            .map(|candidate| String::from_utf8(candidate).expect("the input was text"))
            .collect()
    }

    #[test]
    fn item_177_a_bare_name_is_tried_in_each_directory_in_order() {
        assert_eq!(names("ls", "/usr/bin:/bin"), ["/usr/bin/ls", "/bin/ls"]);
    }

    #[test]
    fn item_177_empty_and_relative_entries_are_the_childs_own() {
        assert_eq!(names("-x", ":bin:/a/:"), ["./-x", "bin/-x", "/a/-x", "./-x"]);
    }

    #[test]
    fn a_name_with_a_slash_is_not_searched() {
        assert_eq!(names("a/b", "/usr/bin"), ["a/b"]);
    }
}
