//! Descriptors, and what is read and written through them.

use core::ffi::CStr;

use crate::abi::flag::{AT_FDCWD, O_CLOEXEC};
use crate::abi::{errno, number};
use crate::syscall::{check, fd, syscall};

/// The socket that leads to the host: where it was put by whoever started the program.
pub const SOCKET: i32 = 3;
/// The host's pidfd. The number is taken by the null device until the host has sent it.
pub const HOST: i32 = 4;
/// The first number of any other descriptor.
pub const FIRST_OTHER: i32 = 5;

/// A descriptor that ends with its owner.
#[derive(Debug)]
pub struct Descriptor(i32);

impl Descriptor {
    /// Takes over a descriptor that the kernel made for this process.
    pub const fn adopt(number: i32) -> Self {
        Self(number)
    }

    /// Returns its number, without giving it up.
    pub const fn number(&self) -> i32 {
        self.0
    }

    /// Returns its number, and leaves it open.
    pub const fn into_number(self) -> i32 {
        let number = self.0;
        core::mem::forget(self);
        number
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        close(self.0);
    }
}

/// Closes a descriptor by its number.
pub fn close(number: i32) {
    // SAFETY: close takes an integer.
    unsafe { syscall(number::close, [fd(number), 0, 0, 0, 0, 0]) };
}

/// Makes `to` a copy of `from`, close-on-exec.
pub fn copy_to(from: i32, to: i32) -> Result<(), i32> {
    // SAFETY: dup3 takes integers.
    check(unsafe { syscall(number::dup3, [fd(from), fd(to), fd(O_CLOEXEC), 0, 0, 0]) }).map(drop)
}

/// Closes everything from [`FIRST_OTHER`] on.
pub fn close_others() {
    let first = FIRST_OTHER;
    // SAFETY: close_range takes integers.
    let closed = check(unsafe { syscall(number::close_range, [fd(first), u32::MAX as usize, 0, 0, 0, 0]) });
    if closed.is_err() {
        // Before Linux 5.9. The kernel gives the lowest free number, so none is higher than what was ever held at once: the
        // directories, and a handful.
        let held = crate::protocol::DIRECTORIES as i32 + 64;
        (first..first + held).for_each(close);
    }
}

/// Opens a path below a directory.
pub fn open_at(directory: i32, path: &CStr, flags: i32) -> Result<Descriptor, i32> {
    let arguments = [
        fd(directory),
        path.as_ptr().expose_provenance(),
        fd(flags | O_CLOEXEC),
        0,
        0,
        0,
    ];
    // SAFETY: the path is NUL-terminated.
    check(unsafe { syscall(number::openat, arguments) }).map(|opened| Descriptor(opened as i32))
}

/// Opens an absolute path.
pub fn open(path: &CStr, flags: i32) -> Result<Descriptor, i32> {
    open_at(AT_FDCWD, path, flags)
}

/// Reads what comes next, at most a buffer full.
pub fn read(from: i32, buffer: &mut [u8]) -> Result<usize, i32> {
    loop {
        let arguments = [
            fd(from),
            buffer.as_mut_ptr().expose_provenance(),
            buffer.len(),
            0,
            0,
            0,
        ];
        // SAFETY: the buffer is writable and has the length that is said.
        match check(unsafe { syscall(number::read, arguments) }) {
            Err(errno::EINTR) => {}
            result => return result,
        }
    }
}

/// Reads from a place of a file, at most a buffer full.
pub fn read_at(from: i32, buffer: &mut [u8], offset: usize) -> Result<usize, i32> {
    let arguments = [
        fd(from),
        buffer.as_mut_ptr().expose_provenance(),
        buffer.len(),
        offset,
        0,
        0,
    ];
    // SAFETY: the buffer is writable and has the length that is said.
    check(unsafe { syscall(number::pread64, arguments) })
}

/// Writes a text to a file of the kernel's, all at once.
pub fn write(to: i32, text: &[u8]) -> Result<(), i32> {
    let arguments = [fd(to), text.as_ptr().expose_provenance(), text.len(), 0, 0, 0];
    // SAFETY: the text is readable and has the length that is said.
    check(unsafe { syscall(number::write, arguments) }).map(drop)
}

/// Goes back to the beginning of a file or a directory.
pub fn rewind(file: &Descriptor) {
    // SAFETY: lseek takes integers.
    unsafe { syscall(number::lseek, [fd(file.number()), 0, 0, 0, 0, 0]) };
}
