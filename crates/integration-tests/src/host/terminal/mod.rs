//! Scenarios of a host with terminals.

mod forked;
mod hungry;
mod many;
mod mortal;
mod run;

pub(super) use forked::forked;
pub(super) use hungry::{hungry, starved};
pub(super) use many::{descriptors, orphans};
pub(super) use mortal::mortal;
pub(super) use run::run;

use std::error::Error;

use dsh_subprocess::{Terminal, TerminalOutput, TerminalSize, TerminalSpec};
use pollster::block_on;
use tokio::io::AsyncReadExt;

/// A terminal with the host's usual grace and drain.
fn spec(argv: &[&str]) -> TerminalSpec {
    let ordinary = super::spec(argv);
    TerminalSpec {
        argv: ordinary.argv,
        cwd: ordinary.cwd,
        env: ordinary.env,
        terminal_type: "dumb".into(),
        size: TerminalSize { rows: 24, cols: 80 },
        grace: ordinary.grace,
        drain: ordinary.drain,
        cancel: ordinary.cancel,
    }
}

fn words(argv: &[String]) -> Vec<&str> {
    argv.iter().map(String::as_str).collect()
}

/// What a terminal's programs print, and what was read of it so far.
struct Screen {
    output: TerminalOutput,
    read: Vec<u8>,
}

impl Screen {
    fn of(terminal: &mut Terminal) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            output: terminal.output().ok_or("the output was taken before")?,
            read: Vec::new(),
        })
    }

    /// Reads until so many lines begin with this word.
    fn wait_for(&mut self, word: &str, lines: usize) -> Result<(), Box<dyn Error>> {
        while self.lines_of(word) < lines {
            if block_on(self.output.read_buf(&mut self.read))? == 0 {
                let read = String::from_utf8_lossy(&self.read);
                return Err(format!("the output ended without `{word}`: {read:?}").into());
            }
        }
        Ok(())
    }

    /// Counts the lines that begin with a word, and are complete.
    fn lines_of(&self, word: &str) -> usize {
        let text = String::from_utf8_lossy(&self.read);
        let complete = text.rfind('\n').map_or("", |end| &text[..=end]);
        complete
            .lines()
            .filter(|line| line.split(' ').next() == Some(word))
            .count()
    }

    /// Reads to the end, and returns all that was printed.
    fn rest(mut self) -> std::io::Result<String> {
        block_on(self.output.read_to_end(&mut self.read))?;
        Ok(String::from_utf8_lossy(&self.read).into_owned())
    }
}
