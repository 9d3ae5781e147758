//! Reading a background command bit by bit.

use dsh_subprocess::{Error, OutputReader, SpillState, TextCursor, TextRead};

/// What is new of a background command's output.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BackgroundRead {
    /// New standard output, then, on a line of its own, `[stderr]` and new error output where there is some.
    pub delta: String,
    /// Bytes of either stream that left memory before they were read.
    pub lost: u64,
    /// Standard output's spill, where the whole of it is.
    pub stdout_spill: SpillState,
    /// Error output's spill.
    pub stderr_spill: SpillState,
}

/// How far a command's output was read.
#[derive(Debug)]
pub(crate) struct Reading {
    stdout: TextCursor,
    stderr: TextCursor,
    failure_told: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            stdout: TextCursor::new(0),
            stderr: TextCursor::new(0),
            failure_told: false,
        }
    }
}

impl Reading {
    /// Reads on. `failure` is why the command never ran, or why its end is not known.
    pub(crate) fn read(
        &mut self,
        stdout: &OutputReader,
        stderr: Option<&OutputReader>,
        failure: Option<&Error>,
    ) -> BackgroundRead {
        let TextRead { text, gap, .. } = self.stdout.read(stdout);
        let (mut delta, mut lost) = (text, gap);
        if let Some(stderr) = stderr {
            let TextRead { text, gap, .. } = self.stderr.read(stderr);
            lost += gap;
            append_errors(&mut delta, &text);
        }
        if let Some(error) = failure
            && !self.failure_told
        {
            self.failure_told = true;
            let verb = match error.started() {
                dsh_subprocess::MayHaveStarted::No => "spawn failed",
                _ => "failed",
            };
            append_errors(&mut delta, &format!("{verb}: {error}"));
        }
        BackgroundRead {
            delta,
            lost,
            stdout_spill: stdout.spill(),
            stderr_spill: stderr.map(OutputReader::spill).unwrap_or_default(),
        }
    }
}

/// Puts error output below standard output.
fn append_errors(delta: &mut String, errors: &str) {
    if errors.is_empty() {
        return;
    }
    if !delta.is_empty() && !delta.ends_with('\n') {
        delta.push('\n');
    }
    delta.push_str("[stderr]\n");
    delta.push_str(errors);
}
