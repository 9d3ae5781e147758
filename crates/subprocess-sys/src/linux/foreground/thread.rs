//! One thread, seen to wait twice.

use super::answer::{Missed, Unseen};
use super::call::Call;
use super::descriptor::Descriptors;
use super::directory::{Directory, from_start};
use super::text::{self, Position, Registers, Stat};

/// A thread that does the work of an `io_uring` (`PF_IO_WORKER` in linux/sched.h, Linux 5.12).
const IO_WORKER: u32 = 0x10;
/// The most times that a thread is looked at.
const LOOKS: u32 = 2;

/// The room for a line of `syscall`: a number, and eight more of at most 19 bytes each.
const LINE: usize = 256;

/// Tells whether a thread is blocked in a call that waits for input from the terminal.
pub(super) fn waits(thread: &Directory, stat: &Stat, descriptors: &Descriptors<'_>) -> Result<bool, Missed> {
    if stat.flags & IO_WORKER != 0 {
        // Its registers are a copy of those that another thread had when it made this one.
        return Err(Unseen::IoUring.into());
    }
    if !is_asleep(stat) {
        return Ok(false);
    }
    let calls = thread.open(c"syscall").map_err(|errno| {
        // The thread may have ended; if it has not, there is no such file.
        match Missed::from(errno) {
            Missed::Gone if thread.stat().is_ok() => Unseen::NoCalls.into(),
            missed => missed,
        }
    })?;
    let line = || {
        let mut line = [0; LINE];
        from_start(&calls, &mut line)?;
        Ok(line)
    };
    let wanted = |registers: &Registers| descriptors.wanted(Call::of(registers)?);
    let asleep = || Ok(is_asleep(&thread.stat()?));
    seen_twice(line, wanted, asleep)
}

/// Tells whether a thread is seen to wait, and then still to wait.
///
/// What is seen is put together from several looks, between which the thread may move: the number in a register may be that
/// of a pipe when it is called with, and that of the terminal when it is looked up. So the registers are read again at the end.
/// Are they the same, then the thread waits with them now, and either has done so all along or has called again with the same
/// after the descriptor was looked up. Are they not, then it was busy and is looked at once more; one that is busy again is
/// not waiting, or will be found to be by the next who asks.
///
/// A stopped thread keeps the registers of its call, and waits for nothing but to be continued. That is seen by its state,
/// between the two.
fn seen_twice(
    mut line: impl FnMut() -> Result<[u8; LINE], Missed>,
    mut wanted: impl FnMut(&Registers) -> Result<bool, Missed>,
    mut asleep: impl FnMut() -> Result<bool, Missed>,
) -> Result<bool, Missed> {
    for _ in 0..LOOKS {
        let first = line()?;
        let Position::Call(registers) = text::position(&first).ok_or(Unseen::Form)? else {
            return Ok(false);
        };
        let wanted = wanted(&registers);
        if let Ok(false) | Err(Missed::Gone) = wanted {
            return Ok(false);
        }
        if !asleep()? {
            return Ok(false);
        }
        if line()? == first {
            return wanted;
        }
    }
    Ok(false)
}

/// Tells whether a thread sleeps as one does that waits for input: a signal would wake it.
fn is_asleep(stat: &Stat) -> bool {
    stat.state == b'S'
}

#[cfg(test)]
mod tests {
    use super::*;

    const YES: Result<bool, Missed> = Ok(true);
    const NO: Result<bool, Missed> = Ok(false);
    const MEMORY: Result<bool, Missed> = Err(Missed::Unseen(Unseen::Memory));

    /// Looks at a thread that is in these calls, one after the other, of which each comes to the same.
    fn look(calls: &[&str], comes_to: Result<bool, Missed>, asleep: bool) -> Result<bool, Missed> {
        let mut calls = calls.iter();
        let line = || {
            let call = calls.next().ok_or(Missed::Gone)?;
            let mut line = [0; LINE];
            let text = format!("{call} 0x0 0x0 0x0 0x0 0x0 0x7fff00000000 0x7f0000000000\n");
            line[..text.len()].copy_from_slice(text.as_bytes());
            Ok(line)
        };
        seen_twice(line, |_| comes_to, || Ok(asleep))
    }

    #[test]
    fn a_thread_that_stays_where_it_is_waits() {
        assert_eq!(look(&["0 0x0", "0 0x0"], YES, true), YES);
        assert_eq!(look(&["0 0x0", "0 0x0"], MEMORY, true), MEMORY);
    }

    #[test]
    fn a_thread_that_has_moved_is_looked_at_once_more() {
        assert_eq!(look(&["0 0x0", "7 0x0", "7 0x0", "7 0x0"], YES, true), YES);
        assert_eq!(look(&["0 0x0", "0 0x1", "0 0x1", "0 0x1"], MEMORY, true), MEMORY);
    }

    #[test]
    fn a_thread_that_keeps_moving_does_not_wait() {
        let calls = ["0 0x0", "0 0x1", "0 0x0", "0 0x1", "0 0x1", "0 0x1"];
        assert_eq!(look(&calls, YES, true), NO);
        assert_eq!(look(&calls, MEMORY, true), NO);
    }

    #[test]
    fn a_thread_that_was_stopped_meanwhile_does_not_wait() {
        assert_eq!(look(&["0 0x0", "0 0x0"], YES, false), NO);
    }

    #[test]
    fn a_thread_that_has_ended_meanwhile_is_gone() {
        assert_eq!(look(&["0 0x0"], YES, true), Err(Missed::Gone));
    }

    #[test]
    fn a_thread_that_waits_for_something_else_is_looked_at_once() {
        assert_eq!(look(&["0 0x0"], NO, true), NO);
    }
}
