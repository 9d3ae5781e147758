//! Signal masks, and signals by name.

use std::marker::PhantomData;
use std::sync::OnceLock;

use dsh_subprocess_warden::syscall::syscall;

/// The thread's signal mask, put back when dropped.
#[derive(Debug)]
pub struct BlockedSignals {
    old: u64,
    /// A mask belongs to its thread.
    _thread: PhantomData<*mut ()>,
}

/// Blocks every signal on this thread, those that the C library keeps for itself included.
pub fn block_all() -> BlockedSignals {
    BlockedSignals {
        old: set_mask(u64::MAX),
        _thread: PhantomData,
    }
}

/// Blocks every signal on this thread that a thread made now is to inherit blocked.
///
/// The C library keeps a few for itself, to reach every thread (nptl(7)): a thread that blocked them would hold up every
/// `setuid` of the process for ever.
pub fn block_for_new_thread() -> BlockedSignals {
    const OF_THE_LIBRARY: std::ops::RangeInclusive<i32> = 32..=34;
    let library: u64 = OF_THE_LIBRARY.map(|number| 1_u64 << (number - 1)).sum();
    BlockedSignals {
        old: set_mask(!library),
        _thread: PhantomData,
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        set_mask(self.old);
    }
}

fn set_mask(new: u64) -> u64 {
    let mut old = 0_u64;
    let arguments = [
        libc::SIG_SETMASK.unsigned_abs() as usize,
        (&raw const new).expose_provenance(),
        (&raw mut old).expose_provenance(),
        size_of::<u64>(),
        0,
        0,
    ];
    // SAFETY: both sets are as long as the fourth argument says.
    unsafe { syscall(libc::SYS_rt_sigprocmask, arguments) };
    old
}

/// Returns the real-time signals that the host ignored when this was first asked, as a set.
///
/// Programs ignore the standard signals, at any time; the real-time ones hardly ever. They are looked at once, since asking
/// for all of them takes as long as the rest of what a child does before its exec.
pub(super) fn ignored_realtime() -> u64 {
    static IGNORED: OnceLock<u64> = OnceLock::new();
    *IGNORED.get_or_init(|| {
        (32..=64)
            .filter(|&number| is_ignored(number))
            .map(|number| 1 << (number - 1))
            .sum()
    })
}

fn is_ignored(number: usize) -> bool {
    let mut old = [0_usize; 4];
    let arguments = [
        number,
        0,
        (&raw mut old).expose_provenance(),
        size_of::<u64>(),
        0,
        0,
    ];
    // SAFETY: no new action; the old one fits into four words on both architectures.
    unsafe { syscall(libc::SYS_rt_sigaction, arguments) };
    old[0] == libc::SIG_IGN
}

/// Tells whether a write to a pipe without readers would end this process: `SIGPIPE` has its default action.
pub(super) fn pipe_signal_is_fatal() -> bool {
    let mut old = [0_usize; 4];
    let arguments = [
        libc::SIGPIPE.unsigned_abs() as usize,
        0,
        (&raw mut old).expose_provenance(),
        size_of::<u64>(),
        0,
        0,
    ];
    // SAFETY: no new action; the old one fits into four words on both architectures.
    unsafe { syscall(libc::SYS_rt_sigaction, arguments) };
    old[0] == libc::SIG_DFL
}

/// Takes a pending `SIGPIPE` of this thread, which must be blocked.
pub(super) fn take_pipe_signal() {
    let set = 1_u64 << (libc::SIGPIPE - 1);
    let none = [0_i64; 2];
    let arguments = [
        (&raw const set).expose_provenance(),
        0,
        (&raw const none).expose_provenance(),
        size_of::<u64>(),
        0,
        0,
    ];
    // SAFETY: the set and the zero timeout are readable; no information is asked for.
    unsafe { syscall(libc::SYS_rt_sigtimedwait, arguments) };
}

/// The names of the signals, in the order of signal(7) on `x86_64` and `aarch64`: `SIGHUP` is 1.
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The first real-time signal that programs can use, as the C libraries here count it.
const REALTIME: i32 = 34;

/// Returns a signal's name: `SIGTERM`, or `SIGRTMIN+2` for a real-time one.
///
/// ```
/// assert_eq!(dsh_subprocess_sys::signal::name(15), "SIGTERM");
/// assert_eq!(dsh_subprocess_sys::signal::name(34), "SIGRTMIN+0");
/// ```
pub fn name(number: i32) -> std::borrow::Cow<'static, str> {
    let standard = usize::try_from(number - 1)
        .ok()
        .and_then(|index| NAMES.get(index));
    match standard {
        Some(name) => (*name).into(),
        None => format!("SIGRTMIN{:+}", number - REALTIME).into(),
    }
}

/// Returns the number of a signal's name, as [`name`] spells it.
///
/// ```
/// assert_eq!(dsh_subprocess_sys::signal::number("SIGKILL"), Some(9));
/// assert_eq!(dsh_subprocess_sys::signal::number("SIGRTMIN+1"), Some(35));
/// assert_eq!(dsh_subprocess_sys::signal::number("SIGNONE"), None);
/// ```
pub fn number(name: &str) -> Option<i32> {
    if let Some(index) = NAMES.iter().position(|known| *known == name) {
        return i32::try_from(index + 1).ok();
    }
    let offset: i32 = name.strip_prefix("SIGRTMIN")?.parse().ok()?;
    Some(REALTIME + offset)
}
