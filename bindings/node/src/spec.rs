//! What JavaScript asks for, as specs of the seam. Shapes were checked on the other side; what the seam checks is left to it.

use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use dsh_subprocess::{
    Collect, Error, ErrorKind, ErrorOutput, Output, SpawnSpec, Spill, SpillLife, Stdin, TerminalSize,
    TerminalSpec, WorldString,
};
use napi::bindgen_prelude::{Buffer, Either};
use napi_derive::napi;
use tokio_util::sync::CancellationToken;

use crate::environment;

/// How much of a stream to retain.
#[napi(object)]
pub struct NativeCollect {
    pub max_bytes: f64,
    pub head_bytes: f64,
    pub spill_bytes: Option<f64>,
    pub spill_life: Option<String>,
}

/// A tree to start.
#[napi(object)]
pub struct NativeSpec {
    pub argv: Vec<String>,
    pub cwd: String,
    pub ambient: String,
    pub env: Vec<(String, Option<String>)>,
    pub stdin: Either<String, Buffer>,
    pub stdout: Either<String, NativeCollect>,
    pub stderr: Either<String, NativeCollect>,
    pub grace_ms: f64,
    pub drain_ms: f64,
    pub control: bool,
}

/// A terminal to open.
#[napi(object)]
pub struct NativeTerminalSpec {
    pub argv: Vec<String>,
    pub cwd: String,
    pub ambient: String,
    pub env: Vec<(String, Option<String>)>,
    pub rows: u16,
    pub cols: u16,
    pub grace_ms: f64,
    pub terminal_type: String,
}

/// Makes the seam's spec of a tree.
pub(crate) fn process(spec: NativeSpec) -> Result<SpawnSpec, Error> {
    Ok(SpawnSpec {
        argv: strings(spec.argv),
        cwd: spec.cwd.into(),
        env: environment::overlay(spec.env),
        stdin: match spec.stdin {
            Either::A(word) => match word.as_str() {
                "ignore" => Stdin::Ignore,
                "pipe" => Stdin::Pipe,
                "inherit" => Stdin::Inherit,
                _ => return Err(unknown("stdin", &word)),
            },
            // JavaScript may write to its memory while the child reads.
            Either::B(data) => Stdin::Data(Bytes::copy_from_slice(&data)),
        },
        stdout: output("stdout", spec.stdout)?,
        stderr: match spec.stderr {
            Either::A(word) if word == "merge" => ErrorOutput::Merge,
            other => ErrorOutput::Own(output("stderr", other)?),
        },
        grace: milliseconds(spec.grace_ms),
        drain: milliseconds(spec.drain_ms),
        control: spec.control,
        cancel: CancellationToken::new(),
    })
}

/// Makes the seam's spec of a terminal. An explicit `TERM` wins over the terminal's type.
pub(crate) fn terminal(spec: NativeTerminalSpec, cancel: CancellationToken) -> TerminalSpec {
    TerminalSpec {
        argv: strings(spec.argv),
        cwd: spec.cwd.into(),
        env: environment::overlay(spec.env),
        terminal_type: spec.terminal_type.into(),
        size: TerminalSize {
            rows: spec.rows,
            cols: spec.cols,
        },
        grace: milliseconds(spec.grace_ms),
        drain: milliseconds(spec.grace_ms),
        cancel,
    }
}

fn strings(strings: Vec<String>) -> Vec<WorldString> {
    strings.into_iter().map(WorldString::from).collect()
}

fn output(stream: &str, output: Either<String, NativeCollect>) -> Result<Output, Error> {
    match output {
        Either::A(word) => match word.as_str() {
            "pipe" => Ok(Output::Pipe),
            "inherit" => Ok(Output::Inherit),
            _ => Err(unknown(stream, &word)),
        },
        Either::B(asked) => Ok(Output::Collect(collect(stream, &asked)?)),
    }
}

fn collect(stream: &str, asked: &NativeCollect) -> Result<Collect, Error> {
    let life = match asked.spill_life.as_deref() {
        None | Some("runtime") => SpillLife::Runtime,
        Some("handle") => SpillLife::Handle,
        Some("keep") => SpillLife::Keep,
        Some(other) => return Err(unknown(stream, other)),
    };
    Ok(Collect {
        max_bytes: usize::try_from(whole(asked.max_bytes)).unwrap_or(usize::MAX),
        head_bytes: usize::try_from(whole(asked.head_bytes)).unwrap_or(usize::MAX),
        spill: asked
            .spill_bytes
            .and_then(|bytes| NonZeroU64::new(whole(bytes)))
            .map(|max_bytes| Spill { max_bytes, life }),
    })
}

/// Returns the whole part of a number; 0 for one below, and for what is no number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}

/// Returns a span of time; a fraction of a millisecond counts, however small it is.
pub(crate) fn milliseconds(milliseconds: f64) -> Duration {
    let span = Duration::try_from_secs_f64(milliseconds / 1_000.0).unwrap_or(Duration::ZERO);
    if span.is_zero() && milliseconds > 0.0 {
        return Duration::from_nanos(1);
    }
    span
}

fn unknown(what: &str, word: &str) -> Error {
    Error::new(
        ErrorKind::InvalidSpec,
        "spawn",
        format!("{what} cannot be {word:?}"),
    )
}
