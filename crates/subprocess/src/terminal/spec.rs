//! What a caller asks for in a terminal. Fully explicit, as a [`SpawnSpec`](crate::SpawnSpec) is.

use std::fmt;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::environment::OverlayNames;
use crate::spec::{invalid, no_nul, validate_common};
use crate::{EnvOverlay, Error, WorldPath, WorldString};

/// One process tree to start on a terminal of its own.
///
/// ```
/// use std::{collections::BTreeMap, time::Duration};
/// use dsh_subprocess::{TerminalSize, TerminalSpec};
/// use tokio_util::sync::CancellationToken;
///
/// let spec = TerminalSpec {
///     argv: vec!["bash".into(), "-i".into()],
///     cwd: "/srv/project".into(),
///     env: BTreeMap::new(),
///     terminal_type: "xterm-256color".into(),
///     size: TerminalSize { rows: 24, cols: 80 },
///     grace: Duration::from_secs(3),
///     drain: Duration::from_secs(1),
///     cancel: CancellationToken::new(),
/// };
/// assert!(spec.validate().is_ok());
/// ```
#[derive(Clone)]
pub struct TerminalSpec {
    /// The program and its arguments, never interpreted by a shell. A program without a slash is searched on the
    /// child's own `PATH`.
    pub argv: Vec<WorldString>,
    /// The working directory, absolute in the world's spelling.
    pub cwd: WorldPath,
    /// Changes to the scrubbed environment. An entry for `TERM` wins over [`terminal_type`](Self::terminal_type), as an
    /// explicit entry always does.
    pub env: EnvOverlay,
    /// What the program is to take the terminal for, as in `xterm-256color` or `dumb` (`term(7)`). It becomes `TERM`.
    pub terminal_type: WorldString,
    /// The size of the window, which is right before the program's first instruction.
    pub size: TerminalSize,
    /// The time between `SIGTERM` and `SIGKILL` when the session is terminated: more than zero, at most
    /// [`MAX_GRACE`](crate::MAX_GRACE). The program has one of its own, which begins when the other members are gone.
    pub grace: Duration,
    /// How long the output goes on, after the program's exit, where another process still holds the terminal open: zero
    /// to [`MAX_GRACE`](crate::MAX_GRACE). [`Process::cut_drain`](crate::Process::cut_drain) of the tree ends it early.
    pub drain: Duration,
    /// Abandons the allocation when cancelled: nothing is left running then. Once the [`Terminal`](crate::Terminal) is
    /// there the token does nothing any more.
    pub cancel: CancellationToken,
}

/// The size of a terminal's window, in characters. Each is 1 to 65,535 (`TIOCSWINSZ` in `ioctl_tty(2)`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Columns.
    pub cols: u16,
}

impl TerminalSize {
    /// Checks that neither is 0, which programs take for "not known" and fill in by themselves.
    ///
    /// # Errors
    ///
    /// [`InvalidSpec`](crate::ErrorKind::InvalidSpec), with the name of the one that is 0.
    pub fn validate(self) -> Result<(), Error> {
        for (name, count) in [("rows", self.rows), ("cols", self.cols)] {
            if count == 0 {
                return Err(invalid(format!("{name} is 0: it must be 1 to 65535")));
            }
        }
        Ok(())
    }
}

impl fmt::Display for TerminalSize {
    /// As in `80x24`: columns first, as terminals are named.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.cols, self.rows)
    }
}

/// What a world's terminals are like before anything is started in them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TerminalEnvironment {
    /// The system, as in `linux`, `macos` or `windows`.
    pub platform: String,
    /// The user's shell: `SHELL` where that is set and not empty, else the one of the user's account.
    pub shell: WorldPath,
}

impl TerminalEnvironment {
    /// States a system and a shell.
    pub fn new(platform: impl Into<String>, shell: impl Into<WorldPath>) -> Self {
        Self {
            platform: platform.into(),
            shell: shell.into(),
        }
    }
}

/// Prints the names of variables without their values, which may be credentials.
impl fmt::Debug for TerminalSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            argv,
            cwd,
            env,
            terminal_type,
            size,
            grace,
            drain,
            cancel,
        } = self;
        f.debug_struct("TerminalSpec")
            .field("argv", argv)
            .field("cwd", cwd)
            .field("env", &OverlayNames(env))
            .field("terminal_type", terminal_type)
            .field("size", size)
            .field("grace", grace)
            .field("drain", drain)
            .field("cancel", cancel)
            .finish()
    }
}

impl TerminalSpec {
    /// Checks what can be known without asking the world.
    ///
    /// Providers call it first thing in `spawn_terminal`. The order is fixed: that of
    /// [`SpawnSpec::validate`](crate::SpawnSpec::validate), then the size, then the terminal type.
    ///
    /// # Errors
    ///
    /// Those of [`SpawnSpec::validate`](crate::SpawnSpec::validate); and
    /// [`InvalidSpec`](crate::ErrorKind::InvalidSpec) for a size of 0, and for a terminal type that is empty or contains a
    /// NUL byte.
    pub fn validate(&self) -> Result<(), Error> {
        validate_common(
            self.grace,
            self.drain,
            &self.cancel,
            &self.argv,
            &self.cwd,
            &self.env,
        )?;
        self.size.validate()?;
        if self.terminal_type.is_empty() {
            return Err(invalid("the terminal type is empty: it becomes TERM"));
        }
        no_nul(self.terminal_type.as_bytes(), || "the terminal type".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, MAX_GRACE};

    fn spec() -> TerminalSpec {
        TerminalSpec {
            argv: vec!["sh".into()],
            cwd: "/".into(),
            env: EnvOverlay::new(),
            terminal_type: "dumb".into(),
            size: TerminalSize { rows: 24, cols: 80 },
            grace: Duration::from_secs(1),
            drain: Duration::ZERO,
            cancel: CancellationToken::new(),
        }
    }

    fn refusal(change: impl FnOnce(&mut TerminalSpec)) -> (ErrorKind, String) {
        let mut spec = spec();
        change(&mut spec);
        let error = spec.validate().expect_err("the spec is wrong");
        (error.kind(), error.to_string())
    }

    #[test]
    fn item_83_a_program_must_be_named_and_the_token_not_cancelled() {
        assert!(spec().validate().is_ok());
        assert!(refusal(|spec| spec.argv.clear()).1.contains("argv is empty"));
        assert!(refusal(|spec| spec.argv[0] = "".into()).1.contains("argv[0]"));
        let (kind, _) = refusal(|spec| spec.cancel.cancel());
        assert_eq!(kind, ErrorKind::Cancelled);
    }

    #[test]
    fn item_83_the_grace_is_validated_as_for_any_tree() {
        for grace in [Duration::ZERO, MAX_GRACE + Duration::from_millis(1)] {
            assert_eq!(refusal(|spec| spec.grace = grace).0, ErrorKind::InvalidSpec);
        }
    }

    #[test]
    fn item_87_no_size_is_zero() {
        assert!(refusal(|spec| spec.size.rows = 0).1.contains("rows is 0"));
        assert!(refusal(|spec| spec.size.cols = 0).1.contains("cols is 0"));
        for size in [1, u16::MAX] {
            let size = TerminalSize {
                rows: size,
                cols: size,
            };
            assert!(size.validate().is_ok());
        }
    }

    #[test]
    fn item_184_the_terminal_type_is_named() {
        assert!(refusal(|spec| spec.terminal_type = "".into()).1.contains("TERM"));
        assert!(
            refusal(|spec| spec.terminal_type = "a\0b".into())
                .1
                .contains("NUL")
        );
    }

    #[test]
    fn no_value_of_a_variable_is_printed() {
        let mut spec = spec();
        spec.env.insert("SET".into(), Some("hunter2".into()));
        let text = format!("{spec:?}");
        assert!(text.contains(r#"{"SET": set}"#), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
