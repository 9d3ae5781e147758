//! The errors of the seam, as JavaScript gets them: an `Error` with properties.

use std::error::Error as _;
use std::io;

use dsh_subprocess::{Error, ErrorKind, MayHaveStarted};
use napi::bindgen_prelude::{JsObjectValue, Object};
use napi::{Env, JsValue, Result, Status, sys};

use crate::tree::Member;

/// Makes the value that is thrown or rejected with.
pub(crate) fn object(env: Env, error: &Error) -> Result<sys::napi_value> {
    let reported = napi::Error::new(Status::GenericFailure, error.to_string());
    let mut object: Object<'_> = env.create_error(reported)?;
    // What Node-API puts there is its own status.
    object.delete_named_property("code")?;
    object.set("kind", format!("{:?}", error.kind()))?;
    object.set("operation", error.operation())?;
    object.set("mayHaveStarted", may_have_started(error.started()))?;
    if let Some(errno) = errno(error) {
        if let Some(code) = code(errno) {
            object.set("code", code)?;
        }
        object.set("errno", -errno)?;
    }
    if error.kind() == ErrorKind::Survivors {
        let survivors: Vec<Member> = error.survivors().iter().map(Member::from).collect();
        object.set("survivors", survivors)?;
    }
    if let Some(written) = error.written() {
        #[expect(clippy::cast_precision_loss, reason = "no write has 2^53 bytes")]
        object.set("written", written as f64)?;
    }
    Ok(object.raw())
}

/// Makes an error that a function throws.
pub(crate) fn thrown(env: Env, error: &Error) -> napi::Error {
    match object(env, error) {
        Ok(value) => napi::Error::from(Object::from_raw(env.raw(), value).to_unknown()),
        Err(error) => error,
    }
}

fn may_have_started(started: MayHaveStarted) -> &'static str {
    match started {
        MayHaveStarted::No => "no",
        MayHaveStarted::Yes => "yes",
        MayHaveStarted::Unknown => "unknown",
    }
}

/// Returns the system's number of an error: the one it came from, else the one that says the same as its kind.
fn errno(error: &Error) -> Option<i32> {
    use rustix::io::Errno;

    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(number) = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error)
        {
            return Some(number);
        }
        source = cause.source();
    }
    let errno = match error.kind() {
        ErrorKind::ProgramNotFound | ErrorKind::CwdNotFound | ErrorKind::InterpreterNotFound => Errno::NOENT,
        ErrorKind::ProgramNotExecutable | ErrorKind::CwdNotSearchable => Errno::ACCESS,
        ErrorKind::CwdNotDirectory => Errno::NOTDIR,
        ErrorKind::ProgramFormat => Errno::NOEXEC,
        ErrorKind::ArgumentTooLong => Errno::TOOBIG,
        ErrorKind::PermissionDenied => Errno::PERM,
        ErrorKind::ResourceExhausted => Errno::AGAIN,
        ErrorKind::Exited => Errno::PIPE,
        _ => return None,
    };
    Some(errno.raw_os_error())
}

/// Returns the name of a number, as Node.js has it.
fn code(errno: i32) -> Option<&'static str> {
    use rustix::io::Errno;

    const NAMES: &[(Errno, &str)] = &[
        (Errno::TOOBIG, "E2BIG"),
        (Errno::ACCESS, "EACCES"),
        (Errno::AGAIN, "EAGAIN"),
        (Errno::BUSY, "EBUSY"),
        (Errno::EXIST, "EEXIST"),
        (Errno::INVAL, "EINVAL"),
        (Errno::IO, "EIO"),
        (Errno::ISDIR, "EISDIR"),
        (Errno::LOOP, "ELOOP"),
        (Errno::MFILE, "EMFILE"),
        (Errno::NAMETOOLONG, "ENAMETOOLONG"),
        (Errno::NFILE, "ENFILE"),
        (Errno::NOENT, "ENOENT"),
        (Errno::NOEXEC, "ENOEXEC"),
        (Errno::NOMEM, "ENOMEM"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::NOTDIR, "ENOTDIR"),
        (Errno::NXIO, "ENXIO"),
        (Errno::PERM, "EPERM"),
        (Errno::PIPE, "EPIPE"),
        (Errno::SRCH, "ESRCH"),
        (Errno::TXTBSY, "ETXTBSY"),
    ];
    NAMES
        .iter()
        .find(|(number, _)| number.raw_os_error() == errno)
        .map(|(_, name)| *name)
}
