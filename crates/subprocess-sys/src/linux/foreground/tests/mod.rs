//! Programs that wait, and programs that do not.

use std::env;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Gid, Pid, Signal, Uid};

use self::program::{Program, name_of};
use super::{InputWaiting, TerminalId, Unseen, input_waiting};
use crate::linux::{pipe, pty, table};

mod blocked;
mod program;

/// The descriptor that is the terminal from the start.
const STDIN: i32 = 0;
/// A call that waits for an array of descriptors, and has a number of its own when it goes on after a stop, where there is one.
#[cfg(target_arch = "x86_64")]
const POLL: libc::c_long = libc::SYS_poll;
#[cfg(not(target_arch = "x86_64"))]
const POLL: libc::c_long = libc::SYS_ppoll;

fn is_proven(act: impl Fn()) {
    Program::that(act).becomes(InputWaiting::Proven);
}

/// The program blocks in `call`, and that is no wait for input.
fn is_not_waiting(call: libc::c_long, act: impl Fn()) {
    let program = Program::that(act);
    program.sleeps_in(call);
    assert_eq!(program.look(), InputWaiting::NotWaiting);
}

/// Executes a program.
fn execute(command: &[&str]) {
    let failed = Command::new(command[0]).args(&command[1..]).exec();
    panic!("{command:?}: {failed}");
}

/// Opens the terminal by the name that all terminals have.
fn dev_tty() -> rustix::fd::OwnedFd {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(c"/dev/tty", flags, Mode::empty()).expect("there is a controlling terminal")
}

fn another_terminal() -> pty::Pty {
    pty::open(24, 80).expect("a terminal")
}

/// Makes an epoll set of one descriptor.
fn set_of(descriptor: impl rustix::fd::AsFd, events: EventFlags) -> rustix::fd::OwnedFd {
    let set = epoll::create(CreateFlags::CLOEXEC).expect("descriptors are left");
    epoll::add(&set, descriptor, EventData::new_u64(0), events).expect("it can be waited for");
    set
}

#[test]
fn item_102_a_program_of_one_thread_that_reads_is_proven() {
    is_proven(|| execute(&["cat"]));
}

#[test]
fn item_102_a_shell_at_its_prompt_is_proven_and_its_command_is_not_waiting() {
    let program = Program::that(|| execute(&["bash", "--norc", "--noprofile", "-i"]));
    program.becomes(InputWaiting::Proven);
    program.types(b"sleep 1000\r");
    // Now another group has the terminal.
    program.sleeps_in(libc::SYS_clock_nanosleep);
    assert!(!program.members().contains(&program.pid()));
    assert_eq!(program.look(), InputWaiting::NotWaiting);
    program.types(b"\x03");
    program.becomes(InputWaiting::Proven);
    assert!(program.members().contains(&program.pid()));
}

#[test]
fn item_102_a_second_thread_that_reads_is_proven() {
    is_proven(|| blocked::read(STDIN));
}

#[test]
fn item_102_readv_is_proven() {
    is_proven(|| blocked::readv(libc::SYS_readv, STDIN));
}

#[test]
fn item_102_preadv2_at_no_offset_is_proven() {
    is_proven(|| blocked::readv(libc::SYS_preadv2, STDIN));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn item_102_select_is_proven() {
    is_proven(|| blocked::select(libc::SYS_select, &[STDIN]));
}

#[test]
fn item_102_pselect6_is_proven() {
    is_proven(|| blocked::select(libc::SYS_pselect6, &[STDIN]));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn item_102_poll_is_proven() {
    is_proven(|| blocked::poll(libc::SYS_poll, &[(STDIN, libc::POLLIN)]));
}

#[test]
fn item_102_ppoll_is_proven() {
    is_proven(|| blocked::poll(libc::SYS_ppoll, &[(-1, 0), (STDIN, libc::POLLRDNORM)]));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn item_102_epoll_wait_is_proven() {
    is_proven(|| {
        let set = set_of(std::io::stdin(), EventFlags::IN);
        blocked::epoll(libc::SYS_epoll_wait, set.as_raw_fd());
    });
}

#[test]
fn item_102_epoll_pwait_is_proven() {
    is_proven(|| {
        let set = set_of(std::io::stdin(), EventFlags::IN | EventFlags::ET);
        blocked::epoll(libc::SYS_epoll_pwait, set.as_raw_fd());
    });
}

#[test]
fn item_102_epoll_pwait2_is_proven() {
    is_proven(|| {
        let set = set_of(std::io::stdin(), EventFlags::IN);
        blocked::epoll(libc::SYS_epoll_pwait2, set.as_raw_fd());
    });
}

#[test]
fn item_102_a_set_within_a_set_is_proven() {
    is_proven(|| {
        let inner = set_of(std::io::stdin(), EventFlags::IN);
        let set = set_of(&inner, EventFlags::IN);
        blocked::epoll(libc::SYS_epoll_pwait, set.as_raw_fd());
    });
}

#[test]
fn item_102_a_set_that_is_polled_is_proven() {
    is_proven(|| {
        let set = set_of(std::io::stdin(), EventFlags::IN);
        blocked::poll(libc::SYS_ppoll, &[(set.as_raw_fd(), libc::POLLIN)]);
    });
}

#[test]
fn item_103_a_duplicate_with_any_number_is_proven() {
    is_proven(|| {
        let duplicate = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 57).expect("descriptors are left");
        assert_eq!(duplicate.as_raw_fd(), 57);
        blocked::read(57);
    });
}

#[test]
fn item_103_a_descriptor_that_a_set_outlives_is_proven() {
    is_proven(|| {
        let duplicate = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 57).expect("descriptors are left");
        let set = set_of(&duplicate, EventFlags::IN);
        drop(duplicate);
        blocked::epoll(libc::SYS_epoll_pwait, set.as_raw_fd());
    });
}

#[test]
fn item_103_dev_tty_is_proven() {
    is_proven(|| blocked::read(dev_tty().as_raw_fd()));
}

#[test]
fn item_103_dev_tty_in_a_set_is_proven() {
    is_proven(|| {
        let set = set_of(dev_tty(), EventFlags::IN);
        // It was closed, and so is not in the set any more.
        drop(set);
        let terminal = dev_tty();
        let set = set_of(&terminal, EventFlags::IN);
        blocked::epoll(libc::SYS_epoll_pwait, set.as_raw_fd());
    });
}

#[test]
fn item_103_standard_input_that_is_a_pipe_is_not_waiting() {
    is_not_waiting(libc::SYS_read, || {
        execute(&["sh", "-c", "(sleep 1000; echo) | cat"]);
    });
}

#[test]
fn item_103_another_terminal_is_not_waiting() {
    is_not_waiting(libc::SYS_read, || {
        let other = another_terminal();
        blocked::read(other.slave.as_raw_fd());
    });
}

#[test]
fn item_103_another_terminal_in_a_set_is_not_waiting() {
    is_not_waiting(libc::SYS_epoll_pwait, || {
        let other = another_terminal();
        let set = set_of(&other.slave, EventFlags::IN);
        blocked::epoll(libc::SYS_epoll_pwait, set.as_raw_fd());
    });
}

#[test]
fn item_103_a_bitmap_without_the_terminal_is_not_waiting() {
    is_not_waiting(libc::SYS_pselect6, || {
        let pipe = pipe::pipe().expect("descriptors are left");
        blocked::select(libc::SYS_pselect6, &[pipe.reader.as_raw_fd()]);
    });
}

#[test]
fn a_wait_for_something_else_than_input_is_not_waiting() {
    is_not_waiting(libc::SYS_ppoll, || {
        blocked::poll(libc::SYS_ppoll, &[(STDIN, libc::POLLPRI)]);
    });
}

#[test]
fn a_set_for_something_else_than_input_is_not_waiting() {
    is_not_waiting(libc::SYS_epoll_pwait, || {
        let set = set_of(std::io::stdin(), EventFlags::PRI);
        blocked::epoll(libc::SYS_epoll_pwait, set.as_raw_fd());
    });
}

#[test]
fn a_stopped_program_is_not_waiting_until_it_is_continued() {
    let program = Program::that(|| execute(&["cat"]));
    program.becomes(InputWaiting::Proven);
    program.stops();
    assert_eq!(program.look(), InputWaiting::NotWaiting);
    program.signal(Signal::CONT);
    program.becomes(InputWaiting::Proven);
}

#[test]
fn a_poll_that_goes_on_after_a_stop_is_proven() {
    let program = Program::that(|| blocked::poll(POLL, &[(STDIN, libc::POLLIN)]));
    program.becomes(InputWaiting::Proven);
    program.stops();
    assert_eq!(program.look(), InputWaiting::NotWaiting);
    program.signal(Signal::CONT);
    program.becomes(InputWaiting::Proven);
}

#[test]
fn a_sleep_that_goes_on_after_a_stop_is_not_waiting() {
    let program = Program::that(|| execute(&["sleep", "1000"]));
    program.sleeps_in(libc::SYS_clock_nanosleep);
    program.stops();
    program.signal(Signal::CONT);
    program.sleeps_in(libc::SYS_restart_syscall);
    assert_eq!(program.look(), InputWaiting::NotWaiting);
}

#[test]
fn item_102_a_wait_for_an_io_uring_cannot_be_told() {
    Program::that(|| blocked::enter(blocked::io_uring())).becomes(InputWaiting::Unknown(Unseen::IoUring));
}

#[test]
fn item_102_a_poll_for_an_io_uring_cannot_be_told() {
    let program = Program::that(|| {
        let ring = blocked::io_uring();
        blocked::poll(libc::SYS_ppoll, &[(ring, libc::POLLIN)]);
    });
    program.becomes(InputWaiting::Unknown(Unseen::IoUring));
}

#[test]
fn item_102_a_poll_for_an_io_uring_and_the_terminal_is_proven() {
    is_proven(|| {
        let ring = blocked::io_uring();
        blocked::poll(libc::SYS_ppoll, &[(ring, libc::POLLIN), (STDIN, libc::POLLIN)]);
    });
}

#[test]
fn what_has_ended_or_is_of_another_session_is_no_member() {
    let program = Program::that(|| execute(&["cat"]));
    program.becomes(InputWaiting::Proven);
    let (terminal, pid) = (program.terminal(), program.pid());
    let elsewhere = table::this_process();
    assert_eq!(
        input_waiting(terminal, elsewhere, &[pid]),
        InputWaiting::NotWaiting
    );
    assert_eq!(
        input_waiting(terminal, pid, &[elsewhere]),
        InputWaiting::NotWaiting
    );
    assert_eq!(input_waiting(terminal, pid, &[]), InputWaiting::NotWaiting);
    program.signal(Signal::KILL);
    program.becomes(InputWaiting::NotWaiting);
    let terminal = *terminal;
    drop(program);
    assert_eq!(input_waiting(&terminal, pid, &[pid]), InputWaiting::NotWaiting);
}

#[test]
fn the_terminal_is_the_one_that_is_asked_about() {
    let program = Program::that(|| execute(&["cat"]));
    program.becomes(InputWaiting::Proven);
    let other = TerminalId::of(another_terminal().slave).expect("it is one");
    assert_eq!(
        input_waiting(&other, program.pid(), &program.members()),
        InputWaiting::NotWaiting
    );
}

#[test]
fn more_members_than_are_looked_at_cannot_be_told_without_a_proof() {
    let program = Program::that(|| execute(&["cat"]));
    program.becomes(InputWaiting::Proven);
    let mut members = vec![table::this_process(); 1025];
    let look = |members: &[Pid]| input_waiting(program.terminal(), program.pid(), members);
    assert_eq!(look(&members[1..]), InputWaiting::NotWaiting);
    assert_eq!(look(&members), InputWaiting::Unknown(Unseen::TooMuch));
    members[1023] = program.pid();
    assert_eq!(look(&members), InputWaiting::Proven);
}

/// Makes this thread an ordinary user's.
fn become_nobody() {
    let (user, group) = (Uid::from_raw(65534), Gid::from_raw(65534));
    rustix::thread::set_thread_groups(&[]).expect("root may");
    rustix::thread::set_thread_res_gid(group, group, group).expect("root may");
    rustix::thread::set_thread_res_uid(user, user, user).expect("root may");
}

#[test]
fn as_root_item_102_another_users_program_cannot_be_told() {
    let program = Program::that(|| execute(&["cat"]));
    program.becomes(InputWaiting::Proven);
    let answer = std::thread::scope(|scope| {
        let look = scope.spawn(|| {
            become_nobody();
            program.look()
        });
        look.join().expect("a look does not panic")
    });
    assert_eq!(answer, InputWaiting::Unknown(Unseen::Forbidden));
}

#[test]
fn as_root_item_102_a_hidden_program_cannot_be_told() {
    /// Set, in the namespace where it is hidden, to its number.
    const HIDDEN: &str = "DSH_SUBPROCESS_SYS_TEST_HIDDEN";
    if let Ok(pid) = env::var(HIDDEN) {
        let terminal = TerminalId::of(std::io::stdin()).expect("it is one");
        let pid = Pid::from_raw(pid.parse().expect("a number")).expect("a number");
        assert_eq!(input_waiting(&terminal, pid, &[pid]), InputWaiting::Proven);
        become_nobody();
        let answer = input_waiting(&terminal, pid, &[pid]);
        assert_eq!(answer, InputWaiting::Unknown(Unseen::Hidden));
        return;
    }
    let cat = || execute(&["cat"]);
    let test = name_of(&cat);
    let program = Program::that(cat);
    program.becomes(InputWaiting::Proven);
    let slave = rustix::io::fcntl_dupfd_cloexec(program.slave(), 3).expect("descriptors are left");
    let look = Command::new("unshare")
        .args([
            "--mount",
            "sh",
            "-c",
            "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"",
            "sh",
        ])
        .arg(env::current_exe().expect("a test has a program"))
        .args(["--exact", test])
        .env(HIDDEN, program.pid().as_raw_nonzero().to_string())
        .stdin(Stdio::from(slave))
        .output()
        .expect("unshare starts");
    assert!(look.status.success(), "{look:?}");
    // It was not an empty run.
    assert!(
        String::from_utf8_lossy(&look.stdout).contains("1 passed"),
        "{look:?}"
    );
}
