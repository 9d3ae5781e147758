//! A spec on its way to a running child: environment, pipes, group, clone.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_subprocess::{
    CONTROL_VARIABLE, Collector, ControlPipe, Error, ErrorKind, ErrorOutput, Mechanism, Output, OutputReader,
    PipeReader, PipeWriter, Process, ProcessStreams, SpawnSpec, SpillSource, Stdin, StreamName, WorldPath,
    WorldString,
};
use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::pidfd::Pid;
use dsh_subprocess_sys::pipe::{self, Pipe};
use dsh_subprocess_sys::spawn::{
    Descriptor, FailedStep, Launch, Program, Session, StartError, Started, start,
};
use dsh_subprocess_sys::steps::{Step, step};

use crate::builder::DataTransport;
use crate::driver::LocalProcess;
use crate::failure::{self, Asked};
use crate::feed::Feed;
use crate::lookup;
use crate::machine::Machine;
use crate::owner::{Entrance, Leaf, Owner, SessionOwner};
use crate::raw_pipe::{PipeEnd, RawReader, RawWriter};
use crate::spill::StreamSpill;
use crate::stream::Stream;
use crate::tree::Tree;
use crate::warden;

/// The number of a child's control descriptor, which the clone puts right after the standard ones.
const CONTROL_DESCRIPTOR: &str = "3";

/// How long `spawn` waits for the child to reach its program.
const HANDSHAKE: Duration = Duration::from_secs(1);

/// What one of the child's descriptors becomes, owned until the clone.
pub(crate) enum ChildEnd {
    Null,
    Inherit,
    Merge,
    Pipe(OwnedFd),
}

impl ChildEnd {
    fn descriptor<'fd>(&'fd self, null: &'fd OwnedFd) -> Descriptor<'fd> {
        match self {
            Self::Null => Descriptor::From(null.as_fd()),
            Self::Inherit => Descriptor::Inherit,
            Self::Merge => Descriptor::Merge,
            Self::Pipe(fd) => Descriptor::From(fd.as_fd()),
        }
    }
}

/// What the child's descriptors become, owned until the clone.
pub(crate) enum ChildEnds {
    /// The standard ones, each by itself, and a control descriptor.
    Streams {
        stdio: [ChildEnd; 3],
        control: Option<OwnedFd>,
    },
    /// All three are one terminal, which is the child's controlling one.
    Terminal(OwnedFd),
}

impl ChildEnds {
    fn stdio<'fd>(&'fd self, null: &'fd OwnedFd) -> [Descriptor<'fd>; 3] {
        match self {
            Self::Streams { stdio, .. } => [&stdio[0], &stdio[1], &stdio[2]].map(|end| end.descriptor(null)),
            Self::Terminal(slave) => [Descriptor::From(slave.as_fd()); 3],
        }
    }

    fn control(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Streams { control, .. } => control.as_ref().map(AsFd::as_fd),
            Self::Terminal(_) => None,
        }
    }

    fn session(&self, machine: &Machine) -> Session {
        match self {
            Self::Streams { .. } => machine.session,
            Self::Terminal(_) => Session::OwnTerminal,
        }
    }
}

/// Starts a tree. An error is something known without asking the world; every other failure is in the handle.
pub(crate) fn spawn(machine: &Arc<Machine>, spec: SpawnSpec) -> Result<Process, Error> {
    machine.check_usable("spawn")?;
    spec.validate()?;
    absolute(&spec.cwd)?;
    let tree = machine.new_tree(&spec.env, spec.grace, spec.drain, &spec.cancel)?;
    let mut streams = ProcessStreams::default();
    let result = launch(machine, &tree, spec, &mut streams);
    if let Err(error) = result {
        tree.failed(&error);
    }
    Ok(Process::new(Arc::new(LocalProcess(tree)), streams))
}

/// Refuses a working directory that would depend on where the host is.
pub(crate) fn absolute(cwd: &WorldPath) -> Result<(), Error> {
    if cwd.as_bytes().starts_with(b"/") {
        return Ok(());
    }
    let message = format!(
        "the working directory {} is relative: it must be absolute",
        failure::shown(cwd.as_bytes())
    );
    Err(Error::new(ErrorKind::InvalidSpec, "spawn", message))
}

fn launch(
    machine: &Arc<Machine>,
    tree: &Arc<Tree>,
    spec: SpawnSpec,
    streams: &mut ProcessStreams,
) -> Result<(), Error> {
    // All of the handle's streams exist whatever fails below, so every step is taken before its failure is looked at.
    let stdin = stdin(tree, &spec.stdin, streams);
    let ours = (&mut streams.stdout, &mut streams.collected_stdout);
    let stdout = output(tree, &spec.stdout, StreamName::Stdout, ours);
    let ours = (&mut streams.stderr, &mut streams.collected_stderr);
    let stderr = match &spec.stderr {
        ErrorOutput::Own(own) => output(tree, own, StreamName::Stderr, ours),
        ErrorOutput::Merge => Ok(ChildEnd::Merge),
    };
    let control = if spec.control {
        control(tree, streams).map(Some)
    } else {
        Ok(None)
    };
    let pipe = |error: io::Error| failure::no_child_io("a pipe to the child", &error);
    let control = control.map_err(pipe)?;
    let stdio = [stdin.map_err(pipe)?, stdout.map_err(pipe)?, stderr.map_err(pipe)?];

    let environment = environment(machine, &spec);
    let asked = Asked {
        argv: spec.argv,
        cwd: spec.cwd,
        environment,
    };
    begin(tree, ChildEnds::Streams { stdio, control }, asked, spec.grace)
}

/// Starts the target of a tree whose descriptors are there.
pub(crate) fn begin(tree: &Arc<Tree>, ends: ChildEnds, asked: Asked, grace: Duration) -> Result<(), Error> {
    let machine = &tree.machine;
    step(Step::PipesMade);
    if machine.mechanism == Mechanism::Reaper
        && let Some(wardens) = &machine.warden
    {
        let program = program_for_warden(&asked);
        let order = Launch {
            stdio: ends.stdio(&machine.null),
            control: ends.control(),
            session: ends.session(machine),
            cgroup: None,
            join_cgroup: None,
        };
        return warden::launch(tree, wardens, (program, asked), order, grace, HANDSHAKE);
    }
    if let Some(warden) = &machine.warden {
        warden.keep_up();
    }
    let Cloned { started, leaf, born } = clone(machine, &asked, &ends, grace)?;
    // The child has its copies now; ours would keep the streams from ending.
    drop(ends);
    match started {
        Err(error) => {
            give_back(leaf);
            Err(failure::start(&error))
        }
        Ok(Started::Failed(exec, program)) => {
            give_back(leaf);
            Err(failure::exec(&exec, &program, &asked))
        }
        Ok(Started::Running(child)) => {
            let owner = owner(machine, leaf, child.pid, child.session_error, born);
            tree.cloned(owner, child.pid);
            tree.running(child.pid, child.pidfd);
            Ok(())
        }
        Ok(Started::Pending(pending)) => {
            let pid = pending.pid();
            // Whether it has a session of its own was decided long ago, but is told only with the rest.
            let session_error =
                (dsh_subprocess_sys::table::session_of(pid) != Some(pid)).then_some(Errno::PERM);
            tree.cloned(owner(machine, leaf, pid, session_error, born), pid);
            follow(tree, pending, asked);
            Ok(())
        }
    }
}

/// What became of a clone.
struct Cloned {
    started: Result<Started, StartError>,
    /// Where the child is, or would have been.
    leaf: Option<Leaf>,
    born: Instant,
}

/// Clones the child into a leaf of its own, where the runtime has leaves.
fn clone(machine: &Machine, asked: &Asked, ends: &ChildEnds, grace: Duration) -> Result<Cloned, Error> {
    let group = |errno: Errno| failure::no_child("the cgroup of the tree", errno);
    loop {
        let mut leaf = machine
            .leaves
            .as_ref()
            .map(|leaves| leaves.take(grace).map_err(group))
            .transpose()?;
        step(Step::LeafTaken);
        let entrance = match leaf.as_mut().map(Leaf::entrance).transpose() {
            Ok(entrance) => entrance,
            Err(errno) => {
                give_back(leaf);
                return Err(group(errno));
            }
        };
        let (cgroup, join_cgroup) = match &entrance {
            Some(Entrance::Directory(directory)) => (Some(directory.as_fd()), None),
            Some(Entrance::Join(procs)) => (None, Some(procs.as_fd())),
            None => (None, None),
        };
        let launch = Launch {
            stdio: ends.stdio(&machine.null),
            control: ends.control(),
            session: ends.session(machine),
            cgroup,
            join_cgroup,
        };
        let born = Instant::now();
        let started = start(program(asked), launch, machine.kernel, HANDSHAKE);
        // An earlier tenant may have changed the leaf so that nobody can enter it (made it a threaded one).
        let refused = match &started {
            Err(StartError::Clone(errno)) => matches!(*errno, Errno::OPNOTSUPP | Errno::BUSY | Errno::NODEV),
            Ok(Started::Failed(failure, _)) => failure.step == FailedStep::JoinCgroup,
            _ => false,
        };
        match leaf {
            Some(leaf) if refused && leaf.is_reused() => leaf.discard(),
            leaf => return Ok(Cloned { started, leaf, born }),
        }
    }
}

/// Waits, on a thread of its own, for a child whose exec hangs. The thread lasts as long as the exec does.
fn follow(tree: &Arc<Tree>, pending: dsh_subprocess_sys::spawn::Pending, asked: Asked) {
    let waiting = Arc::clone(tree);
    let pid = pending.pid();
    let copy = pending.pidfd().try_clone();
    let _mask = dsh_subprocess_sys::signal::block_for_new_thread();
    let followed = std::thread::Builder::new()
        .name("dsh-slow-exec".to_owned())
        .spawn(move || match pending.wait() {
            Started::Running(child) => waiting.running(child.pid, child.pidfd),
            Started::Failed(exec, program) => waiting.failed(&failure::exec(&exec, &program, &asked)),
            Started::Pending(_) => unreachable!("a wait without a bound ends with an answer"),
        });
    if let Err(error) = followed {
        tree.unobserved(pid, copy, &failure::unobserved(error));
    }
}

fn owner(
    machine: &Machine,
    leaf: Option<Leaf>,
    pid: Pid,
    session_error: Option<Errno>,
    born: Instant,
) -> Owner {
    if let Some(errno) = session_error {
        tracing::warn!(%errno, "the child has no session of its own");
    }
    match leaf {
        Some(leaf) => Owner::Cgroup(leaf),
        None => Owner::Session(SessionOwner::new(
            pid,
            session_error.is_none(),
            born,
            machine.reserve(),
        )),
    }
}

fn give_back(leaf: Option<Leaf>) {
    if let Some(leaf) = leaf {
        let total = leaf.total();
        leaf.release(total);
    }
}

/// The scrubbed environment with the caller's entries, and `PWD` naming the working directory unless the caller says
/// otherwise: shells believe it.
fn environment(machine: &Machine, spec: &SpawnSpec) -> dsh_subprocess::Environment {
    let mut environment = machine.environment.child(&spec.env);
    if !spec.env.contains_key(&WorldString::from("PWD")) {
        environment.insert("PWD", spec.cwd.as_world_string().clone());
    }
    if spec.control {
        environment.insert(CONTROL_VARIABLE, CONTROL_DESCRIPTOR);
    }
    environment
}

fn program(asked: &Asked) -> Program {
    laid_out(asked, |path| Cow::Borrowed(path))
}

/// As [`program`], for a child of a warden, to which `/proc/self` would be the warden's.
fn program_for_warden(asked: &Asked) -> Program {
    let host = format!("/proc/{}/", std::process::id());
    laid_out(asked, |path| match path.strip_prefix(b"/proc/self/") {
        Some(rest) => Cow::Owned([host.as_bytes(), rest].concat()),
        None => Cow::Borrowed(path),
    })
}

fn laid_out(asked: &Asked, seen: impl Fn(&[u8]) -> Cow<'_, [u8]>) -> Program {
    let candidates = lookup::candidates(asked.argv[0].as_bytes(), asked.path());
    let candidates: Vec<_> = candidates.iter().map(|candidate| seen(candidate)).collect();
    Program::new(
        asked.argv.iter().map(WorldString::as_bytes),
        asked
            .environment
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes())),
        candidates.iter().map(AsRef::as_ref),
        &seen(asked.cwd.as_bytes()),
    )
}

fn stdin(tree: &Arc<Tree>, stdin: &Stdin, streams: &mut ProcessStreams) -> io::Result<ChildEnd> {
    let machine = &tree.machine;
    match stdin {
        Stdin::Ignore => Ok(ChildEnd::Null),
        Stdin::Inherit => Ok(ChildEnd::Inherit),
        Stdin::Data(data) => {
            let (reader, writer) = match machine.data {
                DataTransport::Pipe => pipe::pipe().map(|made| (made.reader, made.writer)),
                DataTransport::Socket => pipe::socket_pair(),
            }?;
            pipe::set_nonblocking(&writer, true)?;
            if let Some(feed) = Feed::start(&machine.reactor, writer, data.clone())? {
                tree.add_feed(feed);
            }
            Ok(ChildEnd::Pipe(reader))
        }
        Stdin::Pipe => {
            let made = pipe::pipe()
                .map_err(io::Error::from)
                .and_then(|Pipe { reader, writer }| {
                    pipe::set_nonblocking(&writer, true)?;
                    let end = PipeEnd::new(
                        &machine.reactor,
                        writer,
                        Interest::BecomesWritable,
                        std::sync::Weak::new(),
                    )?;
                    Ok((reader, end))
                });
            let (reader, end) = split(made, || PipeEnd::closed(&machine.reactor));
            streams.stdin = Some(PipeWriter::new(RawWriter(end)));
            reader.map(ChildEnd::Pipe)
        }
    }
}

/// The child's end of a control pipe; the caller's goes to the handle.
fn control(tree: &Tree, streams: &mut ProcessStreams) -> io::Result<OwnedFd> {
    let reactor = &tree.machine.reactor;
    let made = pipe::socket_pair()
        .map_err(io::Error::from)
        .and_then(|(host, child)| {
            pipe::set_nonblocking(&host, true)?;
            Ok((child, PipeEnd::duplex(reactor, host)?))
        });
    let (child, [reader, writer]) = match made {
        Ok((child, ends)) => (Ok(child), ends),
        Err(error) => (Err(error), [PipeEnd::closed(reactor), PipeEnd::closed(reactor)]),
    };
    streams.control = Some(ControlPipe {
        reader: PipeReader::new(RawReader(reader)),
        writer: PipeWriter::new(RawWriter(writer)),
    });
    child
}

fn output(
    tree: &Arc<Tree>,
    output: &Output,
    name: StreamName,
    (raw, collected): (&mut Option<PipeReader>, &mut Option<OutputReader>),
) -> io::Result<ChildEnd> {
    let machine = &tree.machine;
    match output {
        Output::Inherit => Ok(ChildEnd::Inherit),
        Output::Pipe => {
            let made = host_reads().and_then(|Pipe { reader, writer }| {
                let inode = pipe::inode(&reader)?;
                let end = PipeEnd::new(
                    &machine.reactor,
                    reader,
                    Interest::BecomesReadable,
                    Arc::downgrade(tree),
                )?;
                tree.expect_stream(inode);
                tree.add_raw(name, inode, Arc::clone(&end));
                Ok((writer, end))
            });
            let (writer, end) = split(made, || PipeEnd::closed(&machine.reactor));
            *raw = Some(PipeReader::new(RawReader(end)));
            writer.map(ChildEnd::Pipe)
        }
        Output::Collect(collect) => {
            let spill = collect.spill.map(|spill| {
                StreamSpill::new(
                    Arc::clone(&machine.spills),
                    Arc::clone(&machine.blocking),
                    spill,
                    name,
                )
            });
            let source = spill.clone().map(|spill| spill as Arc<dyn SpillSource>);
            let (sink, reader) = Collector::new(collect, source);
            *collected = Some(reader);
            let Pipe { reader, writer } = host_reads()?;
            let stream = Stream::start(tree, reader, sink, collect.max_bytes, spill)?;
            tree.expect_stream(stream.inode);
            tree.add_stream(name, stream);
            Ok(ChildEnd::Pipe(writer))
        }
    }
}

/// Makes a pipe whose reading end is the host's.
fn host_reads() -> io::Result<Pipe> {
    let made = pipe::pipe()?;
    pipe::set_nonblocking(&made.reader, true)?;
    Ok(made)
}

/// Separates the child's end, or why there is none, from the host's, which is closed then.
fn split(
    made: io::Result<(OwnedFd, Arc<PipeEnd>)>,
    closed: impl FnOnce() -> Arc<PipeEnd>,
) -> (io::Result<OwnedFd>, Arc<PipeEnd>) {
    match made {
        Ok((child, host)) => (Ok(child), host),
        Err(error) => (Err(error), closed()),
    }
}
