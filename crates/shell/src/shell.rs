//! The executor.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use dsh_subprocess::{
    Collect, Error, ErrorKind, ErrorOutput, MAX_GRACE, Mechanism, Output, SpawnSpec, Stdin,
    SubprocessRuntime, WorldPath,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::argv::argv;
use crate::config::{Config, ConfigError, Settings};
use crate::environment::layered;
use crate::error::ShellError;
use crate::execution::{Execution, Plan};
use crate::facts::{CALL_VARIABLE, Call, Contributor, Contributors};
use crate::request::{OnExpiry, ShellRequest, ShellSpec};
use crate::result::RunResult;

/// Runs shell commands in one world, each in a shell of its own, without state between them.
///
/// Clones are the same executor. Its calls need a running tokio runtime with timers; what they start belongs to the
/// [`SubprocessRuntime`] and outlives the executor: its disposal ends it.
///
/// ```
/// use std::sync::Arc;
/// use dsh_shell::{Cause, Config, Shell, ShellRequest};
/// # use dsh_subprocess_testkit::scripted::{Script, ScriptedWorld};
///
/// # let rt = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
/// # rt.block_on(async {
/// # let world = ScriptedWorld::free_running();
/// # world.program("bash", Script::new().stdout("built\n").exits(3));
/// let shell = Shell::new(Arc::new(world), Config { cwd: Some("/srv/project".into()), ..Config::default() })?;
/// let spec = shell.resolve(ShellRequest::new("make 2>&1 | tail -1"))?;
/// let result = shell.run(spec).await?;
/// assert_eq!((result.outcome.code(), result.cause), (Some(3), Cause::Ended));
/// assert_eq!(&result.stdout.snapshot.tail[..], b"built\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Shell(Arc<Inner>);

struct Inner {
    world: Arc<dyn SubprocessRuntime>,
    configured: Config,
    /// What holds now: the configuration with the settings on top.
    current: RwLock<Arc<Config>>,
    contributors: RwLock<Contributors>,
}

impl Shell {
    /// Makes an executor.
    ///
    /// # Errors
    ///
    /// Those of [`Config::validate`].
    pub fn new(world: Arc<dyn SubprocessRuntime>, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self(Arc::new(Inner {
            world,
            current: RwLock::new(Arc::new(config.clone())),
            configured: config,
            contributors: RwLock::default(),
        })))
    }

    /// Puts settings on top of the configuration, in place of those before; `None` goes back to the configuration alone.
    ///
    /// They hold from the next call on.
    ///
    /// # Errors
    ///
    /// Those of [`Config::validate`], of the two together; then what held before goes on to hold.
    pub fn set_settings(&self, settings: Option<&Settings>) -> Result<(), ConfigError> {
        let config = match settings {
            Some(settings) => self.0.configured.with(settings),
            None => self.0.configured.clone(),
        };
        config.validate()?;
        *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        Ok(())
    }

    /// Returns what holds now.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.0.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets somebody contribute `DSH_*` facts to each later call.
    ///
    /// # Errors
    ///
    /// A name or a key that another contributor has.
    pub fn contribute(&self, contributor: Contributor) -> Result<(), ConfigError> {
        let mut contributors = self
            .0
            .contributors
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        contributors.add(contributor)
    }

    /// Fills in what a request leaves open.
    ///
    /// # Errors
    ///
    /// [`ShellError::Request`] for an empty command, a timeout or a number of bytes of zero, an empty directory, and a
    /// directory that must be completed with this process's own when that is gone.
    pub fn resolve(&self, request: ShellRequest) -> Result<ShellSpec, ShellError> {
        let config = self.config();
        if request.command.is_empty() {
            return Err(refused("command is empty: it must hold something to run"));
        }
        if request.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(refused("timeout is zero: it must be more than zero"));
        }
        if request.stdout_max_bytes == Some(0) {
            return Err(refused("stdout_max_bytes is 0: it must be more than zero"));
        }
        Ok(ShellSpec {
            workdir: workdir(request.workdir, config.cwd.as_ref())?,
            timeout: request.timeout.unwrap_or(config.timeout).min(config.max_timeout),
            on_expiry: request.on_expiry,
            stdout_max_bytes: request.stdout_max_bytes.unwrap_or(config.max_output_bytes),
            command: request.command,
            stdin: request.stdin,
            merge_stderr: request.merge_stderr,
            env: request.env,
            session: request.session,
            cancel: request.cancel,
        })
    }

    /// Runs a command, and resolves when it is over.
    ///
    /// That is: the shell has ended, its output too, and nobody of its tree is left; or, where somebody is, nothing was
    /// written for [`quiet`](Config::quiet), or [`drain`](Config::drain) has passed. What is left then is
    /// [ended or kept](Config::left_behind).
    ///
    /// # Errors
    ///
    /// Those of [`execute`](Self::execute), and [`ShellError::Runtime`] for what the world tells later: a directory that is
    /// missing, a shell that is, a tree whose owner was lost. Whatever was printed by then is in it.
    ///
    /// # Cancellation
    ///
    /// Dropping the future ends the tree, and waits for nothing.
    pub async fn run(&self, spec: ShellSpec) -> Result<RunResult, ShellError> {
        let execution = self.execute(spec)?;
        let guard = execution.clone().scoped();
        let result = execution.result().await;
        guard.release();
        result
    }

    /// Starts a command in the background: without a deadline, and with the configured retention.
    ///
    /// Its failure to start is no error of the call: it settles as [`Killed`](crate::Status::Killed), and its first read
    /// says why.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    ///
    /// # Cancellation
    ///
    /// Nothing but the spec's token, [`Execution::kill`] and the runtime's disposal ends it.
    pub fn start(&self, spec: ShellSpec) -> Result<Execution, ShellError> {
        let stdout_max_bytes = self.config().max_output_bytes;
        self.execute(ShellSpec {
            on_expiry: OnExpiry::None,
            stdout_max_bytes,
            ..spec
        })
    }

    /// Starts a command and returns the handle of it, whatever it is to become: [`result`](Execution::result) waits for it as
    /// [`run`](Self::run) does, and dropping the handle ends nothing.
    ///
    /// The deadline counts from here.
    ///
    /// # Errors
    ///
    /// What is known without asking the world: [`ShellError::Facts`], and [`ShellError::Runtime`] for a NUL byte in the
    /// command or a variable, a token that is already cancelled, and a runtime that was disposed of.
    pub fn execute(&self, spec: ShellSpec) -> Result<Execution, ShellError> {
        let begin = Instant::now();
        let config = self.config();
        let call = Call {
            session: spec.session.as_deref(),
            workdir: &spec.workdir,
        };
        let sees_all = self.0.world.capabilities().mechanism != Mechanism::ProcessGroup;
        let contributors = {
            let current = self.0.contributors.read();
            current.unwrap_or_else(PoisonError::into_inner).clone()
        };
        let mut managed = contributors.collect(&config, &call)?;
        if !sees_all {
            managed.insert(CALL_VARIABLE.into(), Some(call_mark().into()));
        }
        if spec.cancel.is_cancelled() {
            return Err(ShellError::from(Error::new(
                ErrorKind::Cancelled,
                "spawn",
                "cancelled before spawn: nothing was started",
            )));
        }
        let collect = |bytes: usize| {
            Output::Collect(Collect {
                max_bytes: bytes - bytes / 4,
                head_bytes: bytes / 4,
                spill: config.spill(),
            })
        };
        let kill = CancellationToken::new();
        let process = self.0.world.spawn(SpawnSpec {
            argv: argv(&config.program, &spec.command),
            cwd: spec.workdir,
            env: layered(&config.env, &spec.env, managed),
            stdin: spec.stdin.map_or(Stdin::Ignore, Stdin::Data),
            stdout: collect(spec.stdout_max_bytes),
            stderr: if spec.merge_stderr {
                ErrorOutput::Merge
            } else {
                ErrorOutput::Own(collect(config.max_output_bytes))
            },
            grace: config.grace,
            // The execution cuts it where it has waited enough, and what is kept is read for as long as it runs.
            drain: MAX_GRACE,
            control: false,
            cancel: kill.clone(),
        })?;
        let plan = Plan {
            begin,
            deadline: match spec.on_expiry {
                // A deadline that the clock cannot count never comes.
                OnExpiry::Kill => begin.checked_add(spec.timeout),
                OnExpiry::None => None,
            },
            timeout: spec.timeout,
            quiet: config.quiet,
            drain: config.drain,
            left_behind: config.left_behind,
            cancel: spec.cancel,
            sees_all,
        };
        Ok(Execution::begin(process, kill, plan))
    }
}

/// A text that no other call has, on this machine or another that shares its processes.
fn call_mark() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{number}", std::process::id(), now.as_nanos())
}

fn refused(message: &str) -> ShellError {
    ShellError::Request(message.to_owned())
}

/// Completes a directory: the request's, below the configured one, below this process's own.
fn workdir(asked: Option<WorldPath>, configured: Option<&WorldPath>) -> Result<WorldPath, ShellError> {
    let is_absolute = |path: &WorldPath| path.as_bytes().starts_with(b"/");
    match (asked, configured) {
        (Some(path), _) if path.as_bytes().is_empty() => {
            Err(refused("workdir is empty: it must name a directory"))
        }
        (Some(path), _) if is_absolute(&path) => Ok(path),
        (None, Some(base)) if is_absolute(base) => Ok(base.clone()),
        (asked, base) => {
            let mut whole = if base.is_some_and(is_absolute) {
                Vec::new()
            } else {
                own_directory()?.as_bytes().to_vec()
            };
            for part in base.iter().copied().chain(asked.as_ref()) {
                if !whole.is_empty() && !whole.ends_with(b"/") {
                    whole.push(b'/');
                }
                whole.extend_from_slice(part.as_bytes());
            }
            Ok(WorldPath::from(whole))
        }
    }
}

fn own_directory() -> Result<WorldPath, ShellError> {
    std::env::current_dir().map(WorldPath::from).map_err(|error| {
        ShellError::Request(format!(
            "this process's current directory cannot be used: {error}; name a workdir"
        ))
    })
}
