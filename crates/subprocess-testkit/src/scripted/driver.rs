//! The handle's side of a scripted tree.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake};

use dsh_subprocess::{
    Error, Holder, Member, Outcome, Ownership, PipeSink, PipeSource, ProcessDriver, Started, StreamName,
    Usage,
};
use futures_core::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use super::inner::{Core, Inner, observe};
use super::record::TerminationCause;
use super::tree::Tree;

/// One tree of one world, from a distance.
pub(super) struct ScriptedDriver {
    pub(super) world: Arc<Inner>,
    pub(super) tree: usize,
}

impl ScriptedDriver {
    fn observe<T: Send + 'static>(
        &self,
        mut read: impl FnMut(&Tree) -> Option<T> + Send + 'static,
    ) -> BoxFuture<'static, T> {
        let index = self.tree;
        observe(Arc::clone(&self.world), move |core| read(&core.trees[index]))
    }

    /// Asks the world: the question goes out now, the answer arrives later.
    fn ask<T: Send + 'static>(
        &self,
        answer: impl Fn(&Core, &Tree) -> T + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let index = self.tree;
        let arrival = self.world.with(Core::plan_answer);
        observe(Arc::clone(&self.world), move |core| {
            let tree = &core.trees[index];
            core.has_arrived(arrival).then(|| match tree.unreachable() {
                Some(error) => Err(error),
                None => Ok(answer(core, tree)),
            })
        })
    }
}

impl ProcessDriver for ScriptedDriver {
    fn pid(&self) -> Option<u32> {
        self.world.quietly(|core| core.trees[self.tree].pid())
    }

    fn started(&self) -> BoxFuture<'static, Result<Started, Error>> {
        self.observe(|tree| tree.started.clone())
    }

    fn exited(&self) -> BoxFuture<'static, Result<Outcome, Error>> {
        self.observe(Tree::exited)
    }

    fn done(&self) -> BoxFuture<'static, Result<Outcome, Error>> {
        self.observe(|tree| tree.done.clone())
    }

    fn terminate(&self) {
        self.world.with(|core| {
            core.trees[self.tree].request_termination(TerminationCause::Terminate, &mut core.scene);
        });
    }

    fn cut_drain(&self) {
        self.world
            .with(|core| core.trees[self.tree].cut_drain(&mut core.scene));
    }

    fn tree_exited(&self) -> BoxFuture<'static, Result<(), Error>> {
        self.observe(Tree::exit)
    }

    fn ownership(&self) -> BoxFuture<'static, Result<Ownership, Error>> {
        self.ask(|core, _| core.ownership.clone())
    }

    fn usage(&self) -> BoxFuture<'static, Result<Usage, Error>> {
        self.ask(|_, tree| tree.usage)
    }

    fn members(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>> {
        self.ask(|_, tree| tree.live_members())
    }

    fn ended(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>> {
        self.ask(|_, tree| tree.ended_members())
    }

    fn survivors(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>> {
        self.ask(|_, tree| tree.survivors())
    }

    fn holders(&self) -> BoxFuture<'static, Result<Vec<Holder>, Error>> {
        self.ask(|_, tree| tree.holders.clone())
    }
}

/// Terminates a tree when the token of its spec is cancelled, from whichever thread that happens on.
pub(super) struct CancelWaker {
    pub(super) world: Weak<Inner>,
    pub(super) tree: usize,
    pub(super) token: CancellationToken,
}

impl Wake for CancelWaker {
    fn wake(self: Arc<Self>) {
        if let Some(world) = self.world.upgrade()
            && self.token.is_cancelled()
        {
            world.with(|core| {
                let tree = &mut core.trees[self.tree];
                if !tree.is_published() {
                    tree.request_termination(TerminationCause::Cancel, &mut core.scene);
                }
            });
        }
    }
}

/// The caller's end of a raw output, or of a terminal's.
pub(super) struct ScriptedOutput {
    pub(super) world: Arc<Inner>,
    pub(super) tree: usize,
    pub(super) stream: StreamName,
}

impl AsyncRead for ScriptedOutput {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.world.quietly(|core| {
            core.trees[self.tree]
                .stream(self.stream)
                .poll_read(buffer, context.waker())
        });
        if read.is_ready() {
            self.world.resume(self.tree);
        }
        read
    }
}

impl PipeSource for ScriptedOutput {}

impl Drop for ScriptedOutput {
    fn drop(&mut self) {
        self.world
            .quietly(|core| core.trees[self.tree].stream(self.stream).reader_dropped());
        self.world.resume(self.tree);
    }
}

/// The caller's end of standard input.
pub(super) struct ScriptedInput {
    pub(super) world: Arc<Inner>,
    pub(super) tree: usize,
}

impl ScriptedInput {
    fn close(&self) {
        self.world.quietly(|core| core.trees[self.tree].input.close());
        self.world.resume(self.tree);
    }
}

impl AsyncWrite for ScriptedInput {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self
            .world
            .quietly(|core| core.trees[self.tree].input.poll_write(bytes, context.waker()));
        if written.is_ready() {
            self.world.resume(self.tree);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}

impl PipeSink for ScriptedInput {}

impl Drop for ScriptedInput {
    fn drop(&mut self) {
        self.close();
    }
}
