//! Hosts of their own: a row whose subject is the host's memory or its threads is measured in a fresh process.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::helper;

/// A process of this program that answers in lines.
pub(crate) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Host {
    /// Starts one.
    pub(crate) fn start(call: &str, arguments: &[&str]) -> Result<Self> {
        let words = helper::command(call, arguments)?;
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("the host for {call} cannot be started"))?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().context("standard output is a pipe")?);
        Ok(Self { child, stdin, stdout })
    }

    /// Asks for something.
    pub(crate) fn ask(&mut self, line: &str) -> Result<()> {
        let stdin = self
            .stdin
            .as_mut()
            .context("the host was told that nothing follows")?;
        writeln!(stdin, "{line}").context("the host does not listen")
    }

    /// Waits for the next line.
    pub(crate) fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(
            self.stdout.read_line(&mut line)? > 0,
            "the host said nothing more"
        );
        Ok(line.trim_end().to_owned())
    }

    /// Waits for its successful end.
    fn end(mut self) -> Result<()> {
        let status = self.wait()?;
        ensure!(status.success(), "the host ended with {status}");
        Ok(())
    }

    /// Says that nothing follows, at which it ends, and waits for that.
    fn wait(&mut self) -> std::io::Result<ExitStatus> {
        drop(self.stdin.take());
        self.child.wait()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Whoever wants to know how it ended has called `end`.
        let _ = self.wait();
    }
}

/// Runs a host to its end and returns the numbers of its only line.
pub(crate) fn numbers(call: &str, arguments: &[&str]) -> Result<Vec<f64>> {
    let mut host = Host::start(call, arguments)?;
    let line = host.answer()?;
    host.end()?;
    let numbers = line
        .split(' ')
        .map(|number| number.parse().with_context(|| format!("the host said {line:?}")));
    numbers.collect()
}

/// Returns a field of this process's `/proc/self/status`, in KiB.
pub(crate) fn memory_kib(field: &str) -> Result<f64> {
    kib_of("/proc/self/status", field)
}

/// Returns a field of a file in the format of `/proc/meminfo`, in KiB.
pub(crate) fn kib_of(path: &str, field: &str) -> Result<f64> {
    let text = fs::read_to_string(path).with_context(|| format!("{path} cannot be read"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let value = line
        .with_context(|| format!("{path} has no {field}"))?
        .trim()
        .trim_end_matches(" kB");
    value
        .parse()
        .with_context(|| format!("{field} in {path} is {value:?}"))
}
