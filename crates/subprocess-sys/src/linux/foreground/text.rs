//! What `/proc` says of a thread and what a thread's memory says of its call, as text and bytes. Pure, and on its own: any
//! bytes are read or refused.

/// A thread's line in `stat` (`proc_pid_stat(5)`), as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stat {
    /// `R`, `S`, `D`, `T`, `Z`, …
    pub(super) state: u8,
    /// The session.
    pub(super) session: i32,
    /// The device number of the controlling terminal, 0 without one.
    pub(super) terminal: i32,
    /// The kernel's flags (`PF_*` in linux/sched.h).
    pub(super) flags: u32,
    /// The threads of its process.
    pub(super) threads: i32,
}

/// Reads a line of `stat`, or the beginning of one that reaches to the number of threads. The command in it may contain
/// spaces, parentheses and line ends.
pub(super) fn stat(line: &[u8]) -> Option<Stat> {
    let end = line.iter().rposition(|&byte| byte == b')')?;
    let mut fields = str::from_utf8(line.get(end + 1..)?)
        .ok()?
        .split_ascii_whitespace();
    // `nth` counts from the field after the last one that was taken: 3, 6, 7, 9 and 20 of the manual.
    Some(Stat {
        state: *fields.next()?.as_bytes().first()?,
        session: fields.nth(2)?.parse().ok()?,
        terminal: fields.next()?.parse().ok()?,
        flags: fields.nth(1)?.parse().ok()?,
        threads: fields.nth(10)?.parse().ok()?,
    })
}

/// Where a thread is (`proc_pid_syscall(5)`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Position {
    /// It runs, or is blocked outside of any system call: in a page fault, say.
    Elsewhere,
    /// It is blocked in a system call.
    Call(Registers),
}

/// What a thread called the kernel with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Registers {
    /// The number of the call.
    pub(super) number: i64,
    /// Its arguments.
    pub(super) arguments: [u64; 6],
    /// The stack pointer.
    pub(super) stack_pointer: u64,
    /// The program counter.
    pub(super) program_counter: u64,
}

/// Reads a line of `syscall`.
pub(super) fn position(line: &[u8]) -> Option<Position> {
    let mut fields = str::from_utf8(line).ok()?.split_ascii_whitespace();
    let number = fields.next()?;
    if number == "running" {
        return Some(Position::Elsewhere);
    }
    let number = number.parse().ok()?;
    if number == -1 {
        return Some(Position::Elsewhere);
    }
    let mut next = || hexadecimal(fields.next()?.strip_prefix("0x")?);
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = next()?;
    }
    Some(Position::Call(Registers {
        number,
        arguments,
        stack_pointer: next()?,
        program_counter: next()?,
    }))
}

/// One descriptor of an epoll set, as the set's `fdinfo` names it (`proc_pid_fdinfo(5)`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Watch {
    /// The number under which it was added. It may be closed by now, or another file's, while the set keeps the one it was
    /// given.
    pub(super) descriptor: i32,
    /// The events that are waited for.
    pub(super) events: u32,
    /// The inode of the file.
    pub(super) inode: u64,
    /// The file system's device number, in the kernel's own form.
    pub(super) device: u32,
}

/// Reads a line of an epoll set's `fdinfo`. `Ok(None)` for one that is about something else.
pub(super) fn watch(line: &[u8]) -> Result<Option<Watch>, Malformed> {
    if !line.starts_with(b"tfd:") {
        return Ok(None);
    }
    let line = str::from_utf8(line).map_err(|_| Malformed)?;
    let field = |name: &str| {
        let (_, after) = line.split_once(name)?;
        after.split_ascii_whitespace().next()
    };
    let watch = || {
        Some(Watch {
            descriptor: field("tfd:")?.parse().ok()?,
            events: hexadecimal(field(" events:")?)?.try_into().ok()?,
            inode: hexadecimal(field(" ino:")?)?,
            device: hexadecimal(field(" sdev:")?)?.try_into().ok()?,
        })
    };
    watch().map(Some).ok_or(Malformed)
}

/// A line begins as one of a known form, and is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Malformed;

/// The length of a `struct pollfd`, in bytes.
pub(super) const POLLED: usize = 8;

/// Reads an array of `struct pollfd`s: descriptor and events of each. A last one that is cut off is left out.
pub(super) fn polled(array: &[u8]) -> impl Iterator<Item = (i32, u16)> {
    array
        .as_chunks::<POLLED>()
        .0
        .iter()
        .map(|&[a, b, c, d, e, f, ..]| (i32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f])))
}

/// The length of a word of a set of descriptors, in bytes.
pub(super) const WORD: usize = 8;

/// Lists the descriptors of a part of an `fd_set`, of which the first word begins with the descriptor `first`. A last word
/// that is cut off is left out.
pub(super) fn members(set: &[u8], first: u32) -> impl Iterator<Item = u32> {
    let words = set
        .as_chunks::<WORD>()
        .0
        .iter()
        .map(|&word| u64::from_ne_bytes(word));
    (first..)
        .step_by(u64::BITS as usize)
        .zip(words)
        .flat_map(|(first, word)| {
            (0..u64::BITS)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| first + bit)
        })
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TAIL: &str = "S 7 8 9 34816 8 4194304 1 2 3 4 5 6 7 8 20 0 11 0 4711 0 0\n";

    #[test]
    fn item_105_a_command_changes_nothing_of_what_is_read_after_it() {
        let expected = Stat {
            state: b'S',
            session: 9,
            terminal: 34816,
            flags: 0x0040_0000,
            threads: 11,
        };
        for name in ["sh", "a b", "a) R 1 (b", "\n"] {
            let line = format!("42 ({name}) {TAIL}");
            assert_eq!(stat(line.as_bytes()), Some(expected), "{name:?}");
        }
    }

    #[test]
    fn a_line_that_is_cut_off_before_the_threads_is_refused() {
        let line = format!("42 (sh) {TAIL}");
        let (whole, _) = line.split_once(" 11 ").expect("it has as many threads");
        assert_eq!(stat(whole.as_bytes()), None);
        assert!(stat(format!("{whole} 11").as_bytes()).is_some());
    }

    #[test]
    fn a_thread_that_runs_or_waits_for_a_page_is_in_no_call() {
        assert_eq!(position(b"running\n"), Some(Position::Elsewhere));
        assert_eq!(
            position(b"-1 0x7ffd2c1ef6d0 0x7f00cc4ef6d0\n"),
            Some(Position::Elsewhere)
        );
    }

    #[test]
    fn a_call_without_all_its_registers_is_refused() {
        let line = "0 0x3 0x7ffe 0x400 0x0 0x0 0x7fff 0x7ffd 0x7f00";
        assert!(matches!(position(line.as_bytes()), Some(Position::Call(_))));
        for end in line.match_indices(' ').map(|(end, _)| end) {
            assert_eq!(position(&line.as_bytes()[..end]), None);
        }
        for other in ["", "x", "0 3 0x7ffe 0x400 0x0 0x0 0x7fff 0x7ffd 0x7f00"] {
            assert_eq!(position(other.as_bytes()), None, "{other:?}");
        }
    }

    #[test]
    fn a_set_is_told_from_the_lines_before_it() {
        let lines = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1038\n\
            tfd:        5 events: 80000019 data: ffffffffffffffff  pos:-1 ino:40e sdev:1a\n";
        let found = lines.lines().map(|line| watch(line.as_bytes()));
        let expected = Watch {
            descriptor: 5,
            events: 0x8000_0019,
            inode: 0x40e,
            device: 0x1a,
        };
        assert!(found.eq([Ok(None), Ok(None), Ok(None), Ok(None), Ok(Some(expected))]));
        assert_eq!(
            watch(b"tfd:        5 events:       19 data:                5"),
            Err(Malformed)
        );
    }

    proptest! {
        #[test]
        fn item_105_any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = (stat(&bytes), position(&bytes), watch(&bytes), watch(&[b"tfd:", &bytes[..]].concat()));
            prop_assert_eq!(polled(&bytes).count(), bytes.len() / POLLED);
            prop_assert!(members(&bytes, 64).all(|descriptor| descriptor >= 64));
        }

        #[test]
        fn what_the_kernel_writes_of_a_call_is_read(
            number in 0..=i64::from(i32::MAX),
            arguments in any::<[u64; 6]>(),
            stack_pointer: u64,
            program_counter: u64,
        ) {
            // The format in proc_pid_syscall, fs/proc/base.c.
            let line = format!(
                "{number} {:#x} {:#x} {:#x} {:#x} {:#x} {:#x} {stack_pointer:#x} {program_counter:#x}\n",
                arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5],
            );
            let registers = Registers { number, arguments, stack_pointer, program_counter };
            prop_assert_eq!(position(line.as_bytes()), Some(Position::Call(registers)));
        }

        #[test]
        fn what_the_kernel_writes_of_a_set_is_read(
            descriptor: i32,
            events: u32,
            data: u64,
            position: i64,
            inode: u64,
            device: u32,
        ) {
            // The format in ep_show_fdinfo, fs/eventpoll.c.
            let line = format!(
                "tfd: {descriptor:8} events: {events:8x} data: {data:16x}  pos:{position} ino:{inode:x} sdev:{device:x}"
            );
            let expected = Watch { descriptor, events, inode, device };
            prop_assert_eq!(watch(line.as_bytes()), Ok(Some(expected)));
        }

        #[test]
        fn what_a_caller_sets_is_a_member(set in prop::collection::btree_set(0_u32..1024, 0..64)) {
            // As FD_SET does it (select(2)).
            let mut words = [0_u64; 16];
            for &descriptor in &set {
                words[descriptor as usize / 64] |= 1 << (descriptor % 64);
            }
            let bytes = words.map(u64::to_ne_bytes).concat();
            prop_assert!(members(&bytes, 0).eq(set.iter().copied()));
            prop_assert!(members(&bytes[8..], 64).eq(set.range(64..).copied()));
        }

        #[test]
        fn what_a_caller_polls_is_read(
            array in prop::collection::vec(any::<(i32, i16, i16)>(), 0..32),
        ) {
            let bytes: Vec<u8> = array
                .iter()
                .flat_map(|(descriptor, events, returned)| {
                    let [a, b, c, d] = descriptor.to_ne_bytes();
                    let ([e, f], [g, h]) = (events.to_ne_bytes(), returned.to_ne_bytes());
                    [a, b, c, d, e, f, g, h]
                })
                .collect();
            let expected = array.iter().map(|&(descriptor, events, _)| (descriptor, events.cast_unsigned()));
            prop_assert!(polled(&bytes).eq(expected));
        }
    }
}
