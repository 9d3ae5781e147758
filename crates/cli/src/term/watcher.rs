//! A small process that puts a terminal's settings back when this one cannot: after `kill -9`, an abort, a fault.
//!
//! It is this program again, under a name of its own. Its standard input is the terminal. Its standard output is a socket,
//! whose other end this process holds: the kernel closes that whatever ends this process, and before anybody is told of the
//! end. It belongs to no terminal, so no key reaches it, and it may set the terminal's settings without being in the
//! foreground (`tcsetattr(3)`: only a process whose controlling terminal it is gets `SIGTTOU`).

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::SigSet;
use rustix::process::setsid;
use rustix::stdio;

use super::settings;
use crate::own_stream;

/// What it is called, which tells it what to do and a reader of the process table what it is.
const NAME: &str = "dsh-subprocess-terminal-settings";

/// What it says when it has seen the settings.
const READY: u8 = b'r';

/// How long it may take to say so.
const START_BOUND: Duration = Duration::from_secs(10);

/// The watcher of the terminal that is our standard input.
pub(super) struct Watcher {
    process: Child,
    /// Closed with this process.
    _alive: UnixStream,
}

impl Watcher {
    /// Starts it. When this returns, it has seen the settings that it will put back.
    ///
    /// # Errors
    ///
    /// It cannot be started, or did not say in time that it has.
    pub(super) fn start() -> io::Result<Self> {
        let (mut alive, theirs) = UnixStream::pair()?;
        // The file that this process runs, also where another one has its name by now.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0(NAME)
            // It must keep no file system busy.
            .current_dir("/")
            .stdout(OwnedFd::from(theirs))
            .stderr(Stdio::null());
        let process = command.spawn()?;
        // The command has their end.
        drop(command);
        alive.set_read_timeout(Some(START_BOUND))?;
        let mut said = [0];
        let ready = alive.read_exact(&mut said);
        let watcher = Self {
            process,
            _alive: alive,
        };
        ready?;
        Ok(watcher)
    }
}

impl Drop for Watcher {
    /// Dismisses it. It does nothing more.
    fn drop(&mut self) {
        // It keeps nothing that it would have to put away, and this ends it even where somebody stopped it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Tells whether this process was started to be one.
pub(crate) fn is_meant(words: &[OsString]) -> bool {
    words.first().is_some_and(|name| name == NAME)
}

/// Is one: waits for the other process's end, and puts the settings back unless somebody has set others.
pub(crate) fn watch() {
    // Whatever is sent to a whole session, group or name is not meant for the last one that can put things right.
    let _ = SigSet::all().thread_block();
    // It leads nothing yet, so it can become a session's leader.
    let _ = setsid();
    let Ok(saved) = settings::read() else { return };
    let mut other = OtherEnd;
    if other.write_all(&[READY]).is_err() {
        return;
    }
    // It says nothing: what can be read is the end.
    let _ = other.read(&mut [0]);
    settings::put_back(&saved);
}

/// The socket that is the watcher's standard output.
struct OtherEnd;

impl Read for OtherEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(stdio::stdout(), buffer)?)
    }
}

impl Write for OtherEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        own_stream::stdout().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
