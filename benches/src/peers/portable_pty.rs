//! portable-pty: blocking calls, a thread per terminal that reads it and passes on what it has read.

use std::io::{Read as _, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, ensure};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::finding::Name;
use crate::floor::CHUNK;
use crate::terminal::{COLS, Conversation, ROWS, Terminals};

/// The crate's terminals for this system.
pub(crate) struct PortablePty;

/// One of them, with its thread.
pub(crate) struct PortableTerminal {
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    printed: Receiver<Vec<u8>>,
    reader: JoinHandle<std::io::Result<()>>,
}

impl PortablePty {
    pub(crate) const NAME: Name = Name::peer("portable-pty");

    /// Starts a program on a terminal, and a thread that reads until nobody holds the other side any more.
    pub(crate) fn start(argv: &[impl AsRef<str>]) -> Result<PortableTerminal> {
        let pair = native_pty_system().openpty(PtySize {
            rows: ROWS,
            cols: COLS,
            pixel_width: 0,
            pixel_height: 0,
        })?;
        let mut command = CommandBuilder::new(argv[0].as_ref());
        command.args(argv[1..].iter().map(AsRef::as_ref));
        command.cwd("/");
        let child = pair.slave.spawn_command(command)?;
        drop(pair.slave);
        let mut terminal = pair.master.try_clone_reader()?;
        let (sender, printed) = channel();
        let reader = thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            while let length @ 1.. = terminal.read(&mut buffer)? {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
            Ok(())
        });
        Ok(PortableTerminal {
            master: pair.master,
            child,
            printed,
            reader,
        })
    }
}

impl Terminals for PortablePty {
    fn run(&mut self, argv: &[String], _buffer: &mut [u8]) -> Result<u64> {
        let mut terminal = Self::start(argv)?;
        let total = terminal.printed.iter().map(|chunk| chunk.len() as u64).sum();
        let read = terminal.reader.join();
        read.expect("the reader does not panic")?;
        let status = terminal.child.wait()?;
        ensure!(status.success(), "the child ended with {status:?}");
        Ok(total)
    }

    fn converse(self: Box<Self>, argv: &[String]) -> Result<Box<dyn Conversation>> {
        let terminal = Self::start(argv)?;
        let keys = terminal.master.take_writer()?;
        Ok(Box::new(PortableConversation { keys, terminal }))
    }
}

struct PortableConversation {
    keys: Box<dyn Write + Send>,
    terminal: PortableTerminal,
}

impl Conversation for PortableConversation {
    fn hear(&mut self) -> Result<u8> {
        let chunk = self.terminal.printed.recv().context("the program has ended")?;
        ensure!(chunk.len() == 1, "the program printed {chunk:?}");
        Ok(chunk[0])
    }

    fn exchange(&mut self, typed: u8) -> Result<u8> {
        self.keys.write_all(&[typed])?;
        self.hear()
    }
}
