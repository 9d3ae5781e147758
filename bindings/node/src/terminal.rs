//! A live terminal.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use dsh_subprocess::{Error, ErrorKind, InputWaiting, TerminalOutput, TerminalSignal, TerminalSize};
use napi::bindgen_prelude::{Buffer, Either, Null};
use napi::{Env, Result};
use napi_derive::napi;
use tokio::io::{AsyncRead, ReadBuf};

use crate::executor::Promise;
use crate::tree::{self, Answers, ExitFacts};

/// The most that one read gives.
const READ_BYTES: usize = 64 * 1024;
/// Room that the last piece of a read is given: a terminal hands out no more at once.
const PIECE_BYTES: usize = 4 * 1024;

/// Who has a terminal.
#[napi(object)]
pub struct Foreground {
    pub process_group_id: u32,
    pub input_waiting: String,
}

/// A live terminal.
#[napi]
pub struct Terminal {
    session: Rc<dsh_subprocess::Terminal>,
    output: Rc<RefCell<Output>>,
    answers: Answers,
}

impl Terminal {
    pub(crate) fn new(mut terminal: dsh_subprocess::Terminal, answers: Answers) -> Self {
        let output = Rc::new(RefCell::new(Output {
            open: terminal.output(),
            reading: None,
        }));
        Self {
            session: Rc::new(terminal),
            output,
            answers,
        }
    }

    fn tree(&self) -> &dsh_subprocess::Process {
        self.session.tree()
    }
}

#[napi]
impl Terminal {
    /// Returns the program's pid.
    #[napi]
    pub fn pid(&self) -> i64 {
        self.session.pid().map_or(-1, i64::from)
    }

    /// Resolves with what was printed, or with null at the end.
    #[napi]
    pub fn read(&self) -> Result<Promise> {
        let output = Rc::clone(&self.output);
        self.answers.promise(true, Read { output }, |bytes| match bytes {
            Some(bytes) => Either::A(Buffer::from(bytes)),
            None => Either::B(Null),
        })
    }

    /// Gives the output up.
    #[napi]
    pub fn close_output(&self) {
        // A read that waits is over, too: it would keep the event loop alive for ever.
        if let Some(reading) = self.output.take().reading {
            reading.wake();
        }
    }

    /// Types bytes.
    #[napi]
    pub fn write(&self, data: Buffer) -> Result<Promise> {
        // JavaScript may write to its memory meanwhile.
        let data = bytes::Bytes::copy_from_slice(&data);
        self.answers.promise(true, self.session.write(data), |()| ())
    }

    /// Changes the size of the window.
    #[napi]
    pub fn resize(&self, cols: u16, rows: u16) -> Result<Promise> {
        let size = TerminalSize { rows, cols };
        self.answers.promise(true, self.session.resize(size), |()| ())
    }

    /// Looks who has the terminal.
    #[napi]
    pub fn inspect_foreground(&self) -> Result<Promise> {
        let looked = self.session.inspect_foreground();
        self.answers.promise(true, looked, |foreground| match foreground {
            Some(foreground) => Either::A(Foreground {
                process_group_id: foreground.process_group_id,
                input_waiting: match foreground.input {
                    InputWaiting::Proven => "waiting",
                    InputWaiting::NotWaiting => "not-waiting",
                    InputWaiting::Unknown(_) => "unknown",
                }
                .to_owned(),
            }),
            None => Either::B(Null),
        })
    }

    /// Signals the foreground group.
    #[napi]
    pub fn signal_foreground(&self, signal: String) -> Result<Promise> {
        let named = TerminalSignal::from_name(&signal).ok_or_else(|| {
            let message = format!("a terminal's foreground group is not sent {signal:?}");
            Error::new(ErrorKind::InvalidSpec, "signal", message)
        });
        let signalled = named.map(|signal| self.session.signal_foreground(signal));
        self.answers.promise(
            true,
            async move { signalled?.await },
            std::convert::identity::<u32>,
        )
    }

    /// Resolves with how the program ended.
    #[napi]
    pub fn done(&self, referenced: bool) -> Result<Promise> {
        self.answers
            .promise(referenced, self.session.done(), ExitFacts::from)
    }

    /// Begins the ladder.
    #[napi]
    pub fn terminate(&self) {
        drop(self.session.terminate());
    }

    /// Terminates, and resolves when the session is gone.
    #[napi]
    pub fn terminate_session(&self) -> Result<Promise> {
        self.answers.promise(true, self.session.terminate(), |()| ())
    }

    /// Resolves when the session is gone.
    #[napi]
    pub fn tree_exited(&self, referenced: bool) -> Result<Promise> {
        let session = Rc::clone(&self.session);
        let gone = async move { tree::gone(session.tree()).await };
        self.answers.promise(referenced, gone, |()| ())
    }

    /// Tells whether the session is known to be gone by now.
    #[napi]
    pub fn is_gone(&self, env: Env) -> Result<bool> {
        tree::is_gone(env, self.tree())
    }

    /// Kills every member at once.
    #[napi]
    pub fn kill(&self) {
        self.answers.world.kill(self.tree());
    }

    /// Sets whether the terminal keeps the event loop alive.
    #[napi]
    pub fn set_referenced(&self, referenced: bool) {
        self.answers.liveness.set(referenced);
    }

    /// Tells who owns the tree.
    #[napi]
    pub fn ownership(&self) -> Result<Promise> {
        self.answers.ownership(self.tree())
    }

    /// Tells what the tree used.
    #[napi]
    pub fn usage(&self) -> Result<Promise> {
        self.answers.usage(self.tree())
    }

    /// Lists the live members.
    #[napi]
    pub fn members(&self) -> Result<Promise> {
        self.answers.members(self.tree())
    }

    /// Lists what will run on.
    #[napi]
    pub fn survivors(&self) -> Result<Promise> {
        self.answers.survivors(self.tree())
    }

    /// Lists who holds the terminal.
    #[napi]
    pub fn holders(&self) -> Result<Promise> {
        self.answers.holders(self.tree())
    }
}

/// What the programs print.
#[derive(Default)]
struct Output {
    /// `None` once it is given up.
    open: Option<TerminalOutput>,
    /// Wakes the read that waits for more.
    reading: Option<Waker>,
}

/// One read: what is there by now, at most [`READ_BYTES`], and at least a byte unless the output is over.
struct Read {
    output: Rc<RefCell<Output>>,
}

impl Future for Read {
    type Output = std::result::Result<Option<Vec<u8>>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut held = self.output.borrow_mut();
        let Output { open, reading } = &mut *held;
        let Some(output) = open else {
            return Poll::Ready(Ok(None));
        };
        let mut read = Vec::new();
        while read.len() + PIECE_BYTES <= READ_BYTES {
            let mut piece = [0; PIECE_BYTES];
            let mut buffer = ReadBuf::new(&mut piece);
            let polled = Pin::new(&mut *output).poll_read(context, &mut buffer);
            let printed = buffer.filled();
            match polled {
                Poll::Pending if read.is_empty() => {
                    *reading = Some(context.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(Ok(())) if !printed.is_empty() => read.extend_from_slice(printed),
                Poll::Ready(Err(error)) if read.is_empty() => {
                    let message = format!("the terminal cannot be read: {error}");
                    return Poll::Ready(Err(Error::new(ErrorKind::Os, "read", message).with_source(error)));
                }
                // What is there comes first; the end, or the error, is met again by the next read.
                _ => break,
            }
        }
        Poll::Ready(Ok((!read.is_empty()).then_some(read)))
    }
}
