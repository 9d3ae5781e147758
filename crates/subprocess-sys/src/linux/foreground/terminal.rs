//! Which file is the terminal.

use std::os::fd::AsFd;

use rustix::fs::{FileType, Statx, fstat, major, minor};
use rustix::io::Errno;
use rustix::process::Pid;

use super::super::table;
use super::directory::Directory;
use super::text::Watch;

/// The identity of a terminal's slave: it names the terminal for as long as somebody has it open, whatever the descriptor
/// or the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TerminalId {
    /// The file system it is in. Each instance of devpts numbers its terminals from 0 (`devpts(5)`).
    file_system: Device,
    inode: u64,
    number: Device,
}

impl TerminalId {
    /// Identifies the terminal of which `slave` is a descriptor.
    ///
    /// ```
    /// use dsh_subprocess_sys::foreground::TerminalId;
    /// use dsh_subprocess_sys::pty;
    /// let (one, other) = (pty::open(24, 80)?, pty::open(24, 80)?);
    /// assert_eq!(TerminalId::of(&one.slave)?, TerminalId::of(one.slave.try_clone()?)?);
    /// assert_ne!(TerminalId::of(&one.slave)?, TerminalId::of(&other.slave)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `ENOTTY` for what is no character device.
    pub fn of(slave: impl AsFd) -> Result<Self, Errno> {
        let file = fstat(slave)?;
        if FileType::from_raw_mode(file.st_mode) != FileType::CharacterDevice {
            return Err(Errno::NOTTY);
        }
        Ok(Self {
            file_system: Device::new(major(file.st_dev), minor(file.st_dev)),
            inode: file.st_ino,
            number: Device::new(major(file.st_rdev), minor(file.st_rdev)),
        })
    }

    /// Tells whether a process has the terminal open. Not whether it could open it: that any process of its session can.
    pub fn is_held_by(&self, process: Pid) -> bool {
        if !table::is_ours() {
            return false;
        }
        let Ok(directory) = Directory::of(process) else {
            return false;
        };
        directory
            .descriptors()
            .any(|descriptor| directory.file(descriptor).is_ok_and(|file| self.is(&file)))
    }

    /// Tells whether this is the terminal.
    pub(super) fn is(&self, file: &Statx) -> bool {
        FileType::from_raw_mode(file.stx_mode.into()) == FileType::CharacterDevice
            && self.file_system == Device::new(file.stx_dev_major, file.stx_dev_minor)
            && self.inode == file.stx_ino
            && self.number == number(file)
    }

    /// Tells whether it is the terminal that a set watches.
    pub(super) fn is_watched(&self, watch: &Watch) -> bool {
        self.inode == watch.inode && self.is_beside(watch)
    }

    /// Tells whether what a set watches is in the file system of the terminal.
    pub(super) fn is_beside(&self, watch: &Watch) -> bool {
        self.file_system.in_kernel() == watch.device
    }

    /// Tells whether it is the controlling terminal that `stat` shows, of a process in the terminal's session. The number
    /// alone would not say it: it may be that of a terminal in another devpts.
    pub(super) fn is_controlling(&self, shown: i32) -> bool {
        self.number.in_stat() == shown.cast_unsigned()
    }
}

/// Tells whether a file is `/dev/tty`, which stands for the controlling terminal of whoever opened it (tty(4)).
pub(super) fn stands_for_controlling(file: &Statx) -> bool {
    FileType::from_raw_mode(file.stx_mode.into()) == FileType::CharacterDevice
        && number(file) == Device::new(5, 0)
}

fn number(file: &Statx) -> Device {
    Device::new(file.stx_rdev_major, file.stx_rdev_minor)
}

/// A device number. The kernel has three ways to put one into a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Device {
    major: u32,
    minor: u32,
}

impl Device {
    fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// As an epoll set's `fdinfo` shows it (`MKDEV` in `linux/kdev_t.h`): 12 bits and 20.
    fn in_kernel(self) -> u32 {
        self.major << 20 | self.minor
    }

    /// As `stat` shows it (`new_encode_dev` in `linux/kdev_t.h`): the minor number is cut in two.
    fn in_stat(self) -> u32 {
        self.minor & 0xff | self.major << 8 | (self.minor & !0xff) << 12
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_number_is_in_stat_as_the_manual_says() {
        // proc_pid_stat(5): "the minor device number is contained in the combination of bits 31 to 20 and 7 to 0".
        assert_eq!(Device::new(136, 3).in_stat(), 0x8803);
        assert_eq!(Device::new(136, 0x5_67ab).in_stat(), 0x5670_88ab);
    }

    #[test]
    fn what_is_no_terminal_has_no_identity() {
        let pipe = crate::pipe::pipe().expect("a pipe");
        assert_eq!(TerminalId::of(&pipe.reader), Err(Errno::NOTTY));
    }
}
