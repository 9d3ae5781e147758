//! A live tree without a terminal.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use dsh_subprocess::{MayHaveStarted, OutputReader};
use napi::bindgen_prelude::Null;
use napi::{Either, Env, Result};
use napi_derive::napi;

use crate::executor::Promise;
use crate::output::{Reader, Windows};
use crate::pipes::{Control, Pipes, RawOutput};
use crate::tree::{self, Answers, ExitFacts};
use crate::waiting;

/// How long a question for the pid waits for the target to run.
const HANDSHAKE: Duration = Duration::from_secs(1);
/// The pid of what does not run.
const NO_PID: i64 = -1;

/// A live tree.
#[napi]
pub struct Process {
    tree: Rc<dsh_subprocess::Process>,
    pipes: Rc<RefCell<Pipes>>,
    windows: Rc<Windows>,
    answers: Answers,
}

impl Process {
    pub(crate) fn new(mut process: dsh_subprocess::Process, windows: Windows, answers: Answers) -> Self {
        let raw = |reader: Option<_>| reader.map_or(RawOutput::None, RawOutput::Open);
        let pipes = Pipes {
            stdin: process.stdin(),
            stdout: raw(process.stdout()),
            stderr: raw(process.stderr()),
            control: process.control().map_or(Control::None, Control::Open),
        };
        Self {
            tree: Rc::new(process),
            pipes: Rc::new(RefCell::new(pipes)),
            windows: Rc::new(windows),
            answers,
        }
    }

    fn reader(&self, reader: Option<&OutputReader>) -> Either<Reader, Null> {
        match reader {
            Some(reader) => Either::A(Reader::new(
                reader.clone(),
                Rc::clone(self.answers.liveness.executor()),
            )),
            None => Either::B(Null),
        }
    }
}

#[napi]
impl Process {
    /// Returns the target's pid, for which it waits where it must; -1 where there is none.
    #[napi]
    pub fn pid(&self) -> i64 {
        if let Some(pid) = self.tree.pid() {
            return i64::from(pid);
        }
        match waiting::within(HANDSHAKE, self.tree.started()) {
            Some(Ok(started)) => started.pid.map_or(NO_PID, i64::from),
            Some(Err(_)) | None => NO_PID,
        }
    }

    /// Resolves with the pid when the target runs.
    #[napi]
    pub fn started(&self) -> Result<Promise> {
        self.answers.promise(true, self.tree.started(), |started| {
            started.pid.map_or(NO_PID, i64::from)
        })
    }

    /// Resolves with how the target ended, before its streams have.
    #[napi]
    pub fn exited(&self) -> Result<Promise> {
        self.answers.promise(true, self.tree.exited(), ExitFacts::from)
    }

    /// Resolves with how the target ended, once the streams that are the runtime's have.
    #[napi]
    pub fn done(&self, referenced: bool) -> Result<Promise> {
        let (pipes, windows) = (Rc::clone(&self.pipes), Rc::clone(&self.windows));
        let tree = Rc::clone(&self.tree);
        let settled = async move {
            let outcome = tree.done().await;
            match tree.started().await {
                // Nobody ever had the other ends.
                Err(error) if error.started() == MayHaveStarted::No => drop(pipes.take()),
                _ => pipes.borrow_mut().settle(),
            }
            windows.settle();
            outcome
        };
        self.answers.promise(referenced, settled, ExitFacts::from)
    }

    /// Begins the ladder.
    #[napi]
    pub fn terminate(&self) {
        drop(self.tree.terminate());
    }

    /// Resolves when the tree is gone.
    #[napi]
    pub fn tree_exited(&self, referenced: bool) -> Result<Promise> {
        let tree = Rc::clone(&self.tree);
        let gone = async move { tree::gone(&tree).await };
        self.answers.promise(referenced, gone, |()| ())
    }

    /// Tells whether the tree is known to be gone by now.
    #[napi]
    pub fn is_gone(&self, env: Env) -> Result<bool> {
        tree::is_gone(env, &self.tree)
    }

    /// Kills every member at once.
    #[napi]
    pub fn kill(&self) {
        self.answers.world.kill(&self.tree);
    }

    /// Sets whether the tree keeps the event loop alive.
    #[napi]
    pub fn set_referenced(&self, referenced: bool) {
        self.answers.liveness.set(referenced);
    }

    /// Takes the descriptor of the standard input.
    #[napi]
    pub fn take_stdin(&self) -> i32 {
        self.pipes.borrow_mut().take_stdin()
    }

    /// Takes the descriptor of the raw output.
    #[napi]
    pub fn take_stdout(&self) -> i32 {
        self.pipes.borrow_mut().stdout.take()
    }

    /// Takes the descriptor of the raw error output.
    #[napi]
    pub fn take_stderr(&self) -> i32 {
        self.pipes.borrow_mut().stderr.take()
    }

    /// Takes the descriptor of the control pipe.
    #[napi]
    pub fn take_control(&self) -> i32 {
        self.pipes.borrow_mut().take_control()
    }

    /// Closes the control pipe of a tree that is gone, unless it was taken or has something to be read.
    #[napi]
    pub fn close_control_if_empty(&self) {
        self.pipes.borrow_mut().close_control_if_empty();
    }

    /// Returns the reader of the collected output.
    #[napi(getter)]
    pub fn stdout_reader(&self) -> Either<Reader, Null> {
        self.reader(self.tree.collected_stdout())
    }

    /// Returns the reader of the collected error output.
    #[napi(getter)]
    pub fn stderr_reader(&self) -> Either<Reader, Null> {
        self.reader(self.tree.collected_stderr())
    }

    /// Tells who owns the tree.
    #[napi]
    pub fn ownership(&self) -> Result<Promise> {
        self.answers.ownership(&self.tree)
    }

    /// Tells what the tree used.
    #[napi]
    pub fn usage(&self) -> Result<Promise> {
        self.answers.usage(&self.tree)
    }

    /// Lists the live members.
    #[napi]
    pub fn members(&self) -> Result<Promise> {
        self.answers.members(&self.tree)
    }

    /// Lists what will run on.
    #[napi]
    pub fn survivors(&self) -> Result<Promise> {
        self.answers.survivors(&self.tree)
    }

    /// Lists who holds a stream.
    #[napi]
    pub fn holders(&self) -> Result<Promise> {
        self.answers.holders(&self.tree)
    }
}
