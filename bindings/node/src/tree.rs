//! What every tree answers, with or without a terminal.

use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use dsh_subprocess::{Error, Outcome};
use dsh_subprocess_local::LocalRuntime;
use napi::bindgen_prelude::ToNapiValue;
use napi::{Env, Result};
use napi_derive::napi;
use tokio_util::sync::CancellationToken;

use crate::error;
use crate::executor::{Liveness, Promise};

/// A process of a tree.
#[napi(object)]
pub struct Member {
    pub pid: Option<u32>,
    pub command: String,
    pub uncertain: bool,
}

impl From<&dsh_subprocess::Member> for Member {
    fn from(member: &dsh_subprocess::Member) -> Self {
        Self {
            pid: member.pid,
            command: member.command.clone(),
            uncertain: member.uncertain,
        }
    }
}

/// Who still holds a stream.
#[napi(object)]
pub struct Holder {
    pub member: Member,
    pub stream: String,
}

/// How a target ended.
#[napi(object, use_nullable = true)]
pub struct ExitFacts {
    pub exit_code: Option<u32>,
    pub signal: Option<String>,
}

impl From<Outcome> for ExitFacts {
    fn from(outcome: Outcome) -> Self {
        Self {
            exit_code: outcome.code(),
            signal: outcome.signal().map(|signal| signal.as_str().to_owned()),
        }
    }
}

/// Which mechanism owns a tree.
#[napi(object)]
pub struct Ownership {
    pub mechanism: String,
    pub weaknesses: Vec<String>,
}

impl From<dsh_subprocess::Ownership> for Ownership {
    fn from(ownership: dsh_subprocess::Ownership) -> Self {
        Self {
            mechanism: ownership.mechanism.to_string(),
            weaknesses: ownership.weaknesses,
        }
    }
}

/// What a tree used.
#[napi(object)]
pub struct Usage {
    pub user_ms: Option<f64>,
    pub system_ms: Option<f64>,
    pub peak_memory_bytes: Option<f64>,
}

impl From<dsh_subprocess::Usage> for Usage {
    fn from(usage: dsh_subprocess::Usage) -> Self {
        let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1_000.0;
        Self {
            user_ms: usage.user.map(milliseconds),
            system_ms: usage.system.map(milliseconds),
            peak_memory_bytes: usage.peak_memory_bytes.map(count),
        }
    }
}

/// Returns a count as JavaScript has it.
#[expect(clippy::cast_precision_loss, reason = "no count of bytes reaches 2^53")]
pub(crate) fn count(number: u64) -> f64 {
    number as f64
}

/// The answers of one tree.
pub(crate) struct Answers {
    /// A tree does not end because nobody refers to its runtime any more: what can be reached owns it.
    pub(crate) world: LocalRuntime,
    pub(crate) liveness: Rc<Liveness>,
}

impl Answers {
    /// Makes a promise of an answer that keeps the event loop alive where `referenced`.
    pub(crate) fn promise<T, J>(
        &self,
        referenced: bool,
        answer: impl Future<Output = std::result::Result<T, Error>> + 'static,
        into: impl FnOnce(T) -> J + 'static,
    ) -> Result<Promise>
    where
        J: ToNapiValue + 'static,
    {
        let vigil = referenced.then(|| self.liveness.vigil());
        let world = self.world.clone();
        self.liveness.executor().promise(vigil, async move {
            let answer = answer.await;
            drop(world);
            answer.map(into)
        })
    }

    pub(crate) fn ownership(&self, tree: &dsh_subprocess::Process) -> Result<Promise> {
        self.promise(true, tree.ownership(), Ownership::from)
    }

    pub(crate) fn usage(&self, tree: &dsh_subprocess::Process) -> Result<Promise> {
        self.promise(true, tree.usage(), Usage::from)
    }

    pub(crate) fn members(&self, tree: &dsh_subprocess::Process) -> Result<Promise> {
        self.promise(true, tree.members(), members)
    }

    pub(crate) fn survivors(&self, tree: &dsh_subprocess::Process) -> Result<Promise> {
        self.promise(true, tree.survivors(), members)
    }

    pub(crate) fn holders(&self, tree: &dsh_subprocess::Process) -> Result<Promise> {
        self.promise(true, tree.holders(), |holders: Vec<dsh_subprocess::Holder>| {
            holders
                .iter()
                .map(|holder| Holder {
                    member: Member::from(&holder.member),
                    stream: holder.stream.to_string(),
                })
                .collect::<Vec<_>>()
        })
    }
}

/// Resolves when the whole tree is gone.
pub(crate) async fn gone(tree: &dsh_subprocess::Process) -> std::result::Result<(), Error> {
    let never = CancellationToken::new();
    tree.wait_for_exit(&never).await.map(drop)
}

/// Tells whether the whole tree is known to be gone by now.
pub(crate) fn is_gone(env: Env, tree: &dsh_subprocess::Process) -> Result<bool> {
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    // The tree is asked first.
    let gone = pin!(tree.wait_for_exit(&cancelled));
    match gone.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(gone)) => Ok(gone),
        Poll::Ready(Err(failure)) => Err(error::thrown(env, &failure)),
        Poll::Pending => Ok(false),
    }
}

fn members(members: Vec<dsh_subprocess::Member>) -> Vec<Member> {
    members.iter().map(Member::from).collect()
}
