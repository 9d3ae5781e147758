//! What the tests of this crate share.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dsh_subprocess::{Collect, ErrorOutput, Output, SpawnSpec, Stdin, TerminalSize, TerminalSpec};
use tokio_util::sync::CancellationToken;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A spec with a grace of 3 s and a drain of 1 s, and both streams collected.
pub(crate) fn spec(program: &str) -> SpawnSpec {
    let collected = || {
        Output::Collect(Collect {
            max_bytes: 1000,
            head_bytes: 0,
            spill: None,
        })
    };
    SpawnSpec {
        argv: vec![program.into()],
        cwd: r"C:\build\src".into(),
        env: BTreeMap::new(),
        stdin: Stdin::Ignore,
        stdout: collected(),
        stderr: ErrorOutput::Own(collected()),
        grace: Duration::from_secs(3),
        drain: Duration::from_secs(1),
        control: false,
        cancel: CancellationToken::new(),
    }
}

/// A terminal with a grace of 3 s and a drain of 1 s.
pub(crate) fn terminal_spec(program: &str) -> TerminalSpec {
    TerminalSpec {
        argv: vec![program.into()],
        cwd: r"C:\build\src".into(),
        env: BTreeMap::new(),
        terminal_type: "xterm".into(),
        size: TerminalSize { rows: 24, cols: 80 },
        grace: Duration::from_secs(3),
        drain: Duration::from_secs(1),
        cancel: CancellationToken::new(),
    }
}

/// What a future has by now.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
