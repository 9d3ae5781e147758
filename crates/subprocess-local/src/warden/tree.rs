//! The connection to a tree warden: what is said to it, and what is heard.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::pidfd::{End, Pid};
use dsh_subprocess_sys::spawn::{ExecFailure, Launch, Program, StartError};
use dsh_subprocess_sys::steps::{Step, step};
use dsh_subprocess_sys::warden::protocol::{FromTree, Packet, SHORT, ToTree};
use dsh_subprocess_sys::warden::{self, LaunchError, Link, NotStarted};

/// Bytes of the longest packet that a tree warden sends.
const HEARD: usize = 512;

/// A tree warden, and whether it has said its name.
#[derive(Debug)]
pub(crate) struct TreeWarden {
    link: Link,
    /// Counts the runtime wardens: which one made it.
    pub(super) generation: u64,
    pid: Option<Pid>,
    /// It has not said yet, or not since its last launch, that it is idle: it would take a launch for nonsense.
    busy: bool,
    /// It has ended without reading what was said to it last.
    left_unread: bool,
}

/// What a tree warden has said.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The target is on its way to its program.
    Cloned { pid: Pid },
    /// The target runs.
    Running { pid: Pid, session_error: Option<Errno> },
    /// The target never reached its program.
    Failed(ExecFailure),
    /// There never was a target.
    NoChild(StartError),
    /// The target has ended.
    Exited(End),
    /// No member is left.
    Gone { user: Duration, system: Duration },
    /// The warden is gone, or says what none would say.
    Lost,
}

/// What became of a launch within its bound.
#[derive(Debug)]
pub(crate) enum Launched {
    /// The target runs.
    Running { pid: Pid, session_error: Option<Errno> },
    /// It is still on its way.
    Pending { pid: Pid },
    /// It never reached its program.
    Failed(ExecFailure),
    /// There never was one.
    NoChild(StartError),
    /// The warden had ended before it could hear of the launch.
    Deaf,
    /// The warden ended meanwhile, and whether the target ran is not known.
    Lost,
    /// It does not answer.
    Silent {
        /// Whether it was told what to start, and may come to that yet.
        told: bool,
    },
}

impl TreeWarden {
    pub(super) fn new(link: Link, generation: u64) -> Self {
        Self {
            link,
            generation,
            pid: None,
            busy: true,
            left_unread: false,
        }
    }

    /// Returns its pid, once it has said it: before it says anything of a target.
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.pid
    }

    /// Has a target started, and waits until it runs, but no longer than until `deadline`. `grace` is what its tree gets
    /// should this process end.
    ///
    /// # Errors
    ///
    /// When the warden could not be told. Nothing was started then.
    pub(crate) fn launch(
        &mut self,
        program: &Program,
        launch: Launch<'_>,
        grace: Duration,
        deadline: Instant,
    ) -> Result<Launched, LaunchError> {
        while self.busy {
            // It is about to say so: it is being forked, or has said that a tree is gone or a launch has failed, and tidies up.
            match self.hear() {
                Some(Heard::Lost) => return Ok(Launched::Deaf),
                Some(_) => {}
                None if !self.busy => {}
                None => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() || !self.link.wait(left).unwrap_or(false) {
                        return Ok(Launched::Silent { told: false });
                    }
                }
            }
        }
        step(Step::LaunchNext);
        match warden::launch(&self.link, program, launch, grace) {
            Ok(()) => self.busy = true,
            Err(LaunchError::Send(Errno::PIPE | Errno::CONNRESET)) => return Ok(Launched::Deaf),
            Err(error) => return Err(error),
        }
        step(Step::LaunchSent);
        loop {
            match self.hear() {
                Some(Heard::Running { pid, session_error }) => {
                    step(Step::RunningHeard);
                    return Ok(Launched::Running { pid, session_error });
                }
                Some(Heard::Cloned { pid }) => return Ok(Launched::Pending { pid }),
                Some(Heard::Failed(failure)) => return Ok(Launched::Failed(failure)),
                Some(Heard::NoChild(error)) => return Ok(Launched::NoChild(error)),
                Some(Heard::Lost) if self.left_unread => return Ok(Launched::Deaf),
                Some(Heard::Lost | Heard::Exited(_) | Heard::Gone { .. }) => return Ok(Launched::Lost),
                None => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.link.wait(left).unwrap_or(false) {
                return Ok(Launched::Silent { told: true });
            }
        }
    }

    /// Says something. The packets are few and the socket's buffer is large, so a full one is a warden that was stopped.
    pub(crate) fn say(&self, message: &ToTree<'_>) -> Result<(), Errno> {
        let mut packet = Packet::<SHORT>::with_room();
        message.encode(&mut packet).map_err(|_| Errno::MSGSIZE)?;
        self.link.send(&packet, &[])
    }

    /// Returns the next thing said that matters. `None` when there is nothing to hear now.
    pub(crate) fn hear(&mut self) -> Option<Heard> {
        loop {
            let mut bytes = [0; HEARD];
            // The target's descriptor comes too, and there may be no number left for it: its end is told anyway.
            let length = match self.link.receive_bytes(&mut bytes) {
                Ok(None) => return None,
                Err(Errno::CONNRESET) => {
                    self.left_unread = true;
                    continue;
                }
                Ok(Some(0)) | Err(_) => return Some(Heard::Lost),
                Ok(Some(length)) => length,
            };
            let Ok(message) = FromTree::decode(&bytes[..length]) else {
                return Some(Heard::Lost);
            };
            if let FromTree::Idle { pid } = message {
                self.pid = number(pid);
                self.busy = false;
                continue;
            }
            return Some(meaning(message).unwrap_or(Heard::Lost));
        }
    }
}

impl AsFd for TreeWarden {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

fn number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// `None` for what a warden would not say.
fn meaning(message: FromTree<'_>) -> Option<Heard> {
    Some(match message {
        FromTree::Idle { .. } => return None,
        FromTree::Cloned { pid } => Heard::Cloned { pid: number(pid)? },
        FromTree::Running { pid, session_errno } => Heard::Running {
            pid: number(pid)?,
            session_error: (session_errno != 0).then(|| Errno::from_raw_os_error(session_errno)),
        },
        FromTree::Failed(failed) => match warden::not_started(&failed) {
            NotStarted::Start(error) => Heard::NoChild(error),
            NotStarted::Exec(failure) => Heard::Failed(failure),
        },
        FromTree::Exited(exited) => Heard::Exited(warden::end(&exited)),
        FromTree::Gone { user, system } => Heard::Gone {
            user: Duration::from_micros(user),
            system: Duration::from_micros(system),
        },
    })
}
