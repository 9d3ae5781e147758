//! The system calls that wait for input, by their numbers.

use std::os::fd::RawFd;

use super::answer::Unseen;
use super::text::Registers;

/// What a thread is blocked in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Call {
    /// A read of one descriptor.
    Read(RawFd),
    /// A copy of one descriptor's input to another's output, which waits for either (splice(2), sendfile(2)).
    Copy(RawFd),
    /// A wait for a bitmap of descriptors (select(2)).
    Select(Listed),
    /// A wait for an array of descriptors (poll(2)).
    Poll(Listed),
    /// A wait for an epoll set (epoll(7)).
    Epoll(RawFd),
    /// A call that was interrupted by a stop and goes on, under a number of its own that does not say what it is
    /// (`restart_syscall(2)`). If it is a poll, this is what it waits for.
    Restarted(Listed),
    /// Anything else.
    Other,
}

/// Descriptors that a call names in its caller's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Listed {
    /// Where they are.
    pub(super) address: u64,
    /// How many there are: numbers that the bitmap has bits for, or structures.
    pub(super) count: u32,
}

impl Call {
    /// Tells which call it is.
    pub(super) fn of(registers: &Registers) -> Result<Self, Unseen> {
        if is_of_other_program(registers) {
            return Err(Unseen::OtherCalls);
        }
        let [first, second, ..] = registers.arguments;
        // The kernel takes a descriptor or a count for 32 bits wide, whatever is in the rest of the register.
        let descriptor = first as RawFd;
        let selected = Listed {
            address: second,
            count: (first as i32).max(0).cast_unsigned(),
        };
        let polled = Listed {
            address: first,
            count: second as u32,
        };
        Ok(match registers.number {
            // The last at the offset -1, which is none; at any other a terminal refuses it.
            libc::SYS_read | libc::SYS_readv | libc::SYS_preadv2 => Self::Read(descriptor),
            libc::SYS_splice => Self::Copy(descriptor),
            libc::SYS_sendfile => Self::Copy(second as RawFd),
            libc::SYS_pselect6 => Self::Select(selected),
            libc::SYS_ppoll => Self::Poll(polled),
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Self::Epoll(descriptor),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => Self::Select(selected),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => Self::Poll(polled),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => Self::Epoll(descriptor),
            // Of the calls above only poll goes on so: select and ppoll are called again, epoll's end.
            libc::SYS_restart_syscall => Self::Restarted(polled),
            libc::SYS_io_uring_enter => return Err(Unseen::IoUring),
            _ => Self::Other,
        })
    }
}

/// Tells whether the caller is a program with another table of numbers.
fn is_of_other_program(registers: &Registers) -> bool {
    /// What x32 adds to its numbers (`__X32_SYSCALL_BIT` in asm/unistd.h of x86).
    const X32: i64 = 0x4000_0000;
    // A 32-bit program has neither its code nor its stack anywhere else. A 64-bit one has its stack far above.
    let all_below_4_gib = registers.stack_pointer >> 32 == 0 && registers.program_counter >> 32 == 0;
    all_below_4_gib || (cfg!(target_arch = "x86_64") && registers.number & X32 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(number: i64, first: u64, second: u64) -> Registers {
        Registers {
            number,
            arguments: [first, second, 0, 0, 0, 0],
            stack_pointer: 0x7ffd_2c1e_f6d0,
            program_counter: 0x40_1000,
        }
    }

    #[test]
    fn item_102_a_program_that_is_not_64_bits_wide_cannot_be_told() {
        let read = registers(libc::SYS_read, 0, 0);
        assert_eq!(Call::of(&read), Ok(Call::Read(0)));
        let below = Registers {
            stack_pointer: 0xffff_d000,
            ..read
        };
        assert_eq!(Call::of(&below), Err(Unseen::OtherCalls));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn item_102_a_program_for_x32_cannot_be_told() {
        let read = registers(0x4000_0000, 0, 0);
        assert_eq!(Call::of(&read), Err(Unseen::OtherCalls));
    }

    #[test]
    fn a_copy_waits_for_the_descriptor_that_it_reads() {
        assert_eq!(Call::of(&registers(libc::SYS_splice, 3, 0)), Ok(Call::Copy(3)));
        assert_eq!(Call::of(&registers(libc::SYS_sendfile, 3, 4)), Ok(Call::Copy(4)));
    }

    #[test]
    fn only_the_lower_half_of_a_register_is_a_descriptor_or_a_count() {
        let read = registers(libc::SYS_read, 0xdead_beef_0000_0039, 0);
        assert_eq!(Call::of(&read), Ok(Call::Read(57)));
        let poll = registers(libc::SYS_ppoll, 0x7f00_0000_1000, 0xdead_beef_0000_0002);
        let listed = Listed {
            address: 0x7f00_0000_1000,
            count: 2,
        };
        assert_eq!(Call::of(&poll), Ok(Call::Poll(listed)));
        let none = registers(libc::SYS_pselect6, 0xffff_ffff, 0x1000);
        let listed = Listed {
            address: 0x1000,
            count: 0,
        };
        assert_eq!(Call::of(&none), Ok(Call::Select(listed)));
    }
}
