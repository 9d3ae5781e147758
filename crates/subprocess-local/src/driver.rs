//! The seam's driver of one local tree.

use std::sync::Arc;

use dsh_subprocess::{Error, Holder, Member, Outcome, Ownership, ProcessDriver, Started, Usage};
use dsh_subprocess_sys::table;
use futures_core::future::BoxFuture;

use crate::owner;
use crate::tree::{NAMED, Tree};

/// What a handle holds.
#[derive(Debug)]
pub(crate) struct LocalProcess(pub(crate) Arc<Tree>);

impl LocalProcess {
    /// Answers from the process table, off the caller's thread.
    fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Tree) -> T + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let tree = Arc::clone(&self.0);
        self.0.machine.blocking.run("observe", move || look(&tree))
    }
}

impl ProcessDriver for LocalProcess {
    fn pid(&self) -> Option<u32> {
        self.0.pid()
    }

    fn started(&self) -> BoxFuture<'static, Result<Started, Error>> {
        let tree = Arc::clone(&self.0);
        Box::pin(async move { tree.started.get().await })
    }

    fn exited(&self) -> BoxFuture<'static, Result<Outcome, Error>> {
        let tree = Arc::clone(&self.0);
        Box::pin(async move { tree.outcome.get().await })
    }

    fn done(&self) -> BoxFuture<'static, Result<Outcome, Error>> {
        let tree = Arc::clone(&self.0);
        Box::pin(async move { tree.done.get().await })
    }

    fn terminate(&self) {
        self.0.terminate();
    }

    fn cut_drain(&self) {
        self.0.cut_drain();
    }

    fn tree_exited(&self) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(Arc::clone(&self.0).exited())
    }

    fn ownership(&self) -> BoxFuture<'static, Result<Ownership, Error>> {
        let ownership = self.0.ownership();
        Box::pin(std::future::ready(Ok(ownership)))
    }

    fn usage(&self) -> BoxFuture<'static, Result<Usage, Error>> {
        let tree = Arc::clone(&self.0);
        Box::pin(async move { Ok(tree.usage().await) })
    }

    fn members(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>> {
        self.look(Tree::members)
    }

    fn ended(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>> {
        let ended = self.0.ended();
        Box::pin(std::future::ready(Ok(ended)))
    }

    fn survivors(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>> {
        self.look(Tree::survivors)
    }

    fn holders(&self) -> BoxFuture<'static, Result<Vec<Holder>, Error>> {
        let (held, members) = self.0.held();
        if held.is_empty() {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        self.look(move |_| {
            // Members first: usually one of them is the holder.
            let itself = table::this_process();
            let others = table::pids().filter(|pid| !members.contains(pid));
            let everyone = members.iter().copied().chain(others).filter(|pid| *pid != itself);
            let mut holders = Vec::new();
            for pid in everyone {
                for &(stream, medium) in &held {
                    if holders.len() < NAMED && medium.is_held_by(pid) {
                        holders.extend(owner::member(pid).map(|member| Holder::new(member, stream)));
                    }
                }
            }
            holders
        })
    }
}
