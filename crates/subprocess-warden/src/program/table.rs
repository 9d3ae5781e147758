//! The process table: who is whose child.

use core::ffi::CStr;

use crate::abi::errno;
use crate::abi::flag::{AT_FDCWD, O_DIRECTORY, O_RDONLY};
use crate::abi::number;
use crate::descriptor::{self, Descriptor};
use crate::directory::{Entries, status_of};
use crate::process;
use crate::syscall::{check, fd, syscall};
use crate::text::{self, Numbers, Text};

/// Bytes of a list that are read at once. The kernel gives a page at most.
const LIST: usize = 4096;
/// Bytes of a line of the table that are read: it has about 50 numbers and a name of 15 bytes.
const LINE: usize = 1024;
/// What a directory counts as links when nothing is in it.
const OWN_LINKS: u32 = 2;

/// Tells whether `/proc` shows the pid namespace this process lives in. Another one's numbers would name strangers.
pub fn is_ours() -> bool {
    let mut link = [0_u8; 16];
    let arguments = [
        fd(AT_FDCWD),
        c"/proc/self".as_ptr().expose_provenance(),
        link.as_mut_ptr().expose_provenance(),
        link.len(),
        0,
        0,
    ];
    // SAFETY: a NUL-terminated path, and a buffer of the length that is said.
    let length = check(unsafe { syscall(number::readlinkat, arguments) }).unwrap_or(0);
    link.get(..length).and_then(text::number) == Some(process::own_pid())
}

/// Calls `each` with every child of a process.
///
/// Each of its threads has a list of its own, of the children that it has made or adopted
/// (`/proc/PID/task/TID/children`, `proc_pid_task(5)`). The kernel walks a list while others change it: it may leave out one
/// whose elder sibling is being waited for, so whoever needs all looks again.
pub fn children(pid: u32, each: &mut dyn FnMut(u32)) {
    let tasks = Text::new().with(b"/proc/").with_number(pid).with(b"/task");
    // The directory of the threads counts each of them as a link (`proc_task_getattr` in fs/proc/base.c), as directories
    // count those within. Most processes have one thread, which has the number of the process, so this saves a listing.
    match status_of(AT_FDCWD, tasks.as_c_str()) {
        Ok(status) if status.links == OWN_LINKS + 1 => children_of_thread(pid, pid, each),
        Ok(_) => {
            let Ok(directory) = descriptor::open(tasks.as_c_str(), O_RDONLY | O_DIRECTORY) else {
                return;
            };
            let mut entries = Entries::of(&directory);
            while let Some((name, _)) = entries.next() {
                if let Some(thread) = text::number(name.to_bytes()) {
                    children_of_thread(pid, thread, each);
                }
            }
        }
        // It is gone.
        Err(_) => {}
    }
}

fn children_of_thread(pid: u32, thread: u32, each: &mut dyn FnMut(u32)) {
    if let Ok(list) = open_list(pid, thread) {
        read_list(&list, each);
    }
}

/// This process's own children, whose list is kept open: it must be readable when no more descriptors can be had.
///
/// One list is enough. Orphans go to the first thread of a subreaper that is not about to end, and the first thread, which
/// is the one that makes children, ends last.
#[derive(Debug)]
pub struct OwnChildren(Descriptor);

impl OwnChildren {
    /// Opens it. `None` where `/proc` is not this pid namespace's, or has no such lists.
    pub fn open(itself: u32) -> Option<Self> {
        if !is_ours() {
            return None;
        }
        open_list(itself, itself).ok().map(Self)
    }

    /// Calls `each` with every child. None is left out: only those that this process waits for leave the list.
    pub fn each(&self, each: &mut dyn FnMut(u32)) {
        descriptor::rewind(&self.0);
        read_list(&self.0, each);
    }

    /// Forgets it, when the descriptor was closed by its number.
    pub fn forget(self) {
        let _ = self.0.into_number();
    }
}

fn open_list(pid: u32, thread: u32) -> Result<Descriptor, i32> {
    let path = Text::new()
        .with(b"/proc/")
        .with_number(pid)
        .with(b"/task/")
        .with_number(thread)
        .with(b"/children");
    descriptor::open(path.as_c_str(), O_RDONLY)
}

fn read_list(list: &Descriptor, each: &mut dyn FnMut(u32)) {
    let mut numbers = Numbers::default();
    let mut piece = [0_u8; LIST];
    // It ends: the kernel's place in the list only moves on.
    while let Ok(length @ 1..) = descriptor::read(list.number(), &mut piece) {
        numbers.read(piece.get(..length).unwrap_or_default(), &mut *each);
    }
    numbers.end(each);
}

/// Returns the parent of an opened process, whose number is `pid`. `None` when it is no more.
pub fn parent(process: &Descriptor, pid: u32) -> Option<u32> {
    match parent_by_descriptor(process) {
        Ok(parent) => Some(parent),
        Err(errno::ESRCH) => None,
        Err(_) => {
            let parent = parent_by_number(pid)?;
            // The line was that of this process if the number is still its own after it was read.
            process::has_its_number(process).then_some(parent)
        }
    }
}

/// `struct pidfd_info` (linux/pidfd.h), as first released.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroup: u64,
    pid: u32,
    process: u32,
    parent: u32,
    credentials: [u32; 8],
    exit_code: i32,
}

/// The part of the information that is asked for: the numbers.
const NUMBERS: u64 = 1;
/// `_IOWR(0xFF, 11, struct pidfd_info)`, of Linux 6.13.
const GET_INFO: usize = 0xc000_ff0b | size_of::<Info>() << 16;

fn parent_by_descriptor(process: &Descriptor) -> Result<u32, i32> {
    let mut info = Info {
        mask: NUMBERS,
        ..Info::default()
    };
    let to = (&raw mut info).expose_provenance();
    // SAFETY: the structure is writable and as long as the request's number says.
    check(unsafe { syscall(number::ioctl, [fd(process.number()), GET_INFO, to, 0, 0, 0]) })?;
    Ok(info.parent)
}

fn parent_by_number(pid: u32) -> Option<u32> {
    let path = Text::new().with(b"/proc/").with_number(pid).with(b"/stat");
    let mut line = [0_u8; LINE];
    let length = read_file(path.as_c_str(), &mut line)?;
    parent_in_line(line.get(..length)?)
}

fn read_file(path: &CStr, buffer: &mut [u8]) -> Option<usize> {
    let file = descriptor::open(path, O_RDONLY).ok()?;
    descriptor::read(file.number(), buffer).ok()
}

/// Finds the parent in a line of `/proc/PID/stat` (`proc_pid_stat(5)`). The name in it, in parentheses, may have any bytes.
fn parent_in_line(line: &[u8]) -> Option<u32> {
    let name_end = line.iter().rposition(|&byte| byte == b')')?;
    // " S 7 …"
    let mut fields = line.get(name_end + 1..)?.split(|&byte| byte == b' ').skip(2);
    text::number(fields.next()?)
}
