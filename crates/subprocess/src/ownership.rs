//! What a runtime knows of a tree: who owns it, who is in it, what it used.

use std::fmt;
use std::time::Duration;

/// The mechanism that owns a tree, and what it cannot do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Ownership {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// What it does not guarantee, a sentence each, for a person to read.
    pub weaknesses: Vec<String>,
}

impl Ownership {
    /// States a mechanism and its weaknesses.
    pub fn new(mechanism: Mechanism, weaknesses: Vec<String>) -> Self {
        Self {
            mechanism,
            weaknesses,
        }
    }
}

/// A way of owning a tree, strongest first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Mechanism {
    /// A control group of its own per tree (Linux): no fork, session or process group leaves it.
    Cgroup,
    /// A process that adopts every orphan of the tree (Linux).
    Reaper,
    /// The process group and, on Linux, the session that the target leads.
    ProcessGroup,
    /// A job object (Windows).
    JobObject,
    /// What a remote world says it uses itself.
    Remote(Box<Mechanism>),
    /// A mechanism of a provider outside this project, by its name.
    Other(String),
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cgroup => f.write_str("cgroup"),
            Self::Reaper => f.write_str("reaper"),
            Self::ProcessGroup => f.write_str("process_group"),
            Self::JobObject => f.write_str("job_object"),
            Self::Remote(inner) => write!(f, "remote {inner}"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// One process of a tree.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Member {
    /// Its id, where its world has ids. A remote world's id means nothing on this machine.
    pub pid: Option<u32>,
    /// Its command line, or its name in brackets where the command line is not to be had. At most 4,096 bytes.
    pub command: String,
    /// Whether it is only likely, and not certain, that the process belongs to the tree: it left every range the
    /// mechanism can see, and what points to the tree is evidence, not proof.
    pub uncertain: bool,
}

impl Member {
    /// Names a process that certainly belongs to the tree.
    pub fn new(pid: impl Into<Option<u32>>, command: impl Into<String>) -> Self {
        Self {
            pid: pid.into(),
            command: command.into(),
            uncertain: false,
        }
    }

    /// Says that the process only likely belongs to the tree.
    #[must_use]
    pub fn possibly(mut self) -> Self {
        self.uncertain = true;
        self
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "{pid} ({})", self.command),
            None => f.write_str(&self.command),
        }
    }
}

/// A process that holds one of a tree's pipes open after the drain ran out.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Holder {
    /// The process. It need not be a member of the tree: descriptors can be handed to anybody.
    pub member: Member,
    /// Which stream of the tree it holds.
    pub stream: StreamName,
}

impl Holder {
    /// Names a holder of a stream.
    pub fn new(member: Member, stream: StreamName) -> Self {
        Self { member, stream }
    }
}

/// A stream of output.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StreamName {
    /// Standard output (with standard error in it, where the two are merged).
    Stdout,
    /// Standard error.
    Stderr,
    /// What is printed on a terminal.
    Terminal,
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Terminal => "terminal",
        })
    }
}

/// What a tree used so far. A part that the world cannot measure is `None`, never 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Processor time in user mode.
    pub user: Option<Duration>,
    /// Processor time in the kernel.
    pub system: Option<Duration>,
    /// The largest resident memory of any one process of the tree that has ended and was waited for, in bytes.
    pub peak_memory_bytes: Option<u64>,
}

impl Usage {
    /// States what was used.
    pub fn new(user: Option<Duration>, system: Option<Duration>, peak_memory_bytes: Option<u64>) -> Self {
        Self {
            user,
            system,
            peak_memory_bytes,
        }
    }
}
