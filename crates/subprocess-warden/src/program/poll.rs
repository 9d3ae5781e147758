//! Waiting, and the time.

use crate::abi::flag::CLOCK_MONOTONIC;
use crate::abi::number;
use crate::syscall::{check, fd, syscall};

/// A descriptor to wait for (`struct pollfd`, poll(2)).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Polled {
    descriptor: i32,
    wanted: i16,
    happened: i16,
}

impl Polled {
    /// Waits for an event of a descriptor, its hang-up or an error. A negative number is passed over.
    pub const fn new(descriptor: i32, wanted: i16) -> Self {
        Self {
            descriptor,
            wanted,
            happened: 0,
        }
    }

    /// Tells whether anything has happened.
    pub const fn is_ready(self) -> bool {
        self.happened != 0
    }
}

/// Seconds and nanoseconds (`struct timespec`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Time {
    seconds: i64,
    nanoseconds: i64,
}

impl Time {
    /// A span of milliseconds.
    pub const fn from_milliseconds(span: u64) -> Self {
        Self {
            seconds: (span / 1000) as i64,
            nanoseconds: (span % 1000 * 1_000_000) as i64,
        }
    }
}

/// Waits until something happens, for at most a number of milliseconds where one is given.
pub fn wait(polled: &mut [Polled], milliseconds: Option<u64>) {
    let mut time = Time::from_milliseconds(milliseconds.unwrap_or(0));
    let limit = if milliseconds.is_some() {
        (&raw mut time).expose_provenance()
    } else {
        0
    };
    let arguments = [
        polled.as_mut_ptr().expose_provenance(),
        polled.len(),
        limit,
        0,
        0,
        0,
    ];
    // A failure (for lack of memory) leaves everything as if nothing had happened, and the next turn asks again.
    // SAFETY: the list and the time have the layouts that are asked for; the kernel writes back the time that was left.
    let _ = check(unsafe { syscall(number::ppoll, arguments) });
}

/// Returns the time, in milliseconds since some moment.
pub fn now() -> u64 {
    let mut time = Time::default();
    // SAFETY: room for one time. This clock is always there.
    unsafe {
        syscall(
            number::clock_gettime,
            [
                fd(CLOCK_MONOTONIC),
                (&raw mut time).expose_provenance(),
                0,
                0,
                0,
                0,
            ],
        )
    };
    (time.seconds as u64)
        .saturating_mul(1000)
        .saturating_add(time.nanoseconds as u64 / 1_000_000)
}

/// Returns the earlier of two spans.
pub fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
