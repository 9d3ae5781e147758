//! The world of this machine, one per JavaScript object.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use dsh_subprocess::{Error, ErrorKind, ErrorOutput, Lookup, Output, SubprocessRuntime};
use dsh_subprocess_local::{DataTransport, LocalRuntime, OwnershipChoice};
use napi::{Env, Result};
use napi_derive::napi;
use tokio_util::sync::CancellationToken;

use crate::environment::{self, AmbientCache};
use crate::error;
use crate::executor::{Executor, Liveness, Promise};
use crate::output::Windows;
use crate::process::Process;
use crate::spec::{self, NativeSpec, NativeTerminalSpec, milliseconds, whole};
use crate::terminal::Terminal;
use crate::tree::{Answers, Ownership};

/// The settings of a runtime.
#[napi(object)]
pub struct NativeOptions {
    pub ownership: Option<String>,
    pub kill_bound_ms: Option<f64>,
    pub write_bound_ms: Option<f64>,
    pub spill_total_bytes: Option<f64>,
    pub kept_spills: Option<String>,
    pub reap_orphans: Option<bool>,
}

/// What this world's terminals are like.
#[napi(object)]
pub struct TerminalFacts {
    pub platform: String,
    pub shell: String,
}

/// Cancels one allocation or look-up.
#[napi]
#[derive(Default)]
pub struct Cancellation(CancellationToken);

#[napi]
impl Cancellation {
    /// Makes one that is not cancelled.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels.
    #[napi]
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// The world of this machine.
#[napi]
pub struct Runtime {
    world: LocalRuntime,
    executor: Rc<Executor>,
    ambient: AmbientCache,
}

#[napi]
impl Runtime {
    /// Makes a runtime.
    #[napi(constructor)]
    pub fn new(env: Env, options: NativeOptions) -> Result<Self> {
        let world = build(options).map_err(|failure| error::thrown(env, &failure))?;
        Ok(Self {
            world,
            executor: Executor::of(&env)?,
            ambient: AmbientCache::default(),
        })
    }

    /// Starts a tree.
    #[napi]
    pub fn spawn(&self, env: Env, spec: NativeSpec) -> Result<Process> {
        let mut spec = spec;
        let ambient = self.ambient.read(std::mem::take(&mut spec.ambient));
        let spawned = spec::process(spec).and_then(|spec| {
            let sizes = [size(&spec.stdout), error_size(&spec.stderr)];
            let process = self.world.with_ambient(ambient).spawn(spec)?;
            Ok((process, sizes))
        });
        let (process, sizes) = spawned.map_err(|failure| error::thrown(env, &failure))?;
        let readers = [process.collected_stdout(), process.collected_stderr()];
        let readers = readers
            .into_iter()
            .zip(sizes)
            .filter_map(|(reader, size)| Some((reader?.clone(), size)))
            .collect();
        let windows = Windows::new(Rc::clone(&self.executor), readers);
        Ok(Process::new(process, windows, self.answers()))
    }

    /// Opens a terminal.
    #[napi]
    pub fn spawn_terminal(&self, spec: NativeTerminalSpec, cancellation: &Cancellation) -> Result<Promise> {
        let mut spec = spec;
        let ambient = self.ambient.read(std::mem::take(&mut spec.ambient));
        let spec = spec::terminal(spec, cancellation.0.clone());
        let answers = self.answers();
        let vigil = answers.liveness.vigil();
        let allocated = self.world.with_ambient(ambient).spawn_terminal(spec);
        self.executor.promise(Some(vigil), async move {
            allocated.await.map(|terminal| Terminal::new(terminal, answers))
        })
    }

    /// Finds an executable.
    #[napi]
    pub fn resolve_executable(
        &self,
        command: String,
        ambient: String,
        env: Vec<(String, Option<String>)>,
        cancellation: &Cancellation,
    ) -> Result<Promise> {
        let lookup = Lookup {
            command: command.into(),
            env: environment::overlay(env),
            cancel: cancellation.0.clone(),
        };
        let world = self.world.with_ambient(self.ambient.read(ambient));
        self.answer(world.resolve_executable(lookup), |path| {
            path.to_string_lossy().into_owned()
        })
    }

    /// Tells what this world's terminals are like.
    #[napi]
    pub fn terminal_environment(&self, ambient: String) -> Result<Promise> {
        let world = self.world.with_ambient(self.ambient.read(ambient));
        self.answer(world.terminal_environment(), |facts| TerminalFacts {
            platform: facts.platform,
            shell: facts.shell.to_string_lossy().into_owned(),
        })
    }

    /// Tells who owns the trees that are started from now on.
    #[napi]
    pub fn ownership(&self) -> Ownership {
        self.world.ownership().into()
    }

    /// Sets the directory that spills are made in.
    #[napi]
    pub fn set_spill_dir(&self, directory: Option<String>) {
        self.world.set_spill_parent(directory.map(PathBuf::from));
    }

    /// Kills every tree at once.
    #[napi]
    pub fn kill_all(&self) {
        self.world.kill_all();
    }

    /// Ends every tree.
    #[napi]
    pub fn dispose(&self) -> Result<Promise> {
        self.answer(self.world.dispose(), |()| ())
    }
}

impl Runtime {
    fn answers(&self) -> Answers {
        Answers {
            world: self.world.clone(),
            liveness: Liveness::new(Rc::clone(&self.executor)),
        }
    }

    /// Makes a promise that keeps the event loop alive.
    fn answer<T, J: napi::bindgen_prelude::ToNapiValue + 'static>(
        &self,
        answer: impl Future<Output = std::result::Result<T, Error>> + 'static,
        into: impl FnOnce(T) -> J + 'static,
    ) -> Result<Promise> {
        self.answers().promise(true, answer, into)
    }
}

/// Returns the most bytes that a stream retains.
fn size(output: &Output) -> u64 {
    match output {
        Output::Collect(collect) => collect.max_bytes.saturating_add(collect.head_bytes) as u64,
        Output::Pipe | Output::Inherit => 0,
    }
}

fn error_size(output: &ErrorOutput) -> u64 {
    match output {
        ErrorOutput::Own(own) => size(own),
        ErrorOutput::Merge => 0,
    }
}

fn build(options: NativeOptions) -> std::result::Result<LocalRuntime, Error> {
    let ownership = match options.ownership.as_deref() {
        None | Some("auto") => OwnershipChoice::Auto,
        Some("cgroup") => OwnershipChoice::Cgroup,
        Some("reaper") => OwnershipChoice::Reaper,
        Some("process_group") => OwnershipChoice::ProcessGroup,
        Some(other) => {
            let message = format!("no ownership mechanism is named {other:?}");
            return Err(Error::new(ErrorKind::InvalidSpec, "build", message));
        }
    };
    let mut builder = LocalRuntime::builder()
        .ownership(ownership)
        // Children of Node.js have always had a socket there.
        .data_transport(DataTransport::Socket)
        // The event loop does not wait for an exec.
        .handshake(Duration::ZERO);
    if let Some(bound) = options.kill_bound_ms {
        builder = builder.kill_bound(milliseconds(bound));
    }
    if let Some(bound) = options.write_bound_ms {
        builder = builder.write_bound(milliseconds(bound));
    }
    if let Some(bytes) = options.spill_total_bytes {
        builder = builder.spill_total(whole(bytes));
    }
    if let Some(directory) = options.kept_spills {
        builder = builder.kept_spills(directory);
    }
    if let Some(reap) = options.reap_orphans {
        builder = builder.reap_orphans(reap);
    }
    builder.build()
}
