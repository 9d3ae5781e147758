//! The process table: sessions, commands, parents, and who holds a pipe.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;
use std::time::Instant;

use dsh_subprocess_warden::syscall::{check, syscall};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process_group};

pub use super::descendants::{descendants, lists_descendants, session_by_descent};
use super::pidfd;

/// The longest command line that is shown, in bytes.
const COMMAND: usize = 4096;
/// The longest environment that is looked at, in bytes.
const ENVIRONMENT: usize = 256 * 1024;
/// Numbers that are asked one by one before listing the table is cheaper.
const RANGE: i32 = 4096;
/// More new processes per second than a machine makes; see [`Session::may_have_wrapped`].
const FORKS_PER_SECOND: u128 = 50_000;

/// Tells whether `/proc` shows the pid namespace this process lives in. Another one's table would name strangers.
pub fn is_ours() -> bool {
    static OURS: OnceLock<bool> = OnceLock::new();
    *OURS.get_or_init(|| {
        fs::read_link("/proc/self")
            .is_ok_and(|link| link.as_os_str() == getpid().as_raw_nonzero().to_string().as_str())
    })
}

/// A session, by its leader's pid.
///
/// All its members descend from the leader, so their numbers are newer than the leader's: that makes looking for them
/// cheap while the leader is young.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    id: Pid,
    born: Instant,
}

impl Session {
    /// Names the session that a process started at about `born` leads.
    pub fn new(id: Pid, born: Instant) -> Self {
        // Opened while there is a descriptor to be had: a look must be possible when there is none.
        loadavg();
        pid_max();
        Self { id, born }
    }

    /// Returns its id.
    pub fn id(&self) -> Pid {
        self.id
    }

    /// Calls `visit` once with each process of the session but its leader, zombies included, and with `true`; and with each
    /// other process that is younger than the leader, where those were looked at, and with `false`.
    ///
    /// Nothing that was in the session for the whole length of the call is missed: a process born during the look is either
    /// seen itself, or is the child of one that was seen.
    pub fn visit(&self, mut visit: impl FnMut(Pid, bool)) {
        let leader = self.id.as_raw_nonzero().get();
        let wrapped = self.may_have_wrapped();
        let mut look = |pid: Pid| {
            if pid != self.id
                && let Some(session) = session_number(pid)
            {
                let inside = session == leader;
                if inside && is_thread(pid) {
                    return;
                }
                if inside || wrapped || pid.as_raw_nonzero() > self.id.as_raw_nonzero() {
                    visit(pid, inside);
                }
            }
        };
        let Some(newest) = newest_pid() else {
            // No usable table: the numbers that are likely, one by one.
            (leader.saturating_add(1)..leader.saturating_add(32_768))
                .filter_map(Pid::from_raw)
                .for_each(look);
            return;
        };
        let mut looked_to = leader;
        if !wrapped && (leader..=leader.saturating_add(RANGE)).contains(&newest) {
            let mut to = newest;
            loop {
                (looked_to + 1..=to).filter_map(Pid::from_raw).for_each(&mut look);
                looked_to = to;
                // A member seen dying may have had a child after the numbers were read.
                match newest_pid() {
                    Some(newer) if newer == to => return,
                    Some(newer) if newer > to && newer - leader <= RANGE => to = newer,
                    _ => break,
                }
            }
        }
        // The table is listed in the order of the numbers, which is that of birth until they wrap. So it is listed until
        // nothing new shows up.
        let mut seen: BTreeSet<i32> = (leader..=looked_to).collect();
        loop {
            let before = seen.len();
            let Some(pids) = listed() else {
                // No descriptor to list it with: number by number, however many there are. A call for one of them takes
                // about a tenth of a microsecond.
                let (first, last) = if wrapped {
                    (1, pid_max())
                } else {
                    (looked_to + 1, newest_pid().unwrap_or(newest))
                };
                (first..=last)
                    .filter(|number| !seen.contains(number))
                    .filter_map(Pid::from_raw)
                    .for_each(&mut look);
                return;
            };
            for pid in pids {
                if seen.insert(pid.as_raw_nonzero().get()) {
                    look(pid);
                }
            }
            if seen.len() == before {
                return;
            }
        }
    }

    /// Tells whether the numbers may have run through all their range since the leader was born.
    fn may_have_wrapped(&self) -> bool {
        self.born.elapsed().as_millis() * FORKS_PER_SECOND / 1000 >= u128::from(pid_max().unsigned_abs())
    }
}

/// Tells whether a number is that of a thread which is not its process's first: those are numbered with the processes.
fn is_thread(pid: Pid) -> bool {
    // EINVAL, and ENOENT from Linux 6.16 on (pidfd_open(2)).
    matches!(pidfd::open(pid), Err(Errno::INVAL | Errno::NOENT))
}

/// Returns the number that no process of this pid namespace reaches.
fn pid_max() -> i32 {
    static PID_MAX: OnceLock<i32> = OnceLock::new();
    *PID_MAX.get_or_init(|| {
        fs::read_to_string("/proc/sys/kernel/pid_max")
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(32_768)
    })
}

/// Returns the number that the newest process of this pid namespace got.
fn newest_pid() -> Option<i32> {
    let mut text = [0_u8; 128];
    let length = loadavg()?.read_at(&mut text)?;
    // "0.20 0.18 0.12 1/80 11206" (proc_loadavg(5)).
    let text = str::from_utf8(&text[..length]).ok()?;
    text.trim_end().rsplit(' ').next()?.parse().ok()
}

struct Loadavg(fs::File);

impl Loadavg {
    fn read_at(&self, buffer: &mut [u8]) -> Option<usize> {
        std::os::unix::fs::FileExt::read_at(&self.0, buffer, 0).ok()
    }
}

fn loadavg() -> Option<&'static Loadavg> {
    static FILE: OnceLock<Option<Loadavg>> = OnceLock::new();
    FILE.get_or_init(|| {
        is_ours()
            .then(|| fs::File::open("/proc/loadavg").ok().map(Loadavg))
            .flatten()
    })
    .as_ref()
}

/// Returns this process.
pub fn this_process() -> Pid {
    getpid()
}

/// Lists every process of the table, in the order of the numbers. Empty where it cannot be listed.
pub fn pids() -> impl Iterator<Item = Pid> {
    listed().into_iter().flatten()
}

/// As [`pids`]; `None` where the table cannot be listed: for want of a descriptor, or because it is another namespace's.
fn listed() -> Option<impl Iterator<Item = Pid>> {
    let entries = is_ours().then(|| fs::read_dir("/proc").ok()).flatten()?;
    Some(entries.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        Pid::from_raw(name.to_str()?.parse().ok()?)
    }))
}

/// Sends a signal to a process group.
///
/// # Errors
///
/// `ESRCH` when it is empty, `EPERM` when no member may be signalled, `EINVAL` for group 1, which is init's.
pub fn signal_group(group: Pid, signal: Signal) -> Result<(), Errno> {
    // kill(-1) would mean everybody.
    if group == Pid::INIT {
        return Err(Errno::INVAL);
    }
    kill_process_group(group, signal)
}

/// Returns the process group of a process. `None` where it has none that this pid namespace has a number for.
pub fn group_of(pid: Pid) -> Option<Pid> {
    number(libc::SYS_getpgid, pid).and_then(Pid::from_raw)
}

/// Returns the session of a process. `None` where it has none that this pid namespace has a number for.
pub fn session_of(pid: Pid) -> Option<Pid> {
    session_number(pid).and_then(Pid::from_raw)
}

/// A process's session, 0 for kernel threads and for sessions of another pid namespace. `None` where there is no process.
fn session_number(pid: Pid) -> Option<i32> {
    number(libc::SYS_getsid, pid)
}

/// The library's calls take the answer for a pid, which 0 is not.
fn number(call: libc::c_long, pid: Pid) -> Option<i32> {
    // SAFETY: getsid and getpgid take one integer and touch no memory.
    let answer = unsafe { syscall(call, [pid.as_raw_nonzero().get() as usize, 0, 0, 0, 0, 0]) };
    check(answer).ok().map(|number| number as i32)
}

/// One line of the table (`proc_pid_stat(5)`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// `R`, `S`, `D`, `T`, `Z`, …
    pub state: u8,
    /// The parent.
    pub parent: i32,
    /// The session.
    pub session: i32,
    /// Its threads.
    pub threads: i32,
    /// When it was started, in clock ticks since boot. With the pid it names the process for good.
    pub start_time: u64,
}

impl Entry {
    /// Tells whether the process has no thread that can run any more.
    pub fn is_dead(&self) -> bool {
        match self.state {
            // The state is the first thread's, which may end before the others.
            b'Z' => self.threads <= 1,
            state => matches!(state, b'X' | b'x'),
        }
    }
}

/// Returns the [start time](Entry::start_time) that a process would have which was started now.
pub fn now() -> u64 {
    let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    let whole = since_boot.tv_sec as u64 * per_second;
    whole + since_boot.tv_nsec as u64 * per_second / 1_000_000_000
}

/// Reads a process's line.
pub fn entry(pid: Pid) -> Option<Entry> {
    parse_entry(&read_bounded(pid, "stat", 1024)?)
}

/// Parses the content of `/proc/PID/stat`. The command in it may contain spaces, parentheses and line ends.
pub fn parse_entry(line: &[u8]) -> Option<Entry> {
    let end = line.iter().rposition(|&byte| byte == b')')?;
    let fields: Vec<&str> = str::from_utf8(line.get(end + 1..)?)
        .ok()?
        .split_ascii_whitespace()
        .collect();
    Some(Entry {
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

/// Tells whether a process ignores a signal. `false` where that cannot be told.
pub fn ignores(pid: Pid, signal: Signal) -> bool {
    read_bounded(pid, "status", 8192).is_some_and(|status| ignored(&status) >> (signal.as_raw() - 1) & 1 == 1)
}

/// Returns the set of ignored signals that the content of `/proc/PID/status` shows (`proc_pid_status(5)`).
fn ignored(status: &[u8]) -> u64 {
    status
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"SigIgn:\t"))
        .and_then(|set| u64::from_str_radix(str::from_utf8(set).ok()?, 16).ok())
        .unwrap_or(0)
}

/// Returns a process's command line, or its name in brackets where that is empty. `None` when the process is gone.
///
/// At most 4,096 bytes; control characters become spaces.
pub fn command(pid: Pid) -> Option<String> {
    let mut line = read_bounded(pid, "cmdline", COMMAND)?;
    while line.last() == Some(&0) {
        line.pop();
    }
    if line.is_empty() {
        return short_name(pid);
    }
    Some(printable(&line))
}

/// Returns a process's name in brackets, at most 15 bytes. Unlike its command line it is read from the kernel's memory, not
/// from the process's own, so it never hangs.
pub fn short_name(pid: Pid) -> Option<String> {
    let name = read_bounded(pid, "comm", 64)?;
    Some(format!("[{}]", printable(name.trim_ascii_end())))
}

fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Returns a process's initial environment, entries separated by NULs, at most 256 KiB. `None` when it may not be read.
pub fn environment(pid: Pid) -> Option<Vec<u8>> {
    read_bounded(pid, "environ", ENVIRONMENT)
}

fn read_bounded(pid: Pid, file: &str, bound: usize) -> Option<Vec<u8>> {
    // The numbers of another namespace's table are those of strangers.
    if !is_ours() {
        return None;
    }
    let mut bytes = Vec::with_capacity(bound.min(1024));
    let file = fs::File::open(format!("/proc/{}/{file}", pid.as_raw_nonzero())).ok()?;
    file.take(bound as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Tells whether a process holds the writing end of a pipe, named by its inode.
pub fn holds_pipe(pid: Pid, inode: u64) -> bool {
    if !is_ours() {
        return false;
    }
    let wanted = format!("pipe:[{inode}]");
    let Ok(descriptors) = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) else {
        return false;
    };
    descriptors.flatten().any(|descriptor| {
        let path = descriptor.path();
        fs::read_link(&path).is_ok_and(|link| link.as_os_str().as_bytes() == wanted.as_bytes())
            // The link's own permissions say how the descriptor is open (proc_pid_fd(5)).
            && fs::symlink_metadata(&path).is_ok_and(|link| link.permissions().mode() & 0o200 != 0)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn item_105_a_command_with_spaces_and_parentheses_is_parsed() {
        let tail = "S 7 8 9 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        for name in ["sh", "a b", "a) S 1 (b", "\n"] {
            let line = format!("42 ({name}) {tail}");
            let expected = Entry {
                state: b'S',
                parent: 7,
                session: 9,
                threads: 1,
                start_time: 4711,
            };
            assert_eq!(parse_entry(line.as_bytes()), Some(expected), "{name:?}");
        }
    }

    #[test]
    fn item_105_a_malformed_line_is_no_entry() {
        for line in ["", "42", "42 (sh", "42 (sh) ", "42 (sh) S", "42 (sh) S x 8 9"] {
            assert_eq!(parse_entry(line.as_bytes()), None, "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn item_105_no_command_changes_what_is_read_after_it(
            command in prop::collection::vec(any::<u8>(), 0..16),
            fields in prop::collection::vec(0..=i32::MAX, 17..22),
        ) {
            let fields = fields.iter().map(|field| format!(" {field}")).collect::<Vec<_>>().concat();
            let line = |command: &[u8]| [b"42 (", command, b") S", fields.as_bytes()].concat();
            prop_assert_eq!(parse_entry(&line(&command)), parse_entry(&line(b"sh")));
        }

        #[test]
        fn item_105_any_bytes_are_a_line_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_entry(&bytes);
        }
    }

    #[test]
    fn the_ignored_signals_are_those_of_the_line() {
        let status = b"Name:\tSigIgn:\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000384004\n";
        assert_eq!(ignored(status), 0x38_4004);
        assert_eq!(ignored(b"Name:\tsh\n"), 0);
        assert!(!ignores(getpid(), Signal::CHILD));
    }

    #[test]
    fn this_process_was_started_before_now() {
        let started = entry(getpid()).expect("this process has a line").start_time;
        // Within the minutes that a test may take.
        let hour = 3600 * rustix::param::clock_ticks_per_second();
        assert!((started..started + hour).contains(&now()), "{started}, {}", now());
    }

    #[test]
    fn this_process_is_in_the_table() {
        let itself = getpid();
        assert!(is_ours());
        assert!(pids().any(|pid| pid == itself));
        let entry = entry(itself).expect("this process has a line");
        assert!(!entry.is_dead());
        // Both are 0 where the session's leader lives in another pid namespace.
        assert_eq!(Some(entry.session), session_number(itself));
        assert!(command(itself).is_some_and(|command| !command.is_empty()));
    }

    #[test]
    fn every_process_can_be_asked_for_its_session_kernel_threads_included() {
        let asked = pids()
            .filter(|pid| session_of(*pid).is_some() || group_of(*pid).is_none())
            .count();
        assert!(asked > 0);
    }

    #[test]
    fn a_group_named_1_is_never_signalled() {
        assert_eq!(signal_group(Pid::INIT, Signal::CONT), Err(Errno::INVAL));
    }

    #[test]
    fn the_holder_of_a_writing_end_is_found_and_that_of_a_reading_end_is_not() {
        let pipe = super::super::pipe::pipe().expect("a pipe");
        let inode = super::super::pipe::inode(&pipe.reader).expect("an inode");
        assert!(holds_pipe(getpid(), inode));
        drop(pipe.writer);
        assert!(!holds_pipe(getpid(), inode));
    }
}
