//! From the command line to a spec: everything that can be refused before anything is started.

use std::time::Duration;

use dsh_subprocess::{Collect, TerminalSize, TerminalSpec};
use tokio_util::sync::CancellationToken;

use super::options::TermOptions;
use super::record::Recording;
use super::user;
use crate::failure::Failure;
use crate::options::OwnershipOption;
use crate::request::{Subject, overlay};

/// The terminal type where nothing says another: what most programs have been tried with.
const DEFAULT_TYPE: &str = "xterm-256color";

/// The size where nothing says another.
const DEFAULT_SIZE: TerminalSize = TerminalSize { rows: 24, cols: 80 };

/// One session, checked.
pub(super) struct Request {
    /// What to start. Without a program where that is the user's shell.
    pub(super) spec: TerminalSpec,
    /// Whether somebody sits at our standard input.
    pub(super) attached: bool,
    /// What the size follows.
    pub(super) window: Window,
    /// What is kept of the output. `None` where it is shown only.
    pub(super) collect: Option<Collect>,
    pub(super) recording: Option<Recording>,
    /// When to end it.
    pub(super) timeout: Option<Duration>,
    /// What is to own it.
    pub(super) ownership: OwnershipOption,
}

/// Which sides of the terminal were asked for. The others follow the user's terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) rows: Option<u16>,
    pub(super) cols: Option<u16>,
}

impl Window {
    /// Returns the size beside a user's terminal of this size.
    pub(super) fn size(self, of_user: Option<TerminalSize>) -> TerminalSize {
        let follow = of_user.unwrap_or(DEFAULT_SIZE);
        TerminalSize {
            rows: self.rows.unwrap_or(follow.rows),
            cols: self.cols.unwrap_or(follow.cols),
        }
    }
}

impl Request {
    /// Checks the options, and makes the file of a recording, which is removed again if nothing is recorded.
    pub(super) fn new(options: TermOptions, subject: &Subject) -> Result<Self, Failure> {
        let attached = user::is_there();
        let window = Window {
            rows: options.rows,
            cols: options.cols,
        };
        let spec = TerminalSpec {
            argv: subject.argv.clone(),
            cwd: subject.cwd.clone().unwrap_or_default(),
            env: overlay(options.env, options.unset)?,
            terminal_type: options
                .term
                .or_else(|| std::env::var_os("TERM").filter(|own| attached && !own.is_empty()))
                .unwrap_or_else(|| DEFAULT_TYPE.into())
                .into(),
            size: window.size(user::size()),
            grace: options.grace,
            drain: options.drain,
            cancel: CancellationToken::new(),
        };
        if !spec.argv.is_empty() {
            // The provider checks it again; here it is refused before a runtime is made.
            spec.validate().map_err(|error| Failure::from(&error))?;
        }
        Ok(Self {
            spec,
            attached,
            window,
            collect: options.json.then_some(Collect {
                max_bytes: options.max_bytes,
                head_bytes: options.head_bytes,
                spill: None,
            }),
            recording: options.record.map(Recording::create).transpose()?,
            timeout: options.timeout,
            ownership: options.ownership,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_was_not_asked_for_is_that_of_the_users_terminal() {
        let user = Some(TerminalSize { rows: 50, cols: 132 });
        let size = |rows, cols, of_user| Window { rows, cols }.size(of_user).to_string();
        assert_eq!(size(None, None, None), "80x24");
        assert_eq!(size(None, None, user), "132x50");
        assert_eq!(size(Some(7), None, user), "132x7");
        assert_eq!(size(None, Some(9), user), "9x50");
        assert_eq!(size(Some(7), Some(9), None), "9x7");
    }
}
