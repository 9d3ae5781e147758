//! How a spec becomes a scripted tree.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use dsh_subprocess::{
    Collect, Collector, EnvOverlay, Environment, Error, ErrorKind, ErrorOutput, Lookup, Output, OutputReader,
    PipeReader, PipeWriter, Process, ProcessStreams, Scrub, SpawnSpec, SpillSource, Stdin, StreamName,
    WorldPath, WorldString, merge,
};
use tokio_util::sync::CancellationToken;

use super::agenda::Due;
use super::driver::{CancelWaker, ScriptedDriver, ScriptedInput, ScriptedOutput};
use super::inner::{CancelWatch, Core, Inner, Program};
use super::record::TerminationCause;
use super::script::{Script, Step};
use super::stream::{InputStream, OutputPipe, OutputStream, Sink};
use super::tree::Tree;
use super::world::Place;

/// Takes a valid spec on. Nothing of it has happened when this returns.
pub(super) fn spawn(world: &Arc<Inner>, spec: SpawnSpec) -> Result<Process, Error> {
    let token = spec.cancel.clone();
    let (index, streams) = world.with(|core| {
        core.refuse_when_disposed()?;
        Ok::<_, Error>(core.admit(world, spec))
    })?;
    watch_cancel(world, index, token);
    Ok(Process::new(
        Arc::new(ScriptedDriver {
            world: Arc::clone(world),
            tree: index,
        }),
        streams,
    ))
}

/// Lets a token terminate a tree.
pub(super) fn watch_cancel(world: &Arc<Inner>, index: usize, token: CancellationToken) {
    // Its waker may run at once, on this thread or another: it must find the tree, and the lock free.
    let mut watch = CancelWatch(Box::pin(token.clone().cancelled_owned()));
    let waker = Waker::from(Arc::new(CancelWaker {
        world: Arc::downgrade(world),
        tree: index,
        token,
    }));
    let cancelled = watch.0.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
    world.with(|core| {
        let tree = &mut core.trees[index];
        if cancelled {
            tree.request_termination(TerminationCause::Cancel, &mut core.scene);
        } else if tree.gone {
            core.scene.retired.push(watch);
        } else {
            tree.cancel = Some(watch);
        }
    });
}

impl Core {
    fn admit(&mut self, world: &Arc<Inner>, spec: SpawnSpec) -> (usize, ProcessStreams) {
        let index = self.trees.len();
        let environment = self.environment(&spec.env);
        let script = self.script(&spec, &environment, false);
        let mut streams = ProcessStreams::default();
        let pipe = |stream| {
            PipeReader::new(ScriptedOutput {
                world: Arc::clone(world),
                tree: index,
                stream,
            })
        };
        let input = match &spec.stdin {
            // The host of a scripted world has nothing to be read.
            Stdin::Ignore | Stdin::Inherit => InputStream::holding(&[]),
            Stdin::Data(bytes) => InputStream::holding(bytes),
            Stdin::Pipe => {
                streams.stdin = Some(PipeWriter::new(ScriptedInput {
                    world: Arc::clone(world),
                    tree: index,
                }));
                InputStream::default()
            }
        };
        let (stdout, reader) = self.output(world, &spec.stdout);
        streams.collected_stdout = reader;
        streams.stdout = (spec.stdout == Output::Pipe).then(|| pipe(StreamName::Stdout));
        let stderr = match &spec.stderr {
            ErrorOutput::Merge => None,
            ErrorOutput::Own(output) => {
                let (stderr, reader) = self.output(world, output);
                streams.collected_stderr = reader;
                streams.stderr = (*output == Output::Pipe).then(|| pipe(StreamName::Stderr));
                Some(stderr)
            }
        };
        self.trees.push(Tree::new(
            index,
            (spec, environment),
            script,
            input,
            (stdout, stderr),
        ));
        self.scene.agenda.plan(Duration::ZERO, Due::Resume(index));
        (index, streams)
    }

    fn output(&self, world: &Arc<Inner>, output: &Output) -> (OutputStream, Option<OutputReader>) {
        match output {
            Output::Inherit => (OutputStream::new(Sink::Inherited(Vec::new())), None),
            Output::Pipe => (OutputStream::new(Sink::Piped(OutputPipe::new())), None),
            Output::Collect(collect) => {
                let (sink, reader) = self.collected(world, collect);
                (OutputStream::new(sink), Some(reader))
            }
        }
    }

    fn collected(&self, world: &Arc<Inner>, collect: &Collect) -> (Sink, OutputReader) {
        let spill = collect
            .spill
            .map(|limits| self.spills.open(limits, Arc::downgrade(world)));
        let (spill, source) = match spill {
            Some((writer, source)) => (Some(writer), Some(source as Arc<dyn SpillSource>)),
            None => (None, None),
        };
        let (collector, reader) = Collector::new(collect, source);
        (
            Sink::Collected {
                collector,
                max_bytes: collect.max_bytes,
                spill,
            },
            reader,
        )
    }

    /// Finds what the program of a spec does: nothing but to fail where there is none.
    pub(super) fn script(&self, spec: &SpawnSpec, environment: &Environment, on_terminal: bool) -> Script {
        match self.find(spec, environment) {
            Ok(program) => program(spec).complete(on_terminal),
            Err(error) => Script {
                steps: VecDeque::from([Step::Fail(error)]),
                ..Script::default()
            },
        }
    }

    /// Makes the environment of a target: nothing of this machine's is in it.
    pub(super) fn environment(&self, overlay: &EnvOverlay) -> Environment {
        merge(
            Scrub::default().apply(self.base.clone()).environment,
            overlay,
            self.name_case,
        )
    }

    /// Finds the program of a spec; the working directory is looked at first, as the target would enter it first.
    fn find(&self, spec: &SpawnSpec, environment: &Environment) -> Result<Program, Error> {
        let cwd = &spec.cwd;
        let refuse = |kind, why| {
            Err(Error::new(
                kind,
                "spawn",
                format!("the working directory `{cwd}` {why}"),
            ))
        };
        match self.places.get(cwd) {
            Some(Place::Directory) => {}
            Some(Place::File) => return refuse(ErrorKind::CwdNotDirectory, "is not a directory"),
            Some(Place::Locked) => return refuse(ErrorKind::CwdNotSearchable, "may not be entered"),
            None if self.places.is_empty() => {}
            None => return refuse(ErrorKind::CwdNotFound, "does not exist"),
        }
        let location = self.locate(&spec.argv[0], environment)?;
        Ok(Arc::clone(&self.programs[location.as_bytes()]))
    }

    /// Answers a look-up.
    pub(super) fn look_up(&self, lookup: &Lookup) -> Result<WorldPath, Error> {
        let command = &lookup.command;
        let refuse = |why| Err(Error::new(ErrorKind::InvalidSpec, "look-up", why));
        if command.is_empty() {
            return refuse("the command is empty: it must be non-empty".to_owned());
        }
        if is_path(command) && !command.as_bytes().starts_with(b"world://") {
            return refuse(format!("the command `{command}` is a relative path"));
        }
        if !is_path(command) {
            return self.search(command, &self.environment(&lookup.env), "look-up");
        }
        let location = WorldPath::from(command.clone());
        if self.is_program(&location) {
            return Ok(location);
        }
        let why = format!("`{command}` is not an executable file");
        Err(Error::new(ErrorKind::ProgramNotExecutable, "look-up", why))
    }

    /// Finds what a target would execute.
    fn locate(&self, program: &WorldString, environment: &Environment) -> Result<WorldPath, Error> {
        if !is_path(program) {
            return self.search(program, environment, "spawn");
        }
        let location = WorldPath::from(program.clone());
        if self.is_program(&location) {
            return Ok(location);
        }
        let (kind, why) = match self.places.get(&location) {
            Some(_) => (ErrorKind::ProgramNotExecutable, "is not executable"),
            None => (ErrorKind::ProgramNotFound, "does not exist"),
        };
        Err(Error::new(
            kind,
            "spawn",
            format!("the program `{program}` {why}"),
        ))
    }

    /// Searches a bare name on the `PATH` of an environment.
    fn search(
        &self,
        name: &WorldString,
        environment: &Environment,
        operation: &'static str,
    ) -> Result<WorldPath, Error> {
        let path = environment
            .find("PATH", self.name_case)
            .map(|(_, path)| path.clone())
            .unwrap_or_default();
        path.as_bytes()
            .split(|&byte| byte == b';')
            .map(|directory| WorldPath::from([directory, b"/", name.as_bytes()].concat()))
            .find(|location| self.is_program(location))
            .ok_or_else(|| {
                let why = format!("no program named `{name}` was found on PATH");
                Error::new(ErrorKind::ProgramNotFound, operation, why)
            })
    }

    fn is_program(&self, location: &WorldPath) -> bool {
        self.programs.contains_key(location.as_bytes())
    }
}

fn is_path(command: &WorldString) -> bool {
    command.as_bytes().contains(&b'/')
}
