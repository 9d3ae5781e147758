//! System calls that block, made as they are and not as a library would.

use std::os::fd::RawFd;

use dsh_subprocess_warden::syscall::{check, fd, syscall};

/// Reads with `read`.
pub(super) fn read(descriptor: RawFd) {
    let mut byte = 0_u8;
    let arguments = [fd(descriptor), address(&mut byte), 1, 0, 0, 0];
    // SAFETY: there is room for one byte.
    unsafe { syscall(libc::SYS_read, arguments) };
}

/// Reads with `readv` or, at no offset, `preadv2`.
pub(super) fn readv(call: libc::c_long, descriptor: RawFd) {
    let mut byte = 0_u8;
    let mut vector = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let arguments = [fd(descriptor), address(&mut vector), 1, usize::MAX, 0, 0];
    // SAFETY: there is one element, with room for one byte.
    unsafe { syscall(call, arguments) };
}

/// Waits for input on any of these with `select` or `pselect6`, without a timeout.
pub(super) fn select(call: libc::c_long, descriptors: &[RawFd]) {
    let mut set = [0_u64; 16];
    for &descriptor in descriptors {
        let descriptor = usize::try_from(descriptor).expect("a descriptor");
        set[descriptor / 64] |= 1 << (descriptor % 64);
    }
    let arguments = [1024, address(&mut set), 0, 0, 0, 0];
    // SAFETY: the set has 1,024 bits.
    unsafe { syscall(call, arguments) };
}

/// Waits for these events on these descriptors with `poll` or `ppoll`, without a timeout.
pub(super) fn poll(call: libc::c_long, descriptors: &[(RawFd, i16)]) {
    let mut array: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|&(fd, events)| libc::pollfd {
            fd,
            events,
            revents: 0,
        })
        .collect();
    // What is no timeout to the one is none to the other.
    let timeout = if call == libc::SYS_ppoll { 0 } else { usize::MAX };
    let arguments = [address(&mut array[0]), array.len(), timeout, 0, 0, 0];
    // SAFETY: there are as many elements as it says.
    unsafe { syscall(call, arguments) };
}

/// Waits for an epoll set with `epoll_wait`, `epoll_pwait` or `epoll_pwait2`, without a timeout.
pub(super) fn epoll(call: libc::c_long, set: RawFd) {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    let timeout = if call == libc::SYS_epoll_pwait2 {
        0
    } else {
        usize::MAX
    };
    let arguments = [fd(set), address(&mut event), 1, timeout, 0, 0];
    // SAFETY: there is room for one event.
    unsafe { syscall(call, arguments) };
}

/// Makes an `io_uring`.
pub(super) fn io_uring() -> RawFd {
    // `struct io_uring_params` (linux/io_uring.h).
    let mut parameters = [0_u64; 15];
    let arguments = [1, address(&mut parameters), 0, 0, 0, 0];
    // SAFETY: the structure has 120 bytes.
    let made = unsafe { syscall(libc::SYS_io_uring_setup, arguments) };
    let made = check(made).expect("the kernel lets this user have one");
    RawFd::try_from(made).expect("a descriptor")
}

/// Waits for a completion of an `io_uring`.
pub(super) fn enter(ring: RawFd) {
    /// `linux/io_uring.h`
    const IORING_ENTER_GETEVENTS: usize = 1;
    let arguments = [fd(ring), 0, 1, IORING_ENTER_GETEVENTS, 0, 0];
    // SAFETY: no signal mask is given.
    unsafe { syscall(libc::SYS_io_uring_enter, arguments) };
}

fn address<T>(value: &mut T) -> usize {
    (&raw mut *value).expose_provenance()
}
