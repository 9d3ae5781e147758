//! What host and wardens say to each other.
//!
//! A message is one packet of a `SOCK_SEQPACKET` pair (unix(7)): its first byte says what it is, the rest are its fields, in
//! the byte order of the machine, which both sides share. Descriptors travel beside it (`SCM_RIGHTS`). A packet that is
//! longer than [`PACKET`], or that does not decode to the last byte, is a broken peer's, and ends the connection.
//!
//! Both sides are built from one source, so a [`VERSION`] that differs means that a warden of another build was run by
//! mistake; it is refused.
//!
//! ```
//! use dsh_subprocess_warden::protocol::{Exited, FromTree, Packet};
//! let said = FromTree::Exited(Exited { code: 7, ..Exited::default() });
//! let mut packet = Packet::new();
//! said.encode(&mut packet)?;
//! assert_eq!(FromTree::decode(packet.bytes())?, said);
//! # Ok::<(), dsh_subprocess_warden::protocol::Malformed>(())
//! ```

/// The version of the protocol.
pub const VERSION: u32 = 2;

/// Bytes of the longest packet. What does not fit (a large environment) is passed in a file in memory.
pub const PACKET: usize = 32 * 1024;

/// Bytes of the longest packet that is no launch: a path, and what is said of it.
pub const SHORT: usize = PATH;

/// Descriptors that travel with one packet at most: a target's four, and a file in memory.
pub const DESCRIPTORS: usize = 5;

/// Bytes of an unexecutable file that a failure quotes.
pub const SAMPLE: usize = 256;

/// Bytes of the longest path that is to be removed (`PATH_MAX`).
pub const PATH: usize = 4096;

/// Milliseconds that a target may take to reach its program before the host is told that it is on its way.
pub const HANDSHAKE: u32 = 900;

/// In a launch's place for a process group: a new one, in the session of the wardens.
pub const OWN_GROUP: u32 = u32::MAX;

/// In a launch's place for a process group: a session of its own, whose controlling terminal is the target's standard input.
pub const TERMINAL: u32 = u32::MAX - 1;

/// In a leaf's place of the table of graces, beside the milliseconds: its members were sent `SIGTERM` by the host, and are not
/// asked again.
pub const ASKED: u32 = 1 << 31;

/// Directories, and records, that a runtime warden holds at most. One more is a broken host's.
pub const DIRECTORIES: usize = 256;

/// Resource limits that a child gets, in the order of their numbers (getrlimit(2)).
pub const LIMITS: usize = 16;

/// The bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a packet of the warden's protocol is malformed")
    }
}

impl core::error::Error for Malformed {}

/// A packet that is being written, of at most `ROOM` bytes.
///
/// Whoever says something short often, and no launch, need not clear 32 KiB for it: `Packet::<SHORT>::with_room()`.
#[derive(Clone, Debug)]
pub struct Packet<const ROOM: usize = PACKET> {
    bytes: [u8; ROOM],
    length: usize,
}

impl Default for Packet {
    fn default() -> Self {
        Self::new()
    }
}

impl Packet {
    /// An empty one, with room for every message.
    pub const fn new() -> Self {
        Self::with_room()
    }
}

impl<const ROOM: usize> Packet<ROOM> {
    /// An empty one, with room for `ROOM` bytes: [`SHORT`] or [`PACKET`].
    pub const fn with_room() -> Self {
        Self {
            bytes: [0; ROOM],
            length: 0,
        }
    }

    /// Makes it empty again.
    pub const fn clear(&mut self) {
        self.length = 0;
    }

    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let end = self.length.checked_add(bytes.len()).ok_or(Malformed)?;
        let room = self.bytes.get_mut(self.length..end).ok_or(Malformed)?;
        room.copy_from_slice(bytes);
        self.length = end;
        Ok(())
    }

    fn put_u8(&mut self, value: u8) -> Result<(), Malformed> {
        self.put(&[value])
    }

    fn put_u32(&mut self, value: u32) -> Result<(), Malformed> {
        self.put(&value.to_ne_bytes())
    }

    fn put_i32(&mut self, value: i32) -> Result<(), Malformed> {
        self.put(&value.to_ne_bytes())
    }

    fn put_u64(&mut self, value: u64) -> Result<(), Malformed> {
        self.put(&value.to_ne_bytes())
    }
}

/// A packet that is being read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_ne_bytes(self.array()?))
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_ne_bytes(self.array()?))
    }

    fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_ne_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_ne_bytes(self.array()?))
    }

    fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

/// From the host to the runtime warden.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToRuntime<'a> {
    /// The first packet. One descriptor: a pidfd of the host.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// Milliseconds between `SIGTERM` and `SIGKILL` for what has no grace of its own.
        grace: u32,
    },
    /// A tree warden is wanted. One descriptor: its end of the socket that leads to the host.
    Tree,
    /// The runtime's control group. Two descriptors: the group's directory (`O_PATH` will not do: it is listed), and a file
    /// in memory with two little-endian `u32` per leaf, at eight times the number in the leaf's name (`t17`): the leaf's grace in
    /// milliseconds (perhaps with [`ASKED`]; 0 is none, and the runtime's counts), and 0 or the one member that the host, which
    /// has asked all others, has not asked. The rest is the group's absolute path, removed when the group is empty after the host's end.
    Group(&'a [u8]),
    /// A directory that goes, with all that is in it, when the host ends. The rest is its absolute path. One descriptor: the
    /// directory. There are at most [`DIRECTORIES`] of these and of records.
    Directory(&'a [u8]),
    /// The runtime's record, a file that whoever finds it may try to lock. The rest is its absolute path. One descriptor: the
    /// file, locked by the host; the warden's copy keeps it locked until everything else is removed, and then the file is
    /// removed.
    Record(&'a [u8]),
    /// That directory is no longer to be removed.
    Forget(&'a [u8]),
    /// The host is done: nothing is left to end or remove but the trees that still live. The connection ends after it.
    Goodbye,
}

/// From the runtime warden to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FromRuntime {
    /// The answer to [`ToRuntime::Hello`]: from here on the host's end is seen.
    Ready {
        /// [`VERSION`].
        version: u32,
        /// The number of the warden, by which a host to which orphans come reaps it.
        pid: u32,
    },
    /// No tree warden could be made for the last [`ToRuntime::Tree`]; its socket was closed.
    NoTree {
        /// Why.
        errno: i32,
    },
}

/// What becomes one of a target's standard descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// The next descriptor of the packet.
    Sent,
    /// A copy of standard output; for standard error only.
    Merge,
    /// `/dev/null`: the host's own descriptor of this number is closed.
    Null,
}

/// A target to start.
///
/// The strings are in one block, each with its NUL: `/bin/sh`, the arguments, the environment, the candidates, and the
/// working directory. The block follows in the packet, or lies in a file in memory that is the packet's last descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch<'a> {
    /// Milliseconds between `SIGTERM` and `SIGKILL` should the host end.
    pub grace: u32,
    /// Standard input, output and error.
    pub stdio: [Standard; 3],
    /// Whether a control descriptor follows the standard ones.
    pub control: bool,
    /// The process group to join, in the session of the wardens, or [`OWN_GROUP`]; 0 for a session of its own, without a
    /// controlling terminal, and [`TERMINAL`] for one that has one.
    pub group: u32,
    /// The host's file-creation mask.
    pub umask: u32,
    /// Soft and hard resource limits, as the host has them.
    pub limits: [(u64, u64); LIMITS],
    /// Arguments, from `argv[0]` on.
    pub arguments: u32,
    /// Entries of the environment.
    pub environment: u32,
    /// Paths to try.
    pub candidates: u32,
    /// Bytes of the block.
    pub length: u32,
    /// The block, or nothing where it is in a file in memory.
    pub block: &'a [u8],
}

/// From the host to a tree warden.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is decoded in place, where there is no heap, and never stored"
)]
pub enum ToTree<'a> {
    /// Start this. A warden has one tree at a time: a launch is valid after [`FromTree::Idle`] only.
    Launch(Launch<'a>),
    /// Send `SIGTERM`, then `SIGCONT`, to every member that was not asked yet.
    Ask,
    /// Send `SIGTERM`, then `SIGCONT`, once to every member but the target. Those are not asked again.
    AskOthers,
    /// Send `SIGKILL` to every member until none is left.
    Kill,
    /// Send this signal, once, to every member.
    Signal {
        /// Its number.
        number: u32,
    },
    /// The host gives the tree up: end it, as if the host had ended.
    Abandon,
}

/// A target that never reached its program; the fields are those of the report between clone and exec.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed<'a> {
    /// The code of the step; 0 where there was no child at all.
    pub step: u32,
    /// Why.
    pub errno: i32,
    /// The place of the candidate that decided it.
    pub candidate: u32,
    /// The candidate's type and permissions, or 0.
    pub mode: u32,
    /// The candidate's first bytes, where the failure depends on them; at most [`SAMPLE`].
    pub sample: &'a [u8],
}

/// How the target ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exited {
    /// Its exit code, where `signal` is 0.
    pub code: u32,
    /// The signal that ended it, or 0.
    pub signal: u32,
    /// Whether that dumped core.
    pub core_dumped: bool,
    /// Microseconds on a processor, of the target and the descendants it waited for.
    pub user: u64,
    /// Microseconds in the kernel, likewise.
    pub system: u64,
    /// The largest resident set, in bytes.
    pub peak_memory: u64,
}

/// From a tree warden to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FromTree<'a> {
    /// It has no tree, and waits for one.
    Idle {
        /// Its own pid.
        pid: u32,
    },
    /// The target was cloned, and has not reached its program within [`HANDSHAKE`]. One descriptor: its pidfd.
    /// [`FromTree::Running`] or [`FromTree::Failed`] follows, in its own time.
    Cloned {
        /// Its pid.
        pid: u32,
    },
    /// The target runs its program. One descriptor: its pidfd. (One packet and not two, so that the host is woken once.)
    Running {
        /// Its pid.
        pid: u32,
        /// Why it has no session of its own, or 0.
        session_errno: i32,
    },
    /// There is no target, and never will be. [`FromTree::Idle`] follows.
    Failed(Failed<'a>),
    /// The target has ended.
    Exited(Exited),
    /// The tree is gone: no member is left that can run. [`FromTree::Idle`] follows.
    Gone {
        /// Microseconds on a processor, of every member whose end the warden has seen, with what those waited for.
        user: u64,
        /// Microseconds in the kernel, likewise.
        system: u64,
    },
}

impl ToRuntime<'_> {
    /// Writes the message into an empty packet.
    ///
    /// # Errors
    ///
    /// When it is too long.
    pub fn encode<const ROOM: usize>(&self, packet: &mut Packet<ROOM>) -> Result<(), Malformed> {
        match self {
            Self::Hello { version, grace } => {
                packet.put_u8(1)?;
                packet.put_u32(*version)?;
                packet.put_u32(*grace)
            }
            Self::Tree => packet.put_u8(2),
            Self::Group(path) => packet.put_u8(3).and_then(|()| put_path(packet, path)),
            Self::Directory(path) => packet.put_u8(4).and_then(|()| put_path(packet, path)),
            Self::Forget(path) => packet.put_u8(5).and_then(|()| put_path(packet, path)),
            Self::Goodbye => packet.put_u8(6),
            Self::Record(path) => packet.put_u8(7).and_then(|()| put_path(packet, path)),
        }
    }
}

impl<'a> ToRuntime<'a> {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// When the bytes are none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let message = match fields.u8()? {
            1 => Self::Hello {
                version: fields.u32()?,
                grace: fields.u32()?,
            },
            2 => Self::Tree,
            3 => Self::Group(path(&mut fields)?),
            4 => Self::Directory(path(&mut fields)?),
            5 => Self::Forget(path(&mut fields)?),
            6 => Self::Goodbye,
            7 => Self::Record(path(&mut fields)?),
            _ => return Err(Malformed),
        };
        fields.end()?;
        Ok(message)
    }
}

impl FromRuntime {
    /// Writes the message into an empty packet.
    ///
    /// # Errors
    ///
    /// None that a packet of this size can raise.
    pub fn encode<const ROOM: usize>(&self, packet: &mut Packet<ROOM>) -> Result<(), Malformed> {
        match self {
            Self::Ready { version, pid } => {
                packet.put_u8(1)?;
                packet.put_u32(*version)?;
                packet.put_u32(*pid)
            }
            Self::NoTree { errno } => {
                packet.put_u8(2)?;
                packet.put_i32(*errno)
            }
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// When the bytes are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let message = match fields.u8()? {
            1 => Self::Ready {
                version: fields.u32()?,
                pid: fields.u32()?,
            },
            2 => Self::NoTree { errno: fields.i32()? },
            _ => return Err(Malformed),
        };
        fields.end()?;
        Ok(message)
    }
}

impl ToTree<'_> {
    /// Writes the message into an empty packet.
    ///
    /// # Errors
    ///
    /// When it is too long: the block of a launch belongs into a file in memory then.
    pub fn encode<const ROOM: usize>(&self, packet: &mut Packet<ROOM>) -> Result<(), Malformed> {
        match self {
            Self::Launch(launch) => {
                packet.put_u8(1)?;
                launch.encode(packet)
            }
            Self::Ask => packet.put_u8(2),
            Self::Kill => packet.put_u8(3),
            Self::Signal { number } => {
                packet.put_u8(4)?;
                packet.put_u32(*number)
            }
            Self::Abandon => packet.put_u8(5),
            Self::AskOthers => packet.put_u8(6),
        }
    }
}

impl<'a> ToTree<'a> {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// When the bytes are none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let message = match fields.u8()? {
            1 => Self::Launch(Launch::decode(&mut fields)?),
            2 => Self::Ask,
            3 => Self::Kill,
            4 => Self::Signal {
                number: fields.u32()?,
            },
            5 => Self::Abandon,
            6 => Self::AskOthers,
            _ => return Err(Malformed),
        };
        fields.end()?;
        Ok(message)
    }
}

impl<'a> Launch<'a> {
    fn encode<const ROOM: usize>(&self, packet: &mut Packet<ROOM>) -> Result<(), Malformed> {
        packet.put_u32(self.grace)?;
        for standard in self.stdio {
            packet.put_u8(match standard {
                Standard::Sent => 0,
                Standard::Merge => 1,
                Standard::Null => 2,
            })?;
        }
        packet.put_u8(self.control.into())?;
        packet.put_u32(self.group)?;
        packet.put_u32(self.umask)?;
        for (soft, hard) in self.limits {
            packet.put_u64(soft)?;
            packet.put_u64(hard)?;
        }
        packet.put_u32(self.arguments)?;
        packet.put_u32(self.environment)?;
        packet.put_u32(self.candidates)?;
        packet.put_u32(self.length)?;
        packet.put(self.block)
    }

    fn decode(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let grace = fields.u32()?;
        let mut stdio = [Standard::Null; 3];
        for (number, standard) in stdio.iter_mut().enumerate() {
            *standard = match (fields.u8()?, number) {
                (0, _) => Standard::Sent,
                (1, 2) => Standard::Merge,
                (2, _) => Standard::Null,
                _ => return Err(Malformed),
            };
        }
        let control = fields.flag()?;
        let group = fields.u32()?;
        let umask = fields.u32()?;
        let mut limits = [(0, 0); LIMITS];
        for limit in &mut limits {
            *limit = (fields.u64()?, fields.u64()?);
        }
        let launch = Self {
            grace,
            stdio,
            control,
            group,
            umask,
            limits,
            arguments: fields.u32()?,
            environment: fields.u32()?,
            candidates: fields.u32()?,
            length: fields.u32()?,
            block: fields.rest(),
        };
        let inline = launch.block.is_empty() || launch.block.len() == launch.length as usize;
        if inline && launch.arguments > 0 {
            Ok(launch)
        } else {
            Err(Malformed)
        }
    }
}

impl FromTree<'_> {
    /// Writes the message into an empty packet.
    ///
    /// # Errors
    ///
    /// When a sample is longer than [`SAMPLE`].
    pub fn encode<const ROOM: usize>(&self, packet: &mut Packet<ROOM>) -> Result<(), Malformed> {
        match self {
            Self::Idle { pid } => {
                packet.put_u8(1)?;
                packet.put_u32(*pid)
            }
            Self::Cloned { pid } => {
                packet.put_u8(2)?;
                packet.put_u32(*pid)
            }
            Self::Running { pid, session_errno } => {
                packet.put_u8(3)?;
                packet.put_u32(*pid)?;
                packet.put_i32(*session_errno)
            }
            Self::Failed(failed) => {
                if failed.sample.len() > SAMPLE {
                    return Err(Malformed);
                }
                packet.put_u8(4)?;
                packet.put_u32(failed.step)?;
                packet.put_i32(failed.errno)?;
                packet.put_u32(failed.candidate)?;
                packet.put_u32(failed.mode)?;
                packet.put(failed.sample)
            }
            Self::Exited(exited) => {
                packet.put_u8(5)?;
                packet.put_u32(exited.code)?;
                packet.put_u32(exited.signal)?;
                packet.put_u8(exited.core_dumped.into())?;
                packet.put_u64(exited.user)?;
                packet.put_u64(exited.system)?;
                packet.put_u64(exited.peak_memory)
            }
            Self::Gone { user, system } => {
                packet.put_u8(6)?;
                packet.put_u64(*user)?;
                packet.put_u64(*system)
            }
        }
    }
}

impl<'a> FromTree<'a> {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// When the bytes are none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let message = match fields.u8()? {
            1 => Self::Idle { pid: fields.u32()? },
            2 => Self::Cloned { pid: fields.u32()? },
            3 => Self::Running {
                pid: fields.u32()?,
                session_errno: fields.i32()?,
            },
            4 => Self::Failed(Failed {
                step: fields.u32()?,
                errno: fields.i32()?,
                candidate: fields.u32()?,
                mode: fields.u32()?,
                sample: sample(&mut fields)?,
            }),
            5 => Self::Exited(Exited {
                code: fields.u32()?,
                signal: fields.u32()?,
                core_dumped: fields.flag()?,
                user: fields.u64()?,
                system: fields.u64()?,
                peak_memory: fields.u64()?,
            }),
            6 => Self::Gone {
                user: fields.u64()?,
                system: fields.u64()?,
            },
            _ => return Err(Malformed),
        };
        fields.end()?;
        Ok(message)
    }
}

fn put_path<const ROOM: usize>(packet: &mut Packet<ROOM>, path: &[u8]) -> Result<(), Malformed> {
    if is_path(path) {
        packet.put(path)
    } else {
        Err(Malformed)
    }
}

fn path<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8], Malformed> {
    let path = fields.rest();
    if is_path(path) { Ok(path) } else { Err(Malformed) }
}

/// Absolute, no NUL, and short enough to be one.
fn is_path(path: &[u8]) -> bool {
    path.first() == Some(&b'/') && path.len() < PATH && !path.contains(&0)
}

fn sample<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8], Malformed> {
    let sample = fields.rest();
    if sample.len() <= SAMPLE {
        Ok(sample)
    } else {
        Err(Malformed)
    }
}
