//! One session on a terminal of its own: through pipes, and attached to a terminal that somebody sits at.

mod attached;
mod headless;
mod jobs;
mod programs;
mod recording;
mod refused;
mod restored;
mod tmux;
mod typed;

use std::fs::File;
use std::process::Command;

use crate::fixture::{Case, Finished, finish, start};

impl Case {
    /// A session that is typed nothing.
    fn term(&self, options: &[&str], command: &[&str]) -> Command {
        self.command([&["term"], options, &["--"], command].concat())
    }

    /// The same, to its end.
    #[track_caller]
    fn term_to_end(&self, options: &[&str], command: &[&str]) -> Finished {
        finish(start(&mut self.term(options, command)))
    }

    /// A script on a terminal, to its end.
    #[track_caller]
    fn term_sh(&self, options: &[&str], script: &str) -> Finished {
        self.term_to_end(options, &["/bin/sh", "-c", script])
    }

    /// A script on a terminal, at which these keys are typed.
    #[track_caller]
    fn term_typed(&self, options: &[&str], script: &str, keys: impl AsRef<[u8]>) -> Finished {
        let keys = File::open(self.file("keys", keys)).expect("it was just written");
        let mut command = self.term(options, &["/bin/sh", "-c", script]);
        finish(start(command.stdin(keys)))
    }
}
