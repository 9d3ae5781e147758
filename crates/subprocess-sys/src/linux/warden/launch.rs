//! Asking a tree warden for a child.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use dsh_subprocess_warden::protocol::{self, Exited, Failed, LIMITS, Packet, Standard, ToTree};
use dsh_subprocess_warden::report::FailedStep;
use rustix::io::Errno;
use rustix::process::getpid;

use super::super::limits;
use super::super::memory_file;
use super::super::pidfd::{End, Status};
use super::super::spawn::{Descriptor, ExecFailure, Launch, Program, Session, StartError};
use super::super::table;
use super::link::Link;

/// Why a tree warden was not asked.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The arguments and the environment do not fit into a packet, and could not be put into a file in memory.
    #[error("no file in memory for the arguments and the environment")]
    Block(#[source] Errno),
    /// The launch asks for what a warden has no part in: a cgroup, or a process group of its own in the host's session.
    #[error("a warden starts no child in a cgroup or in a new process group")]
    Unsupported,
    /// The warden cannot be reached.
    #[error("the tree warden cannot be reached")]
    Send(#[source] Errno),
}

/// Asks an idle tree warden to start a program, with this process's limits and file-creation mask. The answers come on the
/// link.
///
/// `grace` is the time between `SIGTERM` and `SIGKILL`, should this process end; it is cut off at about 49 days. For
/// [`Session::Host`] the warden itself must live in the host's session.
///
/// # Errors
///
/// When it was not asked; nothing was started then.
pub fn launch(
    link: &Link,
    program: &Program,
    launch: Launch<'_>,
    grace: Duration,
) -> Result<(), LaunchError> {
    let group = match launch.session {
        Session::Own => 0,
        Session::OwnTerminal => protocol::TERMINAL,
        // A group whose leader is in another pid namespace has no number here to join it by.
        Session::Host => table::group_of(getpid()).map_or(protocol::OWN_GROUP, |group| {
            group.as_raw_nonzero().get().unsigned_abs()
        }),
        Session::OwnGroup => return Err(LaunchError::Unsupported),
    };
    if launch.cgroup.is_some() || launch.join_cgroup.is_some() {
        return Err(LaunchError::Unsupported);
    }
    let mut descriptors = Vec::with_capacity(protocol::DESCRIPTORS);
    let mut stdio = [Standard::Null; 3];
    for ((number, standard), descriptor) in (0..).zip(&mut stdio).zip(launch.stdio) {
        let sent = match descriptor {
            Descriptor::Inherit => own(number),
            Descriptor::From(descriptor) => Some(descriptor),
            Descriptor::Merge => {
                *standard = Standard::Merge;
                continue;
            }
        };
        if let Some(sent) = sent {
            *standard = Standard::Sent;
            descriptors.push(sent);
        }
    }
    descriptors.extend(launch.control);

    let strings = program.strings();
    let mut wanted = protocol::Launch {
        grace: u32::try_from(grace.as_millis()).unwrap_or(u32::MAX),
        stdio,
        control: launch.control.is_some(),
        group,
        umask: umask(),
        limits: limits::all::<LIMITS>(),
        arguments: strings.arguments,
        environment: strings.environment,
        candidates: strings.candidates,
        length: u32::try_from(strings.block.len()).map_err(|_| LaunchError::Block(Errno::TOOBIG))?,
        block: strings.block,
    };
    let mut packet = Packet::new();
    let mut file: Option<OwnedFd> = None;
    if ToTree::Launch(wanted).encode(&mut packet).is_err() {
        file = Some(memory_file::of(strings.block).map_err(LaunchError::Block)?);
        wanted.block = &[];
        packet = Packet::new();
        ToTree::Launch(wanted)
            .encode(&mut packet)
            .expect("all that is left of it has a fixed size");
    }
    descriptors.extend(file.as_ref().map(AsFd::as_fd));
    link.send(&packet, &descriptors).map_err(LaunchError::Send)
}

/// Returns the host's own descriptor of a number, if it is open.
fn own(number: i32) -> Option<BorrowedFd<'static>> {
    // SAFETY: the number is only asked about, and then handed to the kernel: whoever closes it meanwhile makes the call fail
    // or pass on what he has put in its place, which is what the host's standard descriptor is then.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_getfd(descriptor).ok().map(|_| descriptor)
}

/// Returns this thread's file-creation mask.
fn umask() -> u32 {
    // Read, since asking by umask(2) means changing it, for every thread. It is in the second line (proc_pid_status(5), Linux
    // 4.7); the first one's name is at most 64 bytes.
    let mut start = [0; 128];
    let length = File::open("/proc/thread-self/status")
        .and_then(|mut status| status.read(&mut start))
        .unwrap_or(0);
    parse_umask(&start[..length]).unwrap_or_else(|| {
        // Without /proc: a file that another thread makes in between is more private than it should be.
        let mask = rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
        rustix::process::umask(mask);
        mask.as_raw_mode()
    })
}

/// Finds the mask in the beginning of a `status` file.
fn parse_umask(status: &[u8]) -> Option<u32> {
    let line = status
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"Umask:\t"))?;
    u32::from_str_radix(str::from_utf8(line).ok()?, 8).ok()
}

/// Why a tree warden has no target to show for a launch.
#[derive(Debug)]
pub enum NotStarted {
    /// No child was made.
    Start(StartError),
    /// It never reached its program.
    Exec(ExecFailure),
}

/// Reads the words of a tree warden as those of a spawn without one.
pub fn not_started(failed: &Failed<'_>) -> NotStarted {
    match FailedStep::from_code(failed.step) {
        None => NotStarted::Start(StartError::Clone(Errno::from_raw_os_error(failed.errno))),
        Some(step) => NotStarted::Exec(ExecFailure {
            step,
            errno: failed.errno,
            candidate: failed.candidate as usize,
            mode: (failed.mode != 0).then_some(failed.mode),
            sample: failed.sample.to_vec(),
        }),
    }
}

/// Reads the words of a tree warden as those of a wait for the target.
pub fn end(exited: &Exited) -> End {
    End {
        status: match exited.signal {
            0 => Status::Exited(exited.code as u8),
            signal => Status::Signaled {
                signal: signal as i32,
                core_dumped: exited.core_dumped,
            },
        },
        user: Duration::from_micros(exited.user),
        system: Duration::from_micros(exited.system),
        peak_memory_bytes: exited.peak_memory,
    }
}
