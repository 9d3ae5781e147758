//! The raw ends of a tree's pipes, on their way to Node.js, which reads and writes them by itself.

use std::os::fd::{IntoRawFd, OwnedFd};

use dsh_subprocess::{ControlPipe, PipeReader, PipeWriter};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;

/// What JavaScript gets where there is no descriptor.
const NONE: i32 = -1;

/// The raw ends that nobody has taken yet.
#[derive(Default)]
pub(crate) struct Pipes {
    pub(crate) stdin: Option<PipeWriter>,
    pub(crate) stdout: RawOutput,
    pub(crate) stderr: RawOutput,
    pub(crate) control: Control,
}

/// The control pipe: a socket, of which both directions are one descriptor's.
#[derive(Default)]
pub(crate) enum Control {
    /// Both directions are open here.
    Open(ControlPipe),
    /// The tree is gone, and bytes are left in it.
    Left(OwnedFd),
    /// There is none, or it was taken, or nothing is left in it.
    #[default]
    None,
}

impl Control {
    /// Takes the descriptor.
    fn descriptor(&mut self) -> Option<OwnedFd> {
        match std::mem::take(self) {
            Self::Open(ControlPipe { reader, writer }) => {
                // Closed as a descriptor, the second one ends no direction; dropped as it is, it would end the writing.
                drop(writer.try_into_fd());
                reader.try_into_fd().ok()
            }
            Self::Left(fd) => Some(fd),
            Self::None => None,
        }
    }
}

/// One raw output.
#[derive(Default)]
pub(crate) enum RawOutput {
    /// The runtime sees its end.
    Open(PipeReader),
    /// Its writers are gone, and bytes are left in it.
    Left(OwnedFd),
    /// There is none, or it was taken, or nothing is left in it.
    #[default]
    None,
}

impl RawOutput {
    /// Takes the descriptor.
    pub(crate) fn take(&mut self) -> i32 {
        match std::mem::take(self) {
            Self::Open(reader) => reader.try_into_fd().map_or(NONE, IntoRawFd::into_raw_fd),
            Self::Left(fd) => fd.into_raw_fd(),
            Self::None => NONE,
        }
    }

    /// Closes what has ended with nothing unread: a host that never looks at a stream would otherwise have it open until its
    /// handle is collected.
    fn close_if_over(&mut self) {
        let Self::Open(reader) = std::mem::take(self) else {
            return;
        };
        if let Ok(fd) = reader.try_into_fd()
            && !is_over(&fd)
        {
            *self = Self::Left(fd);
        }
    }
}

impl Pipes {
    /// The tree's streams have ended, or their drain is over.
    pub(crate) fn settle(&mut self) {
        self.stdout.close_if_over();
        self.stderr.close_if_over();
    }

    /// Takes the descriptor of the standard input.
    pub(crate) fn take_stdin(&mut self) -> i32 {
        self.stdin
            .take()
            .and_then(|writer| writer.try_into_fd().ok())
            .map_or(NONE, IntoRawFd::into_raw_fd)
    }

    /// The tree is gone: what it has said by the control pipe is all that it will.
    pub(crate) fn close_control_if_empty(&mut self) {
        // Whether anybody has the other end does not tell: another child has everything until its exec.
        if let Some(fd) = self.control.descriptor()
            && ioctl_fionread(&fd) != Ok(0)
        {
            self.control = Control::Left(fd);
        }
    }

    /// Takes the descriptor of the control pipe.
    pub(crate) fn take_control(&mut self) -> i32 {
        self.control.descriptor().map_or(NONE, IntoRawFd::into_raw_fd)
    }
}

/// Whether a pipe has neither writers nor bytes.
fn is_over(fd: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(fd, PollFlags::IN)];
    match poll(&mut polled, Some(&Timespec::default())) {
        Ok(1) => {
            let events = polled[0].revents();
            events.contains(PollFlags::HUP) && !events.contains(PollFlags::IN)
        }
        _ => false,
    }
}
