//! What a thread's descriptors are, and whether one of them has the terminal's input behind it.

use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::os::fd::RawFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::answer::{Missed, Unseen, any};
use super::directory::Directory;
use super::terminal::{TerminalId, stands_for_controlling};
use super::text::{self, Malformed, Watch};

/// The most that is read of an epoll set, in bytes: a descriptor takes about 80.
const SET_BYTES: u64 = 512 * 1024;
/// Epoll sets within epoll sets. The kernel allows five (`EP_MAX_NESTS` in fs/eventpoll.c).
const NESTED: u32 = 8;

/// `POLLIN` and `POLLRDNORM`, of which a terminal always reports both (poll(2)).
pub(super) const INPUT: u16 = (libc::POLLIN | libc::POLLRDNORM).cast_unsigned();

/// The descriptors of one thread.
pub(super) struct Descriptors<'a> {
    /// The thread. Its descriptors need not be its process's (`CLONE_FILES` in clone(2)).
    pub(super) thread: &'a Directory,
    /// What is looked for.
    pub(super) terminal: &'a TerminalId,
    /// Whether `/dev/tty` is the terminal.
    pub(super) controlled: bool,
    /// How many more are looked at.
    pub(super) left: &'a Cell<u32>,
}

/// What a descriptor is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Terminal,
    EpollSet,
    IoUring,
    Other,
}

impl Descriptors<'_> {
    /// Tells whether any more are looked at.
    pub(super) fn are_left(&self) -> bool {
        self.left.get() > 0
    }

    /// Tells whether a descriptor is the terminal.
    pub(super) fn is_terminal(&self, descriptor: RawFd) -> Result<bool, Missed> {
        Ok(self.kind(descriptor, None)? == Kind::Terminal)
    }

    /// Tells whether whoever waits for input on a descriptor waits for the terminal's.
    pub(super) fn has_input(&self, descriptor: RawFd) -> Result<bool, Missed> {
        self.input(descriptor, None, NESTED)
    }

    /// Tells whether whoever waits for an epoll set waits for the terminal's input.
    pub(super) fn set_has_input(&self, set: RawFd) -> Result<bool, Missed> {
        self.set(set, NESTED)
    }

    fn set(&self, descriptor: RawFd, nested: u32) -> Result<bool, Missed> {
        let Some(nested) = nested.checked_sub(1) else {
            return Err(Unseen::TooMuch.into());
        };
        let info = File::from(self.thread.open(format!("fdinfo/{descriptor}"))?);
        let mut lines = Vec::new();
        let read = info.take(SET_BYTES).read_to_end(&mut lines);
        read.map_err(|error| Missed::from(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        let whole = if lines.len() as u64 == SET_BYTES {
            // The last line is half a line.
            lines.truncate(lines.iter().rposition(|&byte| byte == b'\n').unwrap_or(0));
            Err(Unseen::TooMuch.into())
        } else {
            Ok(false)
        };
        let looks = lines
            .split(|&byte| byte == b'\n')
            .map(|line| match text::watch(line) {
                Ok(Some(watch)) => self.watched(&watch, nested),
                Ok(None) => Ok(false),
                Err(Malformed) => Err(Unseen::Form.into()),
            });
        any(looks.chain([whole]))
    }

    fn watched(&self, watch: &Watch, nested: u32) -> Result<bool, Missed> {
        if watch.events & u32::from(INPUT) == 0 {
            self.count()?;
            return Ok(false);
        }
        // The set keeps the file, also when the descriptor it was added by is closed.
        if self.terminal.is_watched(watch) {
            return Ok(true);
        }
        match self.input(watch.descriptor, Some(watch.inode), nested) {
            // It is among the terminals, and it is another one.
            Err(Missed::Gone) if self.terminal.is_beside(watch) => Ok(false),
            Err(Missed::Gone) => Err(Unseen::Closed.into()),
            input => input,
        }
    }

    /// `inode` as for [`kind`](Self::kind).
    fn input(&self, descriptor: RawFd, inode: Option<u64>, nested: u32) -> Result<bool, Missed> {
        match self.kind(descriptor, inode)? {
            Kind::Terminal => Ok(true),
            Kind::EpollSet => self.set(descriptor, nested),
            Kind::IoUring => Err(Unseen::IoUring.into()),
            Kind::Other => Ok(false),
        }
    }

    /// Tells what a descriptor is. One that is not open on the file with the given `inode` any more is gone.
    fn kind(&self, descriptor: RawFd, inode: Option<u64>) -> Result<Kind, Missed> {
        self.count()?;
        let file = match self.thread.file(descriptor) {
            Ok(file) => file,
            Err(
                errno @ (Errno::NOENT
                | Errno::SRCH
                | Errno::ACCESS
                | Errno::PERM
                | Errno::NOSYS
                | Errno::NOMEM),
            ) => {
                return Err(errno.into());
            }
            // A file of a file system that is out of order.
            Err(_) => return Ok(Kind::Other),
        };
        if inode.is_some_and(|inode| inode != file.stx_ino) {
            return Err(Missed::Gone);
        }
        match FileType::from_raw_mode(file.stx_mode.into()) {
            FileType::CharacterDevice => {
                let is_terminal = self.terminal.is(&file) || self.controlled && stands_for_controlling(&file);
                Ok(if is_terminal { Kind::Terminal } else { Kind::Other })
            }
            // What has no inode of its own has no type.
            FileType::Unknown => {
                let mut link = [0; 64];
                Ok(match self.thread.link(descriptor, &mut link)? {
                    b"anon_inode:[eventpoll]" => Kind::EpollSet,
                    b"anon_inode:[io_uring]" => Kind::IoUring,
                    _ => Kind::Other,
                })
            }
            _ => Ok(Kind::Other),
        }
    }

    fn count(&self) -> Result<(), Unseen> {
        self.left
            .set(self.left.get().checked_sub(1).ok_or(Unseen::TooMuch)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, OwnedFd};

    use rustix::event::EventfdFlags;
    use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
    use rustix::process::getpid;

    use super::*;
    use crate::linux::pty;

    /// Tells whether a set of this process has the terminal's input.
    fn set_has_input(set: &impl AsRawFd, slave: &impl std::os::fd::AsFd) -> Result<bool, Missed> {
        let descriptors = Descriptors {
            thread: &Directory::of(getpid()).expect("it is there"),
            terminal: &TerminalId::of(slave).expect("it is one"),
            controlled: false,
            left: &Cell::new(100),
        };
        descriptors.set_has_input(set.as_raw_fd())
    }

    #[test]
    fn a_number_that_is_another_files_by_now_is_not_what_a_set_watches() {
        let slave = pty::open(24, 80).expect("a terminal").slave;
        let other = pty::open(24, 80).expect("a terminal").slave;
        let set = epoll::create(CreateFlags::CLOEXEC).expect("descriptors are left");
        let kept = other.try_clone().expect("descriptors are left");
        epoll::add(&set, &other, EventData::new_u64(0), EventFlags::IN).expect("it can be waited for");
        let mut other = other;
        rustix::io::dup2(&slave, &mut other).expect("both are open");
        assert_eq!(set_has_input(&set, &slave), Ok(false));
        assert_eq!(set_has_input(&set, &kept), Ok(true));
    }

    #[test]
    fn a_file_without_a_descriptor_in_a_set_cannot_be_told() {
        let slave = pty::open(24, 80).expect("a terminal").slave;
        let set = epoll::create(CreateFlags::CLOEXEC).expect("descriptors are left");
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).expect("descriptors are left");
        let added = event.try_clone().expect("descriptors are left");
        epoll::add(&set, &added, EventData::new_u64(0), EventFlags::IN).expect("it can be waited for");
        assert_eq!(set_has_input(&set, &slave), Ok(false));
        let mut added = added;
        rustix::io::dup2(&slave, &mut added).expect("both are open");
        assert_eq!(set_has_input(&set, &slave), Err(Unseen::Closed.into()));
    }

    #[test]
    fn a_set_is_read_as_far_as_the_bound() {
        let slave = pty::open(24, 80).expect("a terminal").slave;
        let set = epoll::create(CreateFlags::CLOEXEC).expect("descriptors are left");
        let watch = |descriptor: &OwnedFd| {
            epoll::add(&set, descriptor, EventData::new_u64(0), EventFlags::IN)
                .expect("it can be waited for");
        };
        let others: Vec<OwnedFd> = (0..101)
            .map(|_| rustix::event::eventfd(0, EventfdFlags::CLOEXEC).expect("descriptors are left"))
            .collect();
        others[1..].iter().for_each(watch);
        assert_eq!(set_has_input(&set, &slave), Ok(false));
        watch(&others[0]);
        assert_eq!(set_has_input(&set, &slave), Err(Unseen::TooMuch.into()));
    }
}
