//! The descriptors that a call waits for, and whether one of them is the terminal.

use std::os::fd::RawFd;

use super::answer::{Missed, Unseen, any};
use super::call::{Call, Listed};
use super::descriptor::{Descriptors, INPUT};
use super::text::{self, POLLED, WORD};

/// The most numbers that are looked at in a bitmap.
const SELECTED: u32 = 65_536;
/// The most structures that are looked at in an array.
const POLLED_MOST: u32 = 4096;

impl Descriptors<'_> {
    /// Tells whether a call waits for input from the terminal.
    pub(super) fn wanted(&self, call: Call) -> Result<bool, Missed> {
        if !self.are_left() {
            return Err(Unseen::TooMuch.into());
        }
        match call {
            Call::Read(descriptor) => self.is_terminal(descriptor),
            Call::Copy(descriptor) => match self.is_terminal(descriptor) {
                Ok(true) => Err(Unseen::Copying.into()),
                other => other,
            },
            Call::Select(set) => self.selected(set),
            Call::Poll(array) => self.polled(array),
            Call::Epoll(set) => self.set_has_input(set),
            Call::Restarted(array) => self.restarted(array),
            Call::Other => Ok(false),
        }
    }

    fn selected(&self, set: Listed) -> Result<bool, Missed> {
        // No bitmap of input is given.
        if set.address == 0 {
            return Ok(false);
        }
        let words = set.count.min(SELECTED).div_ceil(u64::BITS) as usize;
        let look = |distance: usize, part: &[u8]| {
            let descriptors = text::members(part, distance as u32 * u8::BITS);
            let descriptors = descriptors.take_while(|descriptor| *descriptor < set.count);
            any(descriptors.map(|descriptor| self.has_input(descriptor as RawFd)))
        };
        any([
            self.thread.memory(set.address, words * WORD, look),
            within(set.count, SELECTED),
        ])
    }

    fn polled(&self, array: Listed) -> Result<bool, Missed> {
        let length = array.count.min(POLLED_MOST) as usize * POLLED;
        let look = |_, part: &[u8]| {
            // A negative number is one to be left out (poll(2)).
            let wanted =
                text::polled(part).filter(|&(descriptor, events)| descriptor >= 0 && events & INPUT != 0);
            any(wanted.map(|(descriptor, _)| self.has_input(descriptor)))
        };
        any([
            self.thread.memory(array.address, length, look),
            within(array.count, POLLED_MOST),
        ])
    }

    /// Tells whether a call of which only the arguments are known waits for the terminal.
    fn restarted(&self, array: Listed) -> Result<bool, Missed> {
        let wanted = self.polled(array);
        // Were it a poll, it would wait for nothing that matters, or would have been refused.
        if let Ok(false) | Err(Missed::Gone | Missed::Unseen(Unseen::Memory)) = wanted {
            return Ok(false);
        }
        match self.is_in_poll() {
            Some(true) => wanted,
            Some(false) => Ok(false),
            None => Err(Unseen::Restarted.into()),
        }
    }

    /// Tells whether the call that a thread goes on with is a poll, by the kernel's function that it sleeps in (`wchan` in
    /// `proc_pid_wchan(5)`). `None` where that is not shown, or not known here.
    fn is_in_poll(&self) -> Option<bool> {
        let mut function = [0; 128];
        let function = str::from_utf8(self.thread.read(c"wchan", &mut function).ok()?).ok()?;
        if function.contains("poll") {
            return Some(true);
        }
        // What else goes on so: the waits with a timeout of nanosleep(2), clock_nanosleep(2) and futex(2).
        (function.contains("sleep") || function.contains("futex")).then_some(false)
    }
}

/// There is more than is looked at where there are more than `most`.
fn within(count: u32, most: u32) -> Result<bool, Missed> {
    if count > most {
        return Err(Unseen::TooMuch.into());
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::fd::AsRawFd;

    use rustix::thread::gettid;

    use super::super::directory::Directory;
    use super::super::terminal::TerminalId;
    use super::*;
    use crate::linux::pty;

    const IN: i16 = libc::POLLIN;

    /// Tells whether this thread would wait for the terminal, were it in a call.
    fn wanted(call: Call, slave: &impl std::os::fd::AsFd) -> Result<bool, Missed> {
        Descriptors {
            // It has a directory there that is not listed (proc(5)).
            thread: &Directory::of(gettid()).expect("it is there"),
            terminal: &TerminalId::of(slave).expect("it is one"),
            controlled: false,
            left: &Cell::new(100),
        }
        .wanted(call)
    }

    fn listed<T>(array: &[T]) -> Listed {
        Listed {
            address: array.as_ptr().expose_provenance() as u64,
            count: array.len() as u32,
        }
    }

    fn polled(fd: RawFd, events: i16) -> libc::pollfd {
        libc::pollfd {
            fd,
            events,
            revents: 0,
        }
    }

    #[test]
    fn an_array_is_looked_at_to_its_end_but_no_further_than_the_bound() {
        let slave = pty::open(24, 80).expect("a terminal").slave;
        let terminal = polled(slave.as_raw_fd(), IN);
        let mut array = vec![polled(-1, IN); 4097];
        array[4096] = terminal;
        assert_eq!(
            wanted(Call::Poll(listed(&array)), &slave),
            Err(Unseen::TooMuch.into())
        );
        assert_eq!(wanted(Call::Poll(listed(&array[1..])), &slave), Ok(true));
        assert_eq!(wanted(Call::Poll(listed(&array[..4096])), &slave), Ok(false));
        array[0] = terminal;
        assert_eq!(wanted(Call::Poll(listed(&array)), &slave), Ok(true));
    }

    #[test]
    fn no_more_descriptors_are_looked_at_than_are_left() {
        let slave = pty::open(24, 80).expect("a terminal").slave;
        let mut array = vec![polled(0, 0); 200];
        array[199] = polled(slave.as_raw_fd(), IN);
        assert_eq!(wanted(Call::Poll(listed(&array)), &slave), Ok(true));
        // Closed, and counted.
        array.fill(polled(RawFd::MAX, IN));
        assert_eq!(
            wanted(Call::Poll(listed(&array)), &slave),
            Err(Unseen::TooMuch.into())
        );
        assert_eq!(wanted(Call::Poll(listed(&array[..100])), &slave), Ok(false));
    }

    #[test]
    fn a_bitmap_is_looked_at_as_far_as_the_caller_says() {
        let slave = pty::open(24, 80).expect("a terminal").slave;
        let number = slave.as_raw_fd().cast_unsigned();
        let mut set = [0_u64; 1024];
        set[number as usize / 64] = 1 << (number % 64);
        let select = |count| {
            Call::Select(Listed {
                count,
                ..listed(&set)
            })
        };
        assert_eq!(wanted(select(number), &slave), Ok(false));
        assert_eq!(wanted(select(number + 1), &slave), Ok(true));
        assert_eq!(wanted(select(65_536), &slave), Ok(true));
        set[number as usize / 64] = 0;
        let select = |count| {
            Call::Select(Listed {
                count,
                ..listed(&set)
            })
        };
        assert_eq!(wanted(select(65_536), &slave), Ok(false));
        assert_eq!(wanted(select(65_537), &slave), Err(Unseen::TooMuch.into()));
        let none = Listed {
            address: 0,
            count: 1024,
        };
        assert_eq!(wanted(Call::Select(none), &slave), Ok(false));
    }

    #[test]
    fn memory_that_is_not_there_cannot_be_told() {
        let slave = pty::open(24, 80).expect("a terminal").slave;
        // Nothing is ever mapped at the beginning (`mmap_min_addr`), and the kernel's half is none of the process's memory.
        for address in [8, u64::MAX - 4095] {
            let nowhere = Listed { address, count: 8 };
            let memory = Err(Unseen::Memory.into());
            assert_eq!(wanted(Call::Poll(nowhere), &slave), memory);
            assert_eq!(wanted(Call::Select(nowhere), &slave), memory);
            // A poll of it would have been refused, so it is none.
            assert_eq!(wanted(Call::Restarted(nowhere), &slave), Ok(false));
        }
    }

    #[test]
    fn a_call_of_which_only_the_arguments_are_known_is_no_proof() {
        let slave = pty::open(24, 80).expect("a terminal").slave;
        // This thread runs, so it is not seen what it sleeps in.
        let array = [polled(slave.as_raw_fd(), IN)];
        let restarted = Call::Restarted(listed(&array));
        assert_eq!(wanted(restarted, &slave), Err(Unseen::Restarted.into()));
        let array = [polled(slave.as_raw_fd(), libc::POLLOUT)];
        assert_eq!(wanted(Call::Restarted(listed(&array)), &slave), Ok(false));
    }

    #[test]
    fn a_copy_from_the_terminal_cannot_be_told() {
        let pty = pty::open(24, 80).expect("a terminal");
        let copy = Call::Copy(pty.slave.as_raw_fd());
        assert_eq!(wanted(copy, &pty.slave), Err(Unseen::Copying.into()));
        assert_eq!(wanted(Call::Copy(pty.master.as_raw_fd()), &pty.slave), Ok(false));
    }

    #[test]
    fn a_closed_descriptor_is_nothing_that_is_waited_for() {
        let slave = pty::open(24, 80).expect("a terminal").slave;
        assert_eq!(wanted(Call::Read(RawFd::MAX), &slave), Err(Missed::Gone));
        assert_eq!(wanted(Call::Epoll(RawFd::MAX), &slave), Err(Missed::Gone));
    }
}
