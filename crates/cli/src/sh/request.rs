//! From the command line to what is asked of the executor: everything that can be refused before anything is started.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use dsh_shell::{Config, LeftBehindPolicy, OnExpiry, ShellRequest, SpillLife, WorldPath, WorldString};

use super::options::ShOptions;
use crate::failure::Failure;
use crate::options::OwnershipOption;
use crate::own_stream;
use crate::request::{overlay, working_directory};

/// The most that is read of a text or of the command's input: both are held in memory.
const MOST_READ: u64 = 64 << 20;

/// One command, checked.
pub(super) struct Request {
    /// What to run.
    pub(super) asked: ShellRequest,
    /// How.
    pub(super) config: Config,
    /// What is to own it.
    pub(super) ownership: OwnershipOption,
}

/// What a report says of a command whatever became of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject {
    /// The text. `None` where the command line gave none, or more than one.
    pub(crate) command: Option<WorldString>,
    /// Where it runs. `None` where that could not be told.
    pub(crate) cwd: Option<WorldPath>,
}

impl Subject {
    /// Names what the words of a command line that was refused ask for.
    pub(crate) fn of_words(words: Vec<WorldString>) -> Self {
        let command = <[WorldString; 1]>::try_from(words).ok();
        Self {
            command: command.map(|[command]| command),
            cwd: None,
        }
    }
}

impl Request {
    /// Checks the options, reads what they name, and says in `subject` what they ask for.
    ///
    /// It may block in reading, so signals must still have their usual effect.
    pub(super) fn new(mut options: ShOptions, subject: &mut Subject) -> Result<Self, Failure> {
        let words = std::mem::take(&mut options.command);
        *subject = Subject {
            cwd: options.cwd.as_deref().map(WorldPath::from),
            ..Subject::of_words(words.iter().cloned().map(WorldString::from).collect())
        };
        let cwd = WorldPath::from(working_directory(options.cwd.as_deref())?);
        subject.cwd = Some(cwd.clone());
        let env = overlay(options.env, options.unset)?;
        if options.session.as_ref().is_some_and(String::is_empty) {
            return Err(Failure::bad_option("--session is empty: it must name a session"));
        }
        let command = text(words, options.file.as_deref(), options.stdin.as_ref())?;
        subject.command = Some(command.clone());
        if command.is_empty() {
            return Err(Failure::bad_option(
                "the command is empty: it must hold something to run",
            ));
        }
        let defaults = Config::default();
        let config = Config {
            program: vec![WorldString::from(options.shell)],
            cwd: Some(cwd),
            timeout: options.timeout,
            // Whoever writes a command line is the one who decides how long a command may take.
            max_timeout: options.timeout.max(defaults.max_timeout),
            max_output_bytes: options.max_bytes,
            // A file that ends with this process is of no use to whoever reads the text.
            max_spill_bytes: match (options.keep_spill, options.spill_max_bytes) {
                (false, _) => 0,
                (true, None) => defaults.max_spill_bytes,
                (true, Some(bytes)) => bytes.get(),
            },
            spill_life: SpillLife::Keep,
            grace: options.grace,
            // Nobody is there to look after a process that outlives this one.
            left_behind: LeftBehindPolicy::End,
            ..defaults
        };
        config
            .validate()
            .map_err(|error| Failure::bad_option(error.to_string()))?;
        let asked = ShellRequest {
            on_expiry: if options.no_timeout {
                OnExpiry::None
            } else {
                OnExpiry::Kill
            },
            stdin: input(options.stdin, options.stdin_file.as_deref())?,
            merge_stderr: options.merge_stderr,
            env,
            session: options.session,
            ..ShellRequest::new(command)
        };
        Ok(Self {
            asked,
            config,
            ownership: options.ownership,
        })
    }

    /// Returns when the command is ended. `None`: never.
    pub(super) fn timeout(&self) -> Option<Duration> {
        (self.asked.on_expiry == OnExpiry::Kill).then_some(self.config.timeout)
    }
}

/// Finds the text: the one word, or what --file names.
fn text(words: Vec<OsString>, file: Option<&Path>, stdin: Option<&OsString>) -> Result<WorldString, Failure> {
    if let Some(path) = file {
        if path.as_os_str() == "-" {
            if stdin.is_some_and(|stdin| stdin == "-") {
                return Err(Failure::bad_option(
                    "--file - and --stdin - both take what this process reads; one of them must be a file",
                ));
            }
            return Ok(read("--file -", own_stream::stdin())?.into());
        }
        return Ok(read_file("--file", path)?.into());
    }
    let count = words.len();
    match <[OsString; 1]>::try_from(words) {
        Ok([text]) => Ok(text.into()),
        Err(words) => {
            let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
            let hint = if words.get(1).is_some_and(is_option) {
                "options stand before it, and a text with spaces is quoted"
            } else {
                "quote it, as in dsh-subprocess sh 'echo one two'"
            };
            let message =
                format!("the command is one text for the shell, and these are {count} words: {hint}");
            Err(Failure::bad_option(message))
        }
    }
}

/// Reads what --stdin and --stdin-file name.
fn input(text: Option<OsString>, file: Option<&Path>) -> Result<Option<Bytes>, Failure> {
    match (text, file) {
        (_, Some(path)) => read_file("--stdin-file", path).map(|bytes| Some(bytes.into())),
        (None, None) => Ok(None),
        (Some(dash), None) if dash == "-" => {
            read("--stdin -", own_stream::stdin()).map(|bytes| Some(bytes.into()))
        }
        (Some(text), None) => Ok(Some(text.into_vec().into())),
    }
}

fn read_file(option: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    let name = format!("{option} {}", path.display());
    let file = File::open(path).map_err(|error| Failure::new("input", format!("{name}: {error}")))?;
    read(&name, file)
}

fn read(name: &str, source: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    source
        .take(MOST_READ + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new("input", format!("{name}: {error}")))?;
    if bytes.len() as u64 > MOST_READ {
        let message = format!("{name}: it holds more than 64 MiB, the most that is read into memory");
        return Err(Failure::new("input", message));
    }
    Ok(bytes)
}
