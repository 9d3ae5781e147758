//! pty-process: a terminal that tokio reads and writes, or one of blocking calls, and a child of tokio's or the standard
//! library's.

use std::io::{Read as _, Write as _};

use anyhow::{Context as _, Result};
use pty_process::{Pty, Size, blocking};
use rustix::io::Errno;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{one_thread, require_success};
use crate::finding::Name;
use crate::terminal::{COLS, Conversation, ROWS, Terminals};

/// Returns how much was read. That nobody holds the other side any more is an error to the crate, and the end here.
fn length(read: std::io::Result<usize>) -> std::io::Result<usize> {
    match read {
        Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(0),
        read => read,
    }
}

/// Its terminals under tokio, on the caller's thread.
pub(crate) struct PtyProcess(Runtime);

impl PtyProcess {
    pub(crate) const NAME: Name = Name::peer("pty-process");

    pub(crate) fn new() -> Result<Self> {
        Ok(Self(one_thread()?))
    }

    /// Starts a program. Tokio must be there, although nothing is awaited.
    fn start(argv: &[impl AsRef<str>]) -> Result<(Pty, Child)> {
        let (pty, other_side) = pty_process::open()?;
        pty.resize(Size::new(ROWS, COLS))?;
        let child = pty_process::Command::new(argv[0].as_ref())
            .args(argv[1..].iter().map(AsRef::as_ref))
            .current_dir("/")
            .spawn(other_side)?;
        Ok((pty, child))
    }

    /// Starts programs, awaits in a task each what they print, and calls `idle` on this thread while none prints. They are
    /// ended then.
    pub(crate) fn await_many<T>(
        &self,
        argv: &[&str],
        count: usize,
        idle: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let programs: Vec<(Pty, Child)> = {
            let _inside = self.0.enter();
            (0..count).map(|_| Self::start(argv)).collect::<Result<_>>()?
        };
        let stop = CancellationToken::new();
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                self.0.block_on(async {
                    let mut reading = JoinSet::new();
                    for (mut pty, mut child) in programs {
                        reading.spawn(async move {
                            let mut buffer = [0; 1024];
                            while length(pty.read(&mut buffer).await)? > 0 {}
                            child.wait().await
                        });
                    }
                    stop.cancelled().await;
                });
            });
            let answer = idle();
            stop.cancel();
            reading.join().expect("the reading thread does not panic");
            answer
        })
    }
}

impl Terminals for PtyProcess {
    fn run(&mut self, argv: &[String], buffer: &mut [u8]) -> Result<u64> {
        self.0.block_on(async {
            let (mut pty, mut child) = Self::start(argv)?;
            let mut total = 0;
            while let length @ 1.. = length(pty.read(buffer).await)? {
                total += length as u64;
            }
            require_success(child.wait().await?)?;
            Ok(total)
        })
    }

    fn converse(self: Box<Self>, argv: &[String]) -> Result<Box<dyn Conversation>> {
        let (pty, child) = self.0.block_on(async { Self::start(argv) })?;
        Ok(Box::new(TokioConversation {
            pty,
            _child: child,
            executor: self.0,
        }))
    }
}

struct TokioConversation {
    pty: Pty,
    /// Kept, or tokio would look for its end at each wake-up.
    _child: Child,
    executor: Runtime,
}

impl Conversation for TokioConversation {
    fn hear(&mut self) -> Result<u8> {
        let heard = self.executor.block_on(self.pty.read_u8());
        heard.context("nothing is heard")
    }

    fn exchange(&mut self, typed: u8) -> Result<u8> {
        let exchanged = self.executor.block_on(async {
            self.pty.write_all(&[typed]).await?;
            self.pty.read_u8().await
        });
        exchanged.context("nothing is heard")
    }
}

/// Its terminals with blocking calls.
pub(crate) struct BlockingPtyProcess;

impl BlockingPtyProcess {
    pub(crate) const NAME: Name = Name::peer("pty-process::blocking");

    fn start(argv: &[String]) -> Result<(blocking::Pty, std::process::Child)> {
        let (pty, other_side) = blocking::open()?;
        pty.resize(Size::new(ROWS, COLS))?;
        let child = blocking::Command::new(&argv[0])
            .args(&argv[1..])
            .current_dir("/")
            .spawn(other_side)?;
        Ok((pty, child))
    }
}

impl Terminals for BlockingPtyProcess {
    fn run(&mut self, argv: &[String], buffer: &mut [u8]) -> Result<u64> {
        let (mut pty, mut child) = Self::start(argv)?;
        let mut total = 0;
        while let length @ 1.. = length(pty.read(buffer))? {
            total += length as u64;
        }
        require_success(child.wait()?)?;
        Ok(total)
    }

    fn converse(self: Box<Self>, argv: &[String]) -> Result<Box<dyn Conversation>> {
        // The child needs no handle: it ends when its terminal does.
        let (pty, _) = Self::start(argv)?;
        Ok(Box::new(BlockingConversation(pty)))
    }
}

struct BlockingConversation(blocking::Pty);

impl Conversation for BlockingConversation {
    fn hear(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.0.read_exact(&mut byte).context("nothing is heard")?;
        Ok(byte[0])
    }

    fn exchange(&mut self, typed: u8) -> Result<u8> {
        self.0.write_all(&[typed])?;
        self.hear()
    }
}
