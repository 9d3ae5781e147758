//! A program whose controlling terminal is a new one.

use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, ioctl_tiocsctty, kill_process, setsid};

use super::super::{InputWaiting, TerminalId, input_waiting};
use crate::linux::pty::{self, Pty};
use crate::linux::table;

/// Far more than anything here takes.
const BOUND: Duration = Duration::from_secs(60);
/// Set for the program itself.
const ROLE: &str = "DSH_SUBPROCESS_SYS_TEST_PROGRAM";

pub(super) struct Program {
    pty: Pty,
    terminal: TerminalId,
    child: Child,
}

impl Program {
    /// Runs the test that calls this once more, as a process of its own, in which this call becomes one of `act`. That is
    /// done by a second thread, unless it executes another program. The three standard descriptors are the terminal.
    pub(super) fn that<F: Fn()>(act: F) -> Self {
        if env::var_os(ROLE).is_some() {
            setsid().expect("it leads no group");
            ioctl_tiocsctty(std::io::stdin()).expect("nobody has the terminal");
            act();
            std::process::exit(0);
        }
        let pty = pty::open(24, 80).expect("a terminal");
        let end = || Stdio::from(pty.slave.try_clone().expect("descriptors are left"));
        let child = Command::new(env::current_exe().expect("a test has a program"))
            .args(["--exact", name_of(&act), "--nocapture"])
            .env(ROLE, "")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the test starts");
        let terminal = TerminalId::of(&pty.slave).expect("it is one");
        Self { pty, terminal, child }
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(super) fn terminal(&self) -> &TerminalId {
        &self.terminal
    }

    pub(super) fn slave(&self) -> impl AsFd {
        &self.pty.slave
    }

    /// Lists the foreground group.
    pub(super) fn members(&self) -> Vec<Pid> {
        let group = pty::foreground_group(&self.pty.master).expect("the terminal is there");
        let group = group.map_or_else(Vec::new, |group| {
            table::pids()
                .filter(|pid| table::group_of(*pid) == Some(group))
                .collect()
        });
        assert!(group.len() < 16, "a test's programs are few: {group:?}");
        group
    }

    pub(super) fn look(&self) -> InputWaiting {
        input_waiting(&self.terminal, self.pid(), &self.members())
    }

    /// Waits until a look says so.
    pub(super) fn becomes(&self, wanted: InputWaiting) {
        self.until(|| self.look() == wanted, || format!("{:?}", self.look()));
    }

    /// Waits until a member of the foreground group sleeps in a system call.
    pub(super) fn sleeps_in(&self, call: libc::c_long) {
        let beginning = format!("{call} ");
        let sleeps = || {
            self.threads()
                .any(|(state, position)| state == 'S' && position.starts_with(&beginning))
        };
        self.until(sleeps, || format!("{:?}", self.threads().collect::<Vec<_>>()));
    }

    /// Stops the top process, and waits until it has stopped.
    pub(super) fn stops(&self) {
        self.signal(Signal::STOP);
        let stopped = || self.threads().all(|(state, _)| state == 'T');
        self.until(stopped, || format!("{:?}", self.threads().collect::<Vec<_>>()));
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is not reaped");
    }

    pub(super) fn types(&self, bytes: &[u8]) {
        let typed = pty::write(&self.pty.master, bytes).expect("the terminal is there");
        assert_eq!(typed, Some(bytes.len()));
    }

    /// The states of the members' threads, and where they are.
    fn threads(&self) -> impl Iterator<Item = (char, String)> {
        let members = self.members().into_iter();
        let tasks =
            members.filter_map(|pid| fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).ok());
        tasks.flatten().filter_map(|task| {
            let task = task.ok()?.path();
            let position = fs::read_to_string(task.join("syscall")).ok()?;
            let stat = fs::read_to_string(task.join("stat")).ok()?;
            let (_, after) = stat.rsplit_once(") ")?;
            Some((after.chars().next()?, position))
        })
    }

    fn until(&self, happened: impl Fn() -> bool, otherwise: impl Fn() -> String) {
        let deadline = Instant::now() + BOUND;
        while !happened() {
            if Instant::now() > deadline {
                let mut printed = [0; 4096];
                let length = rustix::io::read(&self.pty.master, &mut printed).unwrap_or(0);
                let printed = String::from_utf8_lossy(&printed[..length]).into_owned();
                panic!("{}, and it has printed: {printed}", otherwise());
            }
            thread::yield_now();
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let session = Some(self.pid());
        for pid in table::pids().filter(|pid| table::session_of(*pid) == session) {
            // It may have ended.
            let _ = kill_process(pid, Signal::KILL);
        }
        // Before it has made its session.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the name of the test that a closure is in.
pub(super) fn name_of<F>(_: &F) -> &'static str {
    let (_, path) = std::any::type_name::<F>()
        .split_once("::")
        .expect("a crate's name comes first");
    path.split_once("::{{closure}}").expect("it is a closure").0
}
