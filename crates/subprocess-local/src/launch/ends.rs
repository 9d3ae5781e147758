//! What the child's descriptors become, and the host's ends of them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use dsh_subprocess::{
    Collector, ControlPipe, Error, ErrorOutput, Output, OutputReader, PipeReader, PipeWriter, ProcessStreams,
    SpawnSpec, SpillSource, Stdin, StreamName,
};
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::pipe::{self, Pipe};
use dsh_subprocess_sys::spawn::{Descriptor, Session};

use crate::builder::DataTransport;
use crate::environment::Ambient;
use crate::failure;
use crate::feed::Feed;
use crate::machine::Machine;
use crate::raw_pipe::{PipeEnd, RawReader, RawWriter};
use crate::spill::StreamSpill;
use crate::stream::Stream;
use crate::tree::Tree;

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
    /// Makes the ends of a tree's streams. All of the handle's streams exist whatever fails, so every step is taken before its
    /// failure is looked at.
    pub(super) fn make(
        tree: &Arc<Tree>,
        ambient: &Ambient,
        spec: &SpawnSpec,
        streams: &mut ProcessStreams,
    ) -> Result<Self, Error> {
        let stdin = stdin(tree, &spec.stdin, streams);
        let ours = (&mut streams.stdout, &mut streams.collected_stdout);
        let stdout = output(tree, ambient, &spec.stdout, StreamName::Stdout, ours);
        let ours = (&mut streams.stderr, &mut streams.collected_stderr);
        let stderr = match &spec.stderr {
            ErrorOutput::Own(own) => output(tree, ambient, own, StreamName::Stderr, ours),
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
        Ok(Self::Streams { stdio, control })
    }

    pub(super) fn stdio<'fd>(&'fd self, null: &'fd OwnedFd) -> [Descriptor<'fd>; 3] {
        match self {
            Self::Streams { stdio, .. } => [&stdio[0], &stdio[1], &stdio[2]].map(|end| end.descriptor(null)),
            Self::Terminal(slave) => [Descriptor::From(slave.as_fd()); 3],
        }
    }

    pub(super) fn control(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Streams { control, .. } => control.as_ref().map(AsFd::as_fd),
            Self::Terminal(_) => None,
        }
    }

    pub(super) fn session(&self, machine: &Machine) -> Session {
        match self {
            Self::Streams { .. } => machine.session,
            Self::Terminal(_) => Session::OwnTerminal,
        }
    }
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
    ambient: &Ambient,
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
                    machine.spills.place(ambient),
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
