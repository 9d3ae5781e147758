//! A host without a world: it starts wardens and reads what they say.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dsh_subprocess_sys::kernel::Kernel;
use dsh_subprocess_sys::pidfd::{self, Pid, Signal};
use dsh_subprocess_sys::pipe;
use dsh_subprocess_sys::spawn::{self, Descriptor, Launch, Program, Session, Started};
use dsh_subprocess_sys::warden::{self, Link};
use dsh_subprocess_warden::PROGRAM;
use dsh_subprocess_warden::protocol::{
    Exited, FromRuntime, FromTree, PACKET, Packet, ToRuntime, ToTree, VERSION,
};

/// How long anything may take on a machine that is overwhelmed. What takes as long has failed.
pub(crate) const BOUND: Duration = Duration::from_secs(20);
/// A grace that no test waits for.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// A grace that is waited for, and in which a member surely says that it was asked.
pub(crate) const ENOUGH: Duration = Duration::from_secs(2);
/// A grace that is over at once.
pub(crate) const SHORT: Duration = Duration::from_millis(20);

/// What a member does that acts on signals and goes on. A shell waits for a child without missing a signal; the child is none
/// that a signal of the tests would end.
pub(crate) const WAIT: &str = "(trap '' TERM USR1; exec sleep 1000) & while :; do wait $!; done";
/// What a member does that ends when it is asked. It is asked before its child is, which is younger, and which says when it
/// is ready: a child that has not executed anything yet may lose a signal to the traps of its parent.
pub(crate) const WAIT_ONCE: &str = "sh -c 'echo ready; exec sleep 1000' & wait $!";

/// A process that the wardens take for the host. Dropping it ends it.
pub(crate) struct StandIn(Child);

impl StandIn {
    pub(crate) fn start() -> Self {
        let child = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn()
            .expect("sleep starts");
        Self(child)
    }

    pub(crate) fn open(&self) -> OwnedFd {
        open(self.0.id())
    }

    /// Ends it as nothing can be caught.
    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it can be waited for");
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A runtime warden.
pub(crate) struct Runtime {
    pub(crate) link: Link,
    pub(crate) host: StandIn,
}

/// Starts the program, which has said nothing yet.
pub(crate) fn start_program() -> Link {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("dsh-warden");
    fs::write(&path, PROGRAM).expect("the program can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it can be made executable");
    let path = path.to_str().expect("an ordinary name").as_bytes();
    let (link, theirs) = Link::pair().expect("a connection");
    let null = pipe::null_device().expect("the null device");
    let deadline = Instant::now() + BOUND;
    loop {
        let program = Program::new([b"dsh-warden".as_slice()], [], [path], b"/");
        let launch = Launch {
            stdio: [Descriptor::From(null.as_fd()); 3],
            control: Some(theirs.as_fd()),
            session: Session::Own,
            cgroup: None,
            join_cgroup: None,
        };
        match spawn::start(program, launch, Kernel::get(), BOUND).expect("a child can be made") {
            Started::Running(child) => {
                let end = pidfd::wait(&child.pidfd, pidfd::Wait::Block).expect("it is our child");
                let status = end.expect("a blocking wait ends with one").status;
                assert_eq!(
                    status,
                    pidfd::Status::Exited(0),
                    "the first process leaves at once"
                );
                return link;
            }
            // Another test's fork may still have the file open for writing (ETXTBSY).
            Started::Failed(failure, _) if failure.errno == 26 && Instant::now() < deadline => {}
            other => panic!("the program runs: {other:?}"),
        }
    }
}

impl Runtime {
    /// Starts one, with the grace that counts where there is no other.
    pub(crate) fn start(grace: Duration) -> Self {
        let link = start_program();
        let host = StandIn::start();
        let hello = ToRuntime::Hello {
            version: VERSION,
            grace: milliseconds(grace),
        };
        send_to_runtime(&link, hello, &[host.open().as_fd()]);
        let ready = received(&link, |bytes, _| FromRuntime::decode(bytes).expect("an answer"));
        assert!(
            matches!(ready, Some(FromRuntime::Ready { version: VERSION, .. })),
            "{ready:?}"
        );
        Self { link, host }
    }

    pub(crate) fn send(&self, message: ToRuntime<'_>, descriptors: &[BorrowedFd<'_>]) {
        send_to_runtime(&self.link, message, descriptors);
    }

    /// Makes a tree warden, which is idle.
    pub(crate) fn tree(&self) -> Tree {
        let (link, theirs) = Link::pair().expect("a connection");
        self.send(ToRuntime::Tree, &[theirs.as_fd()]);
        drop(theirs);
        let tree = Tree { link, warden: 0 };
        match tree.next() {
            Said::Idle(warden) => Tree { warden, ..tree },
            other => panic!("a tree warden begins idle: {other:?}"),
        }
    }
}

/// Waits until the other side hangs up, whatever it says before.
pub(crate) fn hangs_up(link: &Link) {
    while received(link, |_, _| ()).is_some() {}
}

pub(crate) fn send_to_runtime(link: &Link, message: ToRuntime<'_>, descriptors: &[BorrowedFd<'_>]) {
    let mut packet = Packet::new();
    message.encode(&mut packet).expect("it fits");
    link.send(&packet, descriptors).expect("it can be sent");
}

/// Receives a packet; `None` is a hang-up.
fn received<T>(link: &Link, read: impl FnOnce(&[u8], Vec<OwnedFd>) -> T) -> Option<T> {
    let (mut buffer, mut descriptors) = (vec![0; PACKET], Vec::new());
    let deadline = Instant::now() + BOUND;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(link.wait(left).expect("a wait"), "the warden says nothing");
        match link.receive(&mut buffer, &mut descriptors).expect("a packet") {
            None => {}
            Some(0) => return None,
            Some(length) => return Some(read(&buffer[..length], descriptors)),
        }
    }
}

/// What a tree warden says.
#[derive(Debug)]
pub(crate) enum Said {
    Idle(u32),
    Cloned,
    Running(u32, OwnedFd),
    Failed {
        step: u32,
        errno: i32,
        candidate: u32,
        sample: Vec<u8>,
    },
    Exited(Exited),
    Gone {
        user: u64,
    },
    HungUp,
}

/// A tree warden.
pub(crate) struct Tree {
    pub(crate) link: Link,
    pub(crate) warden: u32,
}

/// A target, and what it writes.
pub(crate) struct Target {
    pub(crate) pid: u32,
    pub(crate) pidfd: OwnedFd,
    output: BufReader<File>,
}

impl Target {
    /// Reads a line that a member has written.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the output can be read");
        assert!(line.ends_with('\n'), "the output ends: {line:?}");
        line.trim_end().to_owned()
    }

    /// Reads a line that is the number of a process, and opens that.
    pub(crate) fn member(&mut self) -> OwnedFd {
        open(self.number())
    }

    pub(crate) fn number(&mut self) -> u32 {
        let line = self.line();
        line.parse()
            .unwrap_or_else(|_| panic!("a process's number: {line:?}"))
    }

    /// Reads what is left, until nobody can write any more.
    pub(crate) fn rest(mut self) -> String {
        let mut rest = String::new();
        self.output
            .read_to_string(&mut rest)
            .expect("the output can be read");
        rest
    }
}

impl Tree {
    /// Returns the runtime warden, which is its parent.
    pub(crate) fn runtime(&self) -> u32 {
        parent_of(self.warden)
    }

    pub(crate) fn send(&self, message: &ToTree<'_>) {
        let mut packet = Packet::new();
        message.encode(&mut packet).expect("it fits");
        self.link.send(&packet, &[]).expect("it can be sent");
    }

    pub(crate) fn next(&self) -> Said {
        received(&self.link, |bytes, descriptors| {
            let mut descriptors = descriptors.into_iter();
            let mut pidfd = || descriptors.next().expect("a pidfd");
            match FromTree::decode(bytes).expect("a message") {
                FromTree::Idle { pid } => Said::Idle(pid),
                FromTree::Cloned { .. } => Said::Cloned,
                FromTree::Running { pid, session_errno } => {
                    assert_eq!(session_errno, 0);
                    Said::Running(pid, pidfd())
                }
                FromTree::Failed(failed) => Said::Failed {
                    step: failed.step,
                    errno: failed.errno,
                    candidate: failed.candidate,
                    sample: failed.sample.to_vec(),
                },
                FromTree::Exited(exited) => Said::Exited(exited),
                FromTree::Gone { user, .. } => Said::Gone { user },
            }
        })
        .unwrap_or(Said::HungUp)
    }

    /// Asks for a program; its output goes to the pipe that is returned.
    pub(crate) fn launch(&self, program: &Program, grace: Duration) -> File {
        let pipe = pipe::pipe().expect("a pipe");
        let null = pipe::null_device().expect("the null device");
        let launch = Launch {
            stdio: [
                Descriptor::From(null.as_fd()),
                Descriptor::From(pipe.writer.as_fd()),
                Descriptor::Inherit,
            ],
            control: None,
            session: Session::Own,
            cgroup: None,
            join_cgroup: None,
        };
        warden::launch(&self.link, program, launch, grace).expect("the launch can be sent");
        File::from(pipe.reader)
    }

    /// Runs a shell script.
    pub(crate) fn run(&self, script: &str, grace: Duration) -> Target {
        self.run_program(&shell(script), grace)
    }

    pub(crate) fn run_program(&self, program: &Program, grace: Duration) -> Target {
        let output = self.launch(program, grace);
        match self.next() {
            Said::Running(pid, pidfd) => Target {
                pid,
                pidfd,
                output: BufReader::new(output),
            },
            other => panic!("the program runs: {other:?}"),
        }
    }

    /// Waits for the target's end.
    pub(crate) fn exited(&self) -> Exited {
        match self.next() {
            Said::Exited(exited) => exited,
            other => panic!("the target ends: {other:?}"),
        }
    }

    /// Waits until the tree is gone, and the warden is ready for the next.
    pub(crate) fn gone(&self) {
        match self.next() {
            Said::Gone { .. } => {}
            other => panic!("the tree is gone: {other:?}"),
        }
        match self.next() {
            Said::Idle(pid) => assert_eq!(pid, self.warden),
            other => panic!("the warden is idle: {other:?}"),
        }
    }

    /// Ends the tree, whoever is in it.
    pub(crate) fn kill(&self) {
        self.send(&ToTree::Kill);
        while !matches!(self.next(), Said::Idle(_)) {}
    }
}

pub(crate) fn shell(script: &str) -> Program {
    Program::new(
        [b"sh".as_slice(), b"-c", script.as_bytes()],
        [(b"PATH".as_slice(), b"/usr/bin:/bin".as_slice())],
        [b"/bin/sh".as_slice()],
        b"/",
    )
}

pub(crate) fn open(pid: u32) -> OwnedFd {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process's number");
    pidfd::open(pid).expect("the process is there")
}

/// Waits until a process has ended.
pub(crate) fn ends(process: &OwnedFd) {
    let mut polled = [rustix::event::PollFd::new(process, rustix::event::PollFlags::IN)];
    let bound = rustix::event::Timespec::try_from(BOUND).expect("a span");
    let ready = rustix::event::poll(&mut polled, Some(&bound)).expect("a poll");
    assert_eq!(ready, 1, "the process lives on");
}

pub(crate) fn runs(process: &OwnedFd) -> bool {
    pidfd::is_running(process)
}

pub(crate) fn kill(pid: u32) {
    pidfd::send(open(pid), Signal::KILL).expect("it can be killed");
}

pub(crate) fn parent_of(pid: u32) -> u32 {
    let line = fs::read(format!("/proc/{pid}/stat")).expect("the process is there");
    let entry = dsh_subprocess_sys::table::parse_entry(&line).expect("a line of the table");
    u32::try_from(entry.parent).expect("a process's number")
}

pub(crate) fn milliseconds(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).expect("a short span")
}

/// Writes a line into a FIFO that a member is waiting to read.
pub(crate) fn tell(fifo: &std::path::Path) {
    File::options()
        .write(true)
        .open(fifo)
        .and_then(|mut fifo| fifo.write_all(b"go\n"))
        .expect("the member reads");
}

/// Waits until a process is stopped.
pub(crate) fn is_stopped(pid: u32) {
    let deadline = Instant::now() + BOUND;
    loop {
        let line = fs::read(format!("/proc/{pid}/stat")).expect("the process is there");
        let entry = dsh_subprocess_sys::table::parse_entry(&line).expect("a line of the table");
        if entry.state == b'T' {
            return;
        }
        assert!(Instant::now() < deadline, "it does not stop");
        std::thread::yield_now();
    }
}

/// Becomes chains of processes, of which each makes the next, in a session of its own, and ends. Each chain says when it has
/// come far. It does not come back.
pub(crate) fn fork_chains(width: usize) {
    use fork::Fork;
    use rustix::process::{getpid, kill_process, setsid};
    const FAR: usize = 100;
    // The quickest end, without what a program does at its exit.
    let end = || kill_process(getpid(), Signal::KILL);
    for _ in 0..width {
        if let Ok(Fork::Child) = fork::fork() {
            let mut generation = 0;
            while let Ok(Fork::Child) = fork::fork() {
                // The chain goes on even if it has one already.
                let _ = setsid();
                generation += 1;
                if generation == FAR {
                    // Not through the library's buffer, whose lock another thread may have held at the first fork.
                    let _ = rustix::io::write(std::io::stdout(), b"far\n");
                }
            }
            let _ = end();
        }
    }
    let _ = end();
}
