//! Readiness of descriptors, waking the thread that waits for it, and a second thread that stands by.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// What a descriptor is watched for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Readable, as long as it is.
    Readable,
    /// Writable, as long as it is.
    Writable,
    /// Each time it becomes readable.
    BecomesReadable,
    /// Each time it becomes writable.
    BecomesWritable,
    /// Each time it becomes readable or writable.
    BecomesEither,
    /// Once, when it is readable. Nothing is told after that, until it is watched for something anew.
    ReadableOnce,
    /// As [`ReadableOnce`](Self::ReadableOnce), when it is writable.
    WritableOnce,
    /// As [`ReadableOnce`](Self::ReadableOnce), when it is readable or writable.
    EitherOnce,
    /// Nothing, until it is watched for something anew.
    Nothing,
    /// Each time a watched kernel file changes (`cgroup.events`).
    Changes,
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Readable => EventFlags::IN,
            Self::Writable => EventFlags::OUT,
            Self::BecomesReadable => EventFlags::IN | EventFlags::ET,
            Self::BecomesWritable => EventFlags::OUT | EventFlags::ET,
            Self::BecomesEither => EventFlags::IN | EventFlags::OUT | EventFlags::ET,
            Self::ReadableOnce => EventFlags::IN | EventFlags::ONESHOT,
            Self::WritableOnce => EventFlags::OUT | EventFlags::ONESHOT,
            Self::EitherOnce => EventFlags::IN | EventFlags::OUT | EventFlags::ONESHOT,
            // The state in which such a watch is when it has told (epoll_ctl(2), EPOLLONESHOT): not even of a hang-up.
            Self::Nothing => EventFlags::ONESHOT,
            Self::Changes => EventFlags::PRI | EventFlags::ET,
        }
    }
}

/// One descriptor that is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    /// What [`Poller::add`] was given.
    pub token: u64,
    /// Whether the other side of a pipe is closed.
    pub hung_up: bool,
}

/// A set of watched descriptors, and a bell.
///
/// One thread at a time waits for it, by [`wait`](Self::wait). Another one may [stand by](Self::stand_by) for as long as nobody
/// does.
///
/// ```
/// use dsh_subprocess_sys::event::{Interest, Patience, Poller};
/// use dsh_subprocess_sys::pipe;
///
/// let poller = Poller::new()?;
/// let made = pipe::pipe()?;
/// poller.add(&made.reader, 7, Interest::Readable)?;
/// pipe::write(&made.writer, b"x")?;
///
/// poller.arm();
/// poller.stand_by()?;
/// let mut ready = Vec::new();
/// poller.wait(Patience::None, &mut ready)?;
/// assert_eq!(ready[0].token, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    bell: OwnedFd,
    clock: OwnedFd,
    /// A set whose only member is the set above.
    standby: OwnedFd,
}

/// How long a wait may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// What is ready now.
    None,
    /// Until something is ready.
    Endless,
}

/// Events taken per system call.
const BATCH: usize = 256;
/// The token of the bell and of the clock.
const BELL: u64 = u64::MAX;

impl Poller {
    /// Makes an empty set.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Edge-triggered, so that ringing needs no reading: each write is an edge.
        epoll::add(
            &epoll,
            &bell,
            EventData::new_u64(BELL),
            EventFlags::IN | EventFlags::ET,
        )?;
        // Edge-triggered too: a clock that is set again is armed again, and its count need not be read.
        let clock = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        epoll::add(
            &epoll,
            &clock,
            EventData::new_u64(BELL),
            EventFlags::IN | EventFlags::ET,
        )?;
        let standby = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&standby, &epoll, EventData::new_u64(BELL), EventFlags::empty())?;
        Ok(Self {
            epoll,
            bell,
            clock,
            standby,
        })
    }

    /// Watches a descriptor. `token` must not be `u64::MAX`.
    ///
    /// # Errors
    ///
    /// `ENOSPC` past the user's limit of watches, `ENOMEM`.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<(), Errno> {
        debug_assert_ne!(token, BELL, "this token is the bell's");
        epoll::add(&self.epoll, fd, EventData::new_u64(token), interest.flags())
    }

    /// Watches a descriptor, which is watched already, for something else. What is ready now is told anew.
    ///
    /// # Errors
    ///
    /// None that can happen to a watched one.
    pub fn change(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<(), Errno> {
        epoll::modify(&self.epoll, fd, EventData::new_u64(token), interest.flags())
    }

    /// Stops watching a descriptor. Needed before it is closed only where a copy of it stays open.
    pub fn remove(&self, fd: impl AsFd) {
        // The only failure left is that it was not watched.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Wakes the thread that waits, or the next one that will.
    pub fn ring(&self) {
        // A full counter (EAGAIN) has rung already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Has the wait end after this long, or never. Unlike a ring it wakes nobody now.
    pub fn set_clock(&self, after: Option<Duration>) {
        // A value of zero would disarm it.
        let after = after.map(|after| after.max(Duration::from_nanos(1)));
        let value = after.map_or(NOW, |after| {
            Timespec::try_from(after).unwrap_or(Timespec {
                tv_sec: i64::MAX,
                tv_nsec: 0,
            })
        });
        // It fails for a value out of range only.
        let _ = timerfd_settime(
            &self.clock,
            TimerfdTimerFlags::empty(),
            &Itimerspec {
                it_interval: NOW,
                it_value: value,
            },
        );
    }

    /// Waits until something is ready, the bell rings, or the clock goes off. `ready` is emptied first; neither of the two
    /// leaves an entry in it.
    ///
    /// # Errors
    ///
    /// None that can happen to an open set.
    pub fn wait(&self, patience: Patience, ready: &mut Vec<Ready>) -> Result<(), Errno> {
        ready.clear();
        let timeout = match patience {
            Patience::None => Some(&NOW),
            Patience::Endless => None,
        };
        let mut room = [const { MaybeUninit::uninit() }; BATCH];
        for event in wait(&self.epoll, &mut room, timeout)? {
            let (token, flags) = (event.data.u64(), event.flags);
            if token != BELL {
                ready.push(Ready {
                    token,
                    hung_up: flags.intersects(EventFlags::HUP | EventFlags::ERR),
                });
            }
        }
        Ok(())
    }

    /// Has the thread that stands by wake up, once, as soon as there is something to [`wait`](Self::wait) for: also what came
    /// before this call and was not waited for.
    ///
    /// The kernel keeps both, what is ready and whether somebody is to be told, so nothing can fall in between.
    pub fn arm(&self) {
        self.set_standby(EventFlags::IN | EventFlags::ONESHOT);
    }

    /// Lets the thread that stands by sleep on, whatever becomes ready.
    pub fn disarm(&self) {
        self.set_standby(EventFlags::empty());
    }

    fn set_standby(&self, flags: EventFlags) {
        // It has been a member since the set was made, and changing one takes no memory.
        let _ = epoll::modify(&self.standby, &self.epoll, EventData::new_u64(BELL), flags);
    }

    /// Waits until it is [armed](Self::arm) and there is something to wait for. It may return without a reason, when a signal
    /// arrives.
    ///
    /// # Errors
    ///
    /// None that can happen to an open set.
    pub fn stand_by(&self) -> Result<(), Errno> {
        wait(&self.standby, &mut [MaybeUninit::uninit()], None).map(drop)
    }
}

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Waits for a set, and returns what is ready: nothing where a signal came.
fn wait<'room>(
    epoll: &OwnedFd,
    room: &'room mut [MaybeUninit<Event>],
    timeout: Option<&Timespec>,
) -> Result<&'room mut [Event], Errno> {
    match epoll::wait(epoll, room, timeout) {
        Ok((events, _)) => Ok(events),
        Err(Errno::INTR) => Ok(&mut []),
        Err(errno) => Err(errno),
    }
}
