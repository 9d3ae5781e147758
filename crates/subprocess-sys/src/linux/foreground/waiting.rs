//! The members of a group, and their threads.

use std::cell::Cell;

use rustix::process::Pid;

use super::answer::{InputWaiting, Missed, Unseen, any};
use super::descriptor::Descriptors;
use super::directory::Directory;
use super::terminal::TerminalId;
use super::text::Stat;
use super::thread;
use crate::linux::table;

/// The most members that are looked at.
const MEMBERS: usize = 1024;
/// The most threads that are looked at, of all members together.
const THREADS: u32 = 4096;
/// The most descriptors that are looked at, of all threads together.
const DESCRIPTORS: u32 = 16_384;

/// Looks whether a thread of one of `members` is blocked in a call that ends when `terminal` has input. The members are the
/// processes of the terminal's foreground group, and `session` is the session whose controlling terminal it is; what is not in
/// that session (any more) is no member.
///
/// The calls are read, readv, select, pselect, poll, ppoll and those that wait for an epoll set. The descriptor may have any
/// number and may have been opened by any name, `/dev/tty` included. It is a picture of one moment: a program that is between two
/// reads does not wait.
///
/// It looks at no more than 1,024 members, 4,096 threads and 16,384 descriptors, and has at most seven descriptors open itself.
/// A single-threaded program costs about a dozen system calls. It waits for nobody but the kernel, which on Linux before 5.11
/// may be slow to answer for a program that is being loaded from a slow disk.
///
/// ```
/// use dsh_subprocess_sys::foreground::{InputWaiting, TerminalId, input_waiting};
/// use dsh_subprocess_sys::{pty, table};
/// let pty = pty::open(24, 80)?;
/// let terminal = TerminalId::of(&pty.slave)?;
/// // This process is busy looking.
/// let itself = table::this_process();
/// if let Some(session) = table::session_of(itself) {
///     assert_ne!(input_waiting(&terminal, session, &[itself]), InputWaiting::Proven);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn input_waiting(terminal: &TerminalId, session: Pid, members: &[Pid]) -> InputWaiting {
    if !table::is_ours() {
        return InputWaiting::Unknown(Unseen::OtherTable);
    }
    let look = Look {
        terminal,
        session,
        threads: Cell::new(THREADS),
        descriptors: Cell::new(DESCRIPTORS),
    };
    let beyond = (members.len() > MEMBERS).then_some(Err(Unseen::TooMuch.into()));
    let looked_at = members.iter().take(MEMBERS);
    any(looked_at.map(|&member| look.process(member)).chain(beyond)).into()
}

struct Look<'a> {
    terminal: &'a TerminalId,
    session: Pid,
    /// How many more threads are looked at.
    threads: Cell<u32>,
    /// How many more descriptors are looked at.
    descriptors: Cell<u32>,
}

impl Look<'_> {
    fn process(&self, pid: Pid) -> Result<bool, Missed> {
        let stat = |directory: &Directory| directory.stat();
        let opened = Directory::of(pid).map_err(Missed::from);
        let (process, stat) = match opened.and_then(|process| Ok((stat(&process)?, process))) {
            Ok((stat, process)) => (process, stat),
            // It may be hidden: then there is a process with this number all the same.
            Err(Missed::Gone) if table::session_of(pid).is_some() => return Err(Unseen::Hidden.into()),
            Err(missed) => return Err(missed),
        };
        if stat.session != self.session.as_raw_nonzero().get() {
            return Ok(false);
        }
        // The files of a process are those of its first thread.
        if stat.threads <= 1 {
            return self.thread(&process, &stat);
        }
        // One more than are left is seen to be too many.
        let threads = process.threads()?.take(self.threads.get() as usize + 1);
        any(threads.map(|thread| {
            let thread = thread?;
            self.thread(&thread, &thread.stat()?)
        }))
    }

    fn thread(&self, thread: &Directory, stat: &Stat) -> Result<bool, Missed> {
        let left = self.threads.get().checked_sub(1).ok_or(Unseen::TooMuch)?;
        self.threads.set(left);
        let descriptors = Descriptors {
            thread,
            terminal: self.terminal,
            controlled: self.terminal.is_controlling(stat.terminal),
            left: &self.descriptors,
        };
        thread::waits(thread, stat, &descriptors)
    }
}
