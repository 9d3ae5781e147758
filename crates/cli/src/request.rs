//! From the command line to a spec: everything that can be refused before anything is started.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::num::NonZeroU64;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use dsh_subprocess::{
    Collect, EnvOverlay, ErrorOutput, Output, SpawnSpec, Spill, SpillLife, Stdin, WorldPath, WorldString,
};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::options::{OwnershipOption, RunOptions};
use crate::own_stream;

/// The largest kept file where none is named.
const DEFAULT_SPILL: NonZeroU64 = NonZeroU64::new(1 << 30).expect("1 GiB is not zero");

/// One run, checked.
pub(crate) struct Request {
    /// What to start.
    pub(crate) spec: SpawnSpec,
    /// What to pump into it, where the spec says [`Stdin::Pipe`].
    pub(crate) input: Option<Input>,
    /// When to end it.
    pub(crate) timeout: Option<Duration>,
    /// What is to own it.
    pub(crate) ownership: OwnershipOption,
}

/// Bytes for the command that are not all known beforehand.
pub(crate) struct Input {
    /// What to call it in an error.
    pub(crate) name: String,
    /// Where they come from. Reading may block for ever.
    pub(crate) source: Box<dyn Read + Send>,
}

/// What a report says of a run whatever became of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject {
    pub(crate) argv: Vec<WorldString>,
    /// `None` where it could not be told.
    pub(crate) cwd: Option<WorldPath>,
}

impl Subject {
    /// Names what the options ask for.
    pub(crate) fn of(command: Vec<OsString>, cwd: Option<&Path>) -> Result<Self, (Self, Failure)> {
        let argv = command.into_iter().map(WorldString::from).collect();
        match working_directory(cwd) {
            Ok(cwd) => Ok(Self {
                argv,
                cwd: Some(cwd.into()),
            }),
            Err(failure) => Err((
                Self {
                    argv,
                    cwd: cwd.map(WorldPath::from),
                },
                failure,
            )),
        }
    }
}

impl Request {
    /// Checks the options and opens what they name.
    ///
    /// It may block in opening a FIFO, so signals must still have their usual effect.
    pub(crate) fn new(options: RunOptions, subject: &Subject) -> Result<Self, Failure> {
        let spill = spill(&options)?;
        let env = overlay(options.env, options.unset)?;
        let (stdin, input) = input(options.stdin, options.stdin_file.as_deref())?;
        let output = if options.json {
            Output::Collect(Collect {
                max_bytes: options.max_bytes,
                head_bytes: options.head_bytes,
                spill,
            })
        } else {
            Output::Pipe
        };
        let spec = SpawnSpec {
            argv: subject.argv.clone(),
            cwd: subject.cwd.clone().unwrap_or_default(),
            env,
            stdin,
            stdout: output.clone(),
            stderr: if options.merge_stderr {
                ErrorOutput::Merge
            } else {
                ErrorOutput::Own(output)
            },
            grace: options.grace,
            drain: options.drain,
            control: false,
            cancel: CancellationToken::new(),
        };
        // The provider checks it again; here it is refused before a runtime is made.
        spec.validate().map_err(|error| Failure::from(&error))?;
        Ok(Self {
            spec,
            input,
            timeout: options.timeout,
            ownership: options.ownership,
        })
    }
}

/// Completes a relative directory with our own.
pub(crate) fn working_directory(asked: Option<&Path>) -> Result<PathBuf, Failure> {
    if asked.is_some_and(|path| path.as_os_str().is_empty()) {
        return Err(Failure::bad_option("--cwd is empty: it must name a directory"));
    }
    if let Some(path) = asked
        && path.is_absolute()
    {
        return Ok(path.to_owned());
    }
    let own = std::env::current_dir().map_err(|error| {
        // The kernel still knows the name of a directory that was removed.
        let name = std::fs::read_link("/proc/self/cwd").unwrap_or_else(|_| PathBuf::from("."));
        let message = format!(
            "the current directory {} cannot be used: {error}; name one with --cwd",
            name.display()
        );
        Failure::new("cwd_not_found", message)
    })?;
    Ok(asked.map_or_else(|| own.clone(), |path| own.join(path)))
}

/// Reads what --spill-max-bytes and --keep-spill say. They are refused where nothing would come of them.
fn spill(options: &RunOptions) -> Result<Option<Spill>, Failure> {
    let asked = match (options.keep_spill, options.spill_max_bytes) {
        (true, _) => "--keep-spill",
        (false, Some(_)) => "--spill-max-bytes",
        (false, None) => return Ok(None),
    };
    if !options.json {
        let message =
            format!("{asked} needs --json: without it the output is passed on and nothing is retained");
        return Err(Failure::bad_option(message));
    }
    let life = if options.keep_spill {
        SpillLife::Keep
    } else {
        SpillLife::Handle
    };
    Ok(Some(Spill {
        max_bytes: options.spill_max_bytes.unwrap_or(DEFAULT_SPILL),
        life,
    }))
}

/// Reads the variables. No message quotes a value: it may be a credential.
pub(crate) fn overlay(set: Vec<OsString>, unset: Vec<OsString>) -> Result<EnvOverlay, Failure> {
    let mut overlay = EnvOverlay::new();
    for (index, assignment) in set.into_iter().enumerate() {
        let bytes = assignment.as_bytes();
        let Some(at) = bytes.iter().position(|&byte| byte == b'=') else {
            // Not quoted, either: without a name it may be all value.
            let message = format!("--env number {}: there is no `=`; write NAME=VALUE", index + 1);
            return Err(Failure::bad_option(message));
        };
        if at == 0 {
            let message = format!(
                "--env number {}: the name before the `=` is empty; write NAME=VALUE",
                index + 1
            );
            return Err(Failure::bad_option(message));
        }
        overlay.insert(bytes[..at].into(), Some(bytes[at + 1..].into()));
    }
    for name in unset {
        if name.is_empty() {
            return Err(Failure::bad_option("--unset: the name is empty"));
        }
        if name.as_bytes().contains(&b'=') {
            return Err(Failure::bad_option(format!(
                "--unset {}: a name holds no `=`",
                before_equals(&name)
            )));
        }
        if let Some(Some(_)) = overlay.insert(WorldString::from(name.as_os_str()), None) {
            let message = format!("--unset {}: --env sets the same variable", name.display());
            return Err(Failure::bad_option(message));
        }
    }
    Ok(overlay)
}

/// Shows an assignment that is out of place without its value.
fn before_equals(assignment: &OsStr) -> String {
    let name = assignment
        .as_bytes()
        .split(|&byte| byte == b'=')
        .next()
        .unwrap_or_default();
    format!("{}=…", String::from_utf8_lossy(name))
}

/// Reads what --stdin and --stdin-file say, and opens what they name.
fn input(text: Option<OsString>, file: Option<&Path>) -> Result<(Stdin, Option<Input>), Failure> {
    let pumped = |name: String, source: Box<dyn Read + Send>| (Stdin::Pipe, Some(Input { name, source }));
    if let Some(path) = file {
        let name = format!("--stdin-file {}", path.display());
        let failure = |error: std::io::Error| Failure::new("input", format!("{name}: {error}"));
        let source = File::open(path).map_err(failure)?;
        // Opening a directory succeeds; only reading it would fail, with the command already running.
        if source.metadata().map_err(failure)?.is_dir() {
            return Err(failure(std::io::ErrorKind::IsADirectory.into()));
        }
        return Ok(pumped(name, Box::new(source)));
    }
    match text {
        None => Ok((Stdin::Ignore, None)),
        Some(dash) if dash == "-" => Ok(pumped("--stdin -".to_owned(), Box::new(own_stream::stdin()))),
        Some(text) => Ok((Stdin::Data(Bytes::from(text.into_vec())), None)),
    }
}
