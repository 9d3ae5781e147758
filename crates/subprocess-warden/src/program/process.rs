//! This process, its children, and signals.

use core::ffi::CStr;
use core::ptr;

use crate::abi::flag::{
    __WALL, PR_SET_CHILD_SUBREAPER, PR_SET_NAME, RLIMIT_NOFILE, SFD_CLOEXEC, SFD_NONBLOCK, SIG_SETMASK,
    SIGCHLD, WNOHANG,
};
use crate::abi::{errno, number};
use crate::descriptor::Descriptor;
use crate::syscall::{check, fd, syscall};

/// The kernel's `sigset_t` is 64 bits on both architectures.
const SIGSET_BYTES: usize = 8;
/// The highest signal.
const SIGNALS: u32 = 64;

/// Ends the process, with every thread of it.
pub fn exit(code: i32) -> ! {
    loop {
        // SAFETY: exit_group takes an integer and does not return.
        unsafe { syscall(number::exit_group, [fd(code), 0, 0, 0, 0, 0]) };
    }
}

/// Blocks every signal that can be blocked, and gives each its default action: what the host, or whoever started it, does
/// not want to hear of must not be missed here, `SIGCHLD` least of all (a process that ignores it never learns how its
/// children end), nor be ignored by the targets.
///
/// A signal that is blocked is not ignored, whatever its action: it stays pending, so a signalfd sees it.
pub fn take_no_signals() {
    let every = u64::MAX;
    let set = (&raw const every).expose_provenance();
    // SAFETY: the new set is eight bytes; no old one is asked for.
    unsafe {
        syscall(
            number::rt_sigprocmask,
            [fd(SIG_SETMASK), set, 0, SIGSET_BYTES, 0, 0],
        )
    };
    // The kernel's `struct sigaction` is four words, all zero: SIG_DFL, no flags, an empty mask.
    let default = [0_usize; 4];
    for signal in 1..=SIGNALS as usize {
        let action = default.as_ptr().expose_provenance();
        // SAFETY: a whole action; SIGKILL and SIGSTOP refuse it.
        unsafe { syscall(number::rt_sigaction, [signal, action, 0, SIGSET_BYTES, 0, 0]) };
    }
}

/// Opens a descriptor that is readable when a child has ended.
pub fn child_signals() -> Result<Descriptor, i32> {
    let ended = 1_u64 << (SIGCHLD - 1);
    let set = (&raw const ended).expose_provenance();
    let flags = fd(SFD_NONBLOCK | SFD_CLOEXEC);
    // SAFETY: the set is eight bytes; -1 asks for a new descriptor.
    check(unsafe { syscall(number::signalfd4, [fd(-1), set, SIGSET_BYTES, flags, 0, 0]) })
        .map(|opened| Descriptor::adopt(opened as i32))
}

/// Makes this process the parent of every descendant whose own parent ends.
pub fn adopt_orphans() -> Result<(), i32> {
    prctl(PR_SET_CHILD_SUBREAPER, 1)
}

/// Sets the name that process listings show.
pub fn set_name(name: &CStr) {
    // It is for people only.
    let _ = prctl(PR_SET_NAME, name.as_ptr().expose_provenance());
}

fn prctl(option: i32, argument: usize) -> Result<(), i32> {
    // SAFETY: the options used here take an integer, or a NUL-terminated name that is copied.
    check(unsafe { syscall(number::prctl, [fd(option), argument, 0, 0, 0, 0]) }).map(drop)
}

/// Lets this process have as many descriptors as it is allowed to: a host may have few left for itself, and what is needed
/// to end its trees must not depend on that.
pub fn raise_descriptor_limit() {
    if let Some((_, hard)) = limit(RLIMIT_NOFILE) {
        let raised = [hard, hard];
        let arguments = [
            0,
            RLIMIT_NOFILE as usize,
            raised.as_ptr().expose_provenance(),
            0,
            0,
            0,
        ];
        // SAFETY: the new limit is two words; the old one is not asked for.
        unsafe { syscall(number::prlimit64, arguments) };
    }
}

/// Returns this process's soft and hard limit of a resource.
pub fn limit(resource: u32) -> Option<(u64, u64)> {
    let mut limit = [0_u64; 2];
    let arguments = [
        0,
        resource as usize,
        0,
        limit.as_mut_ptr().expose_provenance(),
        0,
        0,
    ];
    // SAFETY: room for two words, and no new limit.
    check(unsafe { syscall(number::prlimit64, arguments) }).ok()?;
    Some((limit[0], limit[1]))
}

/// Sets the mask of the files that this process's children make.
pub fn set_umask(mask: u32) {
    // SAFETY: umask takes an integer.
    unsafe { syscall(number::umask, [mask as usize, 0, 0, 0, 0, 0]) };
}

/// Returns this process's number.
pub fn own_pid() -> u32 {
    // SAFETY: getpid takes nothing.
    unsafe { syscall(number::getpid, [0; 6]) as u32 }
}

/// Returns the number of this process's parent.
pub fn parent_pid() -> u32 {
    // SAFETY: getppid takes nothing.
    unsafe { syscall(number::getppid, [0; 6]) as u32 }
}

/// Leaves the group of whoever started this process; and its session too, unless it is to stay there for the sake of
/// children that share the host's terminal.
pub fn stand_apart(stay_in_session: bool) {
    // A process that was just forked leads no group, so neither can fail but by a security filter; then signals to the
    // group reach it, and are blocked.
    if stay_in_session {
        // SAFETY: setpgid takes integers.
        unsafe { syscall(number::setpgid, [0; 6]) };
    } else {
        // SAFETY: setsid takes nothing.
        unsafe { syscall(number::setsid, [0; 6]) };
    }
}

/// Forks. Returns 0 in the child, which has a copy of everything.
pub fn fork() -> Result<u32, i32> {
    // SAFETY: a clone that shares nothing goes on in both processes, each on its own copy of this stack. There is no second
    // thread whose state the copy could catch half-way: the runtime warden never makes one.
    check(unsafe { syscall(number::clone, [fd(SIGCHLD), 0, 0, 0, 0, 0]) }).map(|pid| pid as u32)
}

/// What a wait gave.
#[derive(Clone, Copy, Debug)]
pub enum Waited {
    /// A child has ended, and is no more.
    Ended(End),
    /// There are children, and none has ended.
    Alive,
    /// There are no children.
    Childless,
}

/// How a child ended.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Which one.
    pub pid: u32,
    /// As wait(2) encodes it.
    pub status: u32,
    /// Microseconds on a processor, with those of the descendants it waited for.
    pub user: u64,
    /// Microseconds in the kernel, likewise.
    pub system: u64,
    /// The largest resident set, its own or such a descendant's, in bytes.
    pub peak_memory: u64,
}

/// Takes leave of one child that has ended.
///
/// An ended child that somebody else traces stays until the tracer has let it go.
pub fn wait() -> Waited {
    let mut status = 0_u32;
    // `struct rusage` (getrusage(2)): two times of two words each, then fourteen counts.
    let mut usage = [0_u64; 18];
    let arguments = [
        fd(-1),
        (&raw mut status).expose_provenance(),
        fd(WNOHANG | __WALL),
        usage.as_mut_ptr().expose_provenance(),
        0,
        0,
    ];
    // SAFETY: room for a status and for a whole rusage.
    match check(unsafe { syscall(number::wait4, arguments) }) {
        // The only error there is: without children. Interrupted it cannot be, since it does not wait.
        Err(_) => Waited::Childless,
        Ok(0) => Waited::Alive,
        Ok(pid) => Waited::Ended(End {
            pid: pid as u32,
            status,
            user: usage[0].saturating_mul(1_000_000).saturating_add(usage[1]),
            system: usage[2].saturating_mul(1_000_000).saturating_add(usage[3]),
            peak_memory: usage[4].saturating_mul(1024),
        }),
    }
}

/// Sends a signal to a child of this process, by its number. Nobody else can have the number: a child keeps it until this
/// process waits for it.
pub fn signal_child(pid: u32, signal: i32) -> Result<(), i32> {
    let Ok(pid) = i32::try_from(pid) else {
        return Err(errno::ESRCH);
    };
    if pid <= 1 {
        // 0 and less would mean groups, and 1 is nobody's child.
        return Err(errno::ESRCH);
    }
    // SAFETY: kill takes integers.
    check(unsafe { syscall(number::kill, [fd(pid), fd(signal), 0, 0, 0, 0]) }).map(drop)
}

/// Opens a process.
pub fn open(pid: u32) -> Result<Descriptor, i32> {
    // SAFETY: pidfd_open takes integers.
    check(unsafe { syscall(number::pidfd_open, [pid as usize, 0, 0, 0, 0, 0]) })
        .map(|opened| Descriptor::adopt(opened as i32))
}

/// Sends a signal to an opened process; 0 only asks whether it could be sent.
pub fn signal(process: &Descriptor, signal: i32) -> Result<(), i32> {
    let arguments = [
        fd(process.number()),
        fd(signal),
        ptr::null::<u8>().expose_provenance(),
        0,
        0,
        0,
    ];
    // SAFETY: without information of its own to go with it.
    check(unsafe { syscall(number::pidfd_send_signal, arguments) }).map(drop)
}

/// Tells whether nobody has waited for an opened process yet, so that its number is still its own. That it may not be
/// signalled says that it is there.
pub fn has_its_number(process: &Descriptor) -> bool {
    signal(process, 0) != Err(errno::ESRCH)
}
