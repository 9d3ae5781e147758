//! One thread, seen to wait twice.

use super::answer::{Missed, Unseen};
use super::call::Call;
use super::descriptor::Descriptors;
use super::directory::{Directory, from_start};
use super::text::{self, Position, Stat};

/// A thread that does the work of an `io_uring` (`PF_IO_WORKER` in linux/sched.h, Linux 5.12).
const IO_WORKER: u32 = 0x10;
/// The most times that a thread is looked at.
const LOOKS: u32 = 2;

/// Tells whether a thread is blocked in a call that waits for input from the terminal.
///
/// What is seen is put together from several looks, between which the thread may move: the number in a register may be that
/// of a pipe when it is called with, and that of the terminal when it is looked up. So the registers are read again at the end.
/// Are they the same, then the thread waits with them now, and either has done so all along or has called again with the same
/// after the descriptor was looked up. Are they not, then it was busy and is looked at once more; one that is busy again is
/// not waiting, or will be found to be by the next who asks.
///
/// A stopped thread keeps the registers of its call, and waits for nothing but to be continued. That is seen by its state,
/// between the two.
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
    for _ in 0..LOOKS {
        // A number, and eight more of at most 19 bytes each.
        let (mut first, mut second) = ([0; 256], [0; 256]);
        let first = from_start(&calls, &mut first)?;
        let Position::Call(registers) = text::position(first).ok_or(Unseen::Form)? else {
            return Ok(false);
        };
        let wanted = descriptors.wanted(Call::of(&registers)?);
        if let Ok(false) | Err(Missed::Gone) = wanted {
            return Ok(false);
        }
        if !is_asleep(&thread.stat()?) {
            return Ok(false);
        }
        if from_start(&calls, &mut second)? == first {
            return wanted;
        }
    }
    Ok(false)
}

/// Tells whether a thread sleeps as one does that waits for input: a signal would wake it.
fn is_asleep(stat: &Stat) -> bool {
    stat.state == b'S'
}
