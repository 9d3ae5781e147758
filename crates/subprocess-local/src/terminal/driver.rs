//! The seam's driver of one local terminal.

use std::sync::Arc;

use bytes::Bytes;
use dsh_subprocess::{
    Error, ErrorKind, Foreground, MayHaveStarted, TerminalDriver, TerminalSignal, TerminalSize,
};
use dsh_subprocess_sys::pty;
use futures_core::future::BoxFuture;

use super::input::Typing;
use super::{Master, foreground, sleep};
use crate::tree::Tree;

/// What a handle holds.
#[derive(Debug)]
pub(super) struct LocalTerminal {
    pub(super) tree: Arc<Tree>,
    pub(super) master: Arc<Master>,
}

impl LocalTerminal {
    /// Refuses work in a process that was forked from the runtime's own.
    fn check<T: Send + 'static>(
        &self,
        operation: &'static str,
    ) -> Result<(), BoxFuture<'static, Result<T, Error>>> {
        self.tree
            .machine
            .check_usable(operation)
            .map_err(|error| Box::pin(std::future::ready(Err(error))) as _)
    }

    /// Answers from the process table, off the caller's thread. A termination waits for the answer.
    fn look<T: Send + 'static>(
        &self,
        operation: &'static str,
        look: impl FnOnce(&Arc<Master>, &Tree) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        if let Err(refused) = self.check(operation) {
            return refused;
        }
        let (tree, master) = (Arc::clone(&self.tree), Arc::clone(&self.master));
        let call = master.calls.begin();
        let answer = self.tree.machine.blocking.run(operation, move || {
            let answer = look(&master, &tree);
            drop(call);
            answer
        });
        Box::pin(async move { answer.await? })
    }
}

impl TerminalDriver for LocalTerminal {
    fn write(&self, data: Bytes) -> BoxFuture<'static, Result<(), Error>> {
        match self.check("write") {
            Ok(()) => Box::pin(Typing::new(Arc::clone(&self.master), data)),
            Err(refused) => refused,
        }
    }

    fn resize(&self, size: TerminalSize) -> BoxFuture<'static, Result<(), Error>> {
        if let Err(refused) = self.check("resize") {
            return refused;
        }
        let resized = self
            .master
            .with("resize", |fd| pty::resize(fd, size.rows, size.cols))
            .and_then(|resized| {
                resized.map_err(|errno| {
                    Error::new(
                        ErrorKind::Os,
                        "resize",
                        format!("the terminal could not be made {size}: {errno}"),
                    )
                    .with_started(MayHaveStarted::Yes)
                })
            });
        Box::pin(std::future::ready(resized))
    }

    fn inspect_foreground(&self) -> BoxFuture<'static, Result<Option<Foreground>, Error>> {
        self.look("inspect", foreground::inspect)
    }

    fn signal_foreground(&self, signal: TerminalSignal) -> BoxFuture<'static, Result<u32, Error>> {
        if let Err(refused) = self.check("signal") {
            return refused;
        }
        // Here and now: it reads nothing that can hang, and an interrupt is not to wait for somebody's look that does.
        let sent = foreground::signal(&self.master, &self.tree, signal);
        Box::pin(std::future::ready(sent))
    }

    fn session_exited(&self) -> BoxFuture<'static, Result<(), Error>> {
        let (tree, master) = (Arc::clone(&self.tree), Arc::clone(&self.master));
        Box::pin(async move {
            Arc::clone(&tree).exited().await?;
            // A look may hang in the kernel, with the memory of a member that is on a file system which does not answer.
            let bound = tree.machine.kill_bound;
            let ended = sleep::or_after(&master.reactor, bound, master.calls.ended()).await;
            ended.ok_or_else(|| {
                let message = format!("the session is gone, and a look at it has not ended for {bound:?}");
                Error::new(ErrorKind::Os, "terminate", message).with_started(MayHaveStarted::Yes)
            })
        })
    }
}
