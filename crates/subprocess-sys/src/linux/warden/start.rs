//! Starting a runtime warden.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dsh_subprocess_warden::protocol::{FromRuntime, PACKET, Packet, SHORT, ToRuntime, VERSION};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid};

use super::super::kernel::Kernel;
use super::super::spawn::{self, Descriptor, ExecFailure, FailedStep, Launch, Program, Session, Started};
use super::super::steps::{Step, step};
use super::super::{pidfd, pipe};
use super::image::{self, PrivateFile};
use super::link::{Link, wait_readable};

/// How long a warden may take until it is ready. It is a few milliseconds, unless the machine is overwhelmed.
const BOUND: Duration = Duration::from_secs(5);

/// Files that are written in one directory until one can be executed: another thread's fork holds a copy of a descriptor
/// that is open for writing until its exec, and the file cannot be executed meanwhile.
const ATTEMPTS: usize = 4;

/// Why there is no warden.
#[derive(Debug, thiserror::Error)]
pub enum StartWardenError {
    /// The host's own resources did not suffice.
    #[error("{what} could not be made for a warden")]
    Resource {
        /// What was missing.
        what: &'static str,
        /// Why.
        #[source]
        source: Errno,
    },
    /// No child could be made.
    #[error("no process could be made for a warden")]
    Start(#[source] spawn::StartError),
    /// The program can be executed neither from memory nor from any directory for temporary files.
    #[error(
        "the warden's program could not be executed, neither from memory nor from a directory for temporary files"
    )]
    Execute(#[source] io::Error),
    /// The child did not get as far as the program.
    #[error("the child that was to become a warden failed before it could execute the program")]
    Prepare(#[source] Errno),
    /// The program ended at once.
    #[error("the warden ended before it was ready: {0:?}")]
    Ended(pidfd::Status),
    /// It hung up.
    #[error("the warden hung up before it was ready")]
    HungUp,
    /// It did not answer in time.
    #[error("the warden was not ready within 5 s")]
    Silent,
    /// The connection failed.
    #[error("the connection with the warden failed")]
    Connection(#[source] Errno),
    /// It answered something else than that it is ready.
    #[error("the warden's first answer is none that this version of the protocol knows")]
    Answer,
}

/// Starts a runtime warden and waits until it is ready: from then on it sees the end of this process. Returns the connection
/// with it, and its number.
///
/// `session` is [`Session::Own`]; or, for a runtime whose children stay in the host's session, anything else, and the warden
/// stays there too, in a process group of its own. `grace` is the time between `SIGTERM` and `SIGKILL`, should the host end,
/// for what has none of its own; it is cut off at about 49 days.
///
/// The warden is no child of this process: a host that waits for all its children does not wait for it. But where orphans
/// come to this process ([`orphans`](crate::orphans)) the warden is one of them, and to be reaped. It is executed from
/// memory, or, where that is forbidden, from a private file that is gone when this returns.
///
/// # Errors
///
/// When there is no warden. Nothing is left of it then.
pub fn start(kernel: Kernel, session: Session, grace: Duration) -> Result<(Link, Pid), StartWardenError> {
    start_from(kernel, session, grace, &image::bases())
}

/// As [`start`], with the directories that may hold a private file.
fn start_from(
    kernel: Kernel,
    session: Session,
    grace: Duration,
    bases: &[PathBuf],
) -> Result<(Link, Pid), StartWardenError> {
    step(Step::WardenNext);
    let deadline = Instant::now() + BOUND;
    let resource = |what| move |source| StartWardenError::Resource { what, source };
    let (link, theirs) = Link::pair().map_err(resource("a connection"))?;
    let host = pidfd::open(getpid()).map_err(resource("a descriptor of this process"))?;
    let null = pipe::null_device().map_err(resource("the null device"))?;
    // Before there is anybody to read it: that saves the warden a wait.
    say_hello(&link, &host, grace)?;
    step(Step::HelloSent);

    let launch = Launch {
        stdio: [Descriptor::From(null.as_fd()); 3],
        control: Some(theirs.as_fd()),
        session: match session {
            Session::Own | Session::OwnTerminal => Session::Own,
            Session::Host | Session::OwnGroup => Session::OwnGroup,
        },
        cgroup: None,
        join_cgroup: None,
    };
    let child = execute(kernel, launch, bases)?;
    drop(theirs);
    step(Step::WardenRuns);
    let ready = reap(&child.pidfd, deadline).and_then(|()| wait_until_ready(&link, deadline));
    if ready.is_err() {
        // The warden itself ends with the connection.
        if pidfd::send(&child.pidfd, Signal::KILL).is_ok() {
            let _ = wait_readable(&child.pidfd, BOUND);
            let _ = pidfd::wait(&child.pidfd, pidfd::Wait::Reap);
        }
    }
    step(Step::WardenReady);
    ready.map(|pid| (link, pid))
}

fn say_hello(link: &Link, host: &OwnedFd, grace: Duration) -> Result<(), StartWardenError> {
    let hello = ToRuntime::Hello {
        version: VERSION,
        grace: u32::try_from(grace.as_millis()).unwrap_or(u32::MAX),
    };
    let mut packet = Packet::<SHORT>::with_room();
    hello.encode(&mut packet).map_err(|_| StartWardenError::Answer)?;
    link.send(&packet, &[host.as_fd()])
        .map_err(StartWardenError::Connection)
}

/// Runs the program, from wherever it may be run.
fn execute(
    kernel: Kernel,
    launch: Launch<'_>,
    bases: &[PathBuf],
) -> Result<spawn::Running, StartWardenError> {
    let mut refused = if kernel.memfd_exec {
        match from_memory(kernel, launch)? {
            Ok(child) => return Ok(child),
            Err(errno) => errno,
        }
    } else {
        Errno::NOSYS.into()
    };
    for base in bases {
        for _ in 0..ATTEMPTS {
            let file = match PrivateFile::create(base) {
                Ok(file) => file,
                Err(error) => {
                    refused = error;
                    break;
                }
            };
            match run(program(launch.session, file.path()), launch, kernel)? {
                Ok(child) => return Ok(child),
                Err(errno) => refused = errno.into(),
            }
            if refused.raw_os_error() != Some(libc::ETXTBSY) {
                break;
            }
        }
    }
    Err(StartWardenError::Execute(refused))
}

/// Runs the program from memory, or tells why that is refused.
fn from_memory(
    kernel: Kernel,
    launch: Launch<'_>,
) -> Result<Result<spawn::Running, io::Error>, StartWardenError> {
    let file: BorrowedFd<'static> = match image::in_memory() {
        Ok(file) => file,
        // Too little of something is no policy, and a file on disk would need it too.
        Err(source @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
            return Err(StartWardenError::Resource {
                what: "a file in memory",
                source,
            });
        }
        Err(refused) => return Ok(Err(refused.into())),
    };
    let program = program(launch.session, b"/proc/self/exe").with_file(file);
    run(program, launch, kernel).map(|ran| ran.map_err(Into::into))
}

fn program(session: Session, path: &[u8]) -> Program {
    let group = (session != Session::Own).then_some(b"group".as_slice());
    let arguments = [b"dsh-warden".as_slice()].into_iter().chain(group);
    Program::new(arguments, [], [path], b"/")
}

/// Runs a program, or tells why it cannot be executed.
fn run(
    program: Program,
    launch: Launch<'_>,
    kernel: Kernel,
) -> Result<Result<spawn::Running, Errno>, StartWardenError> {
    match spawn::start(program, launch, kernel, BOUND).map_err(StartWardenError::Start)? {
        Started::Running(child) => Ok(Ok(child)),
        Started::Failed(ExecFailure { step, errno, .. }, _) => {
            let errno = Errno::from_raw_os_error(errno);
            match step {
                FailedStep::Exec | FailedStep::ExecShell => Ok(Err(errno)),
                _ => Err(StartWardenError::Prepare(errno)),
            }
        }
        Started::Pending(child) => {
            let _ = pidfd::send(child.pidfd(), Signal::KILL);
            Err(StartWardenError::Silent)
        }
    }
}

/// Reaps the first process of the warden, which ends as soon as it has made the second.
fn reap(first: &OwnedFd, deadline: Instant) -> Result<(), StartWardenError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if !wait_readable(first, left).map_err(StartWardenError::Connection)? {
        return Err(StartWardenError::Silent);
    }
    match pidfd::wait(first, pidfd::Wait::Reap) {
        Ok(Some(end)) if end.status != pidfd::Status::Exited(0) => Err(StartWardenError::Ended(end.status)),
        // Where somebody else in this process reaped it, the answer will tell.
        _ => Ok(()),
    }
}

fn wait_until_ready(link: &Link, deadline: Instant) -> Result<Pid, StartWardenError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if !link.wait(left).map_err(StartWardenError::Connection)? {
        return Err(StartWardenError::Silent);
    }
    let mut packet = vec![0; PACKET];
    let received = link
        .receive(&mut packet, &mut Vec::new())
        .map_err(StartWardenError::Connection)?;
    let length = match received {
        Some(0) => return Err(StartWardenError::HungUp),
        Some(length) => length,
        None => return Err(StartWardenError::Silent),
    };
    match FromRuntime::decode(&packet[..length]) {
        Ok(FromRuntime::Ready {
            version: VERSION,
            pid,
        }) => i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(StartWardenError::Answer),
        _ => Err(StartWardenError::Answer),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::file;
    use super::*;

    const GRACE: Duration = Duration::from_secs(1);

    fn ends_with_the_connection(kernel: Kernel, session: Session) {
        let (link, _) = start(kernel, session, GRACE).expect("a warden");
        let mut goodbye = Packet::new();
        ToRuntime::Goodbye.encode(&mut goodbye).expect("it fits");
        link.send(&goodbye, &[]).expect("the warden reads");
        // All that it needs to know: it hangs up when it ends.
        rustix::net::shutdown(&link, rustix::net::Shutdown::Write).expect("the link is connected");
        assert_eq!(link.wait(BOUND), Ok(true));
        let received = link.receive(&mut vec![0; PACKET], &mut Vec::new());
        assert_eq!(received, Ok(Some(0)));
    }

    #[test]
    fn a_warden_runs_from_memory() {
        ends_with_the_connection(Kernel::get(), Session::Own);
    }

    #[test]
    fn a_warden_stays_in_the_session_where_that_is_asked_for() {
        ends_with_the_connection(Kernel::get(), Session::Host);
    }

    fn without_memory() -> Kernel {
        Kernel {
            memfd_exec: false,
            ..Kernel::get()
        }
    }

    #[test]
    fn a_warden_runs_from_a_private_file_that_is_gone_afterwards() {
        let name = format!("dsh-subprocess-test-{}", std::process::id());
        let base = std::env::temp_dir().join(name);
        file::make_private_directory(&base).expect("a directory");
        // Where nothing can be written the next one serves.
        let bases = [PathBuf::from("/proc"), base.clone()];
        let started = start_from(without_memory(), Session::Own, GRACE, &bases);
        // Refused unless it is empty.
        std::fs::remove_dir(&base).expect("the warden has left nothing");
        started.expect("a warden");
    }

    #[test]
    fn without_any_place_to_run_from_there_is_no_warden() {
        let refused = start_from(without_memory(), Session::Own, GRACE, &[PathBuf::from("/proc")]);
        assert!(
            matches!(refused, Err(StartWardenError::Execute(_))),
            "{refused:?}"
        );
    }

    #[test]
    fn the_first_process_of_a_warden_is_reaped() {
        let (link, pid) = start(Kernel::get(), Session::Own, GRACE).expect("a warden");
        let children = super::super::super::table::descendants(getpid());
        let name = super::super::super::table::short_name(pid);
        drop(link);
        assert_eq!(children, Ok(Vec::new()));
        assert_eq!(name.as_deref(), Some("[dsh-warden]"));
    }
}
