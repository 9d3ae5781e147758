//! The handle's side of a scripted terminal.

use std::sync::Arc;

use bytes::Bytes;
use dsh_subprocess::{Error, Foreground, ProcessDriver, TerminalDriver, TerminalSignal, TerminalSize};
use futures_core::future::BoxFuture;

use super::super::driver::ScriptedDriver;
use super::super::inner::{Core, Inner, Scene, observe};
use super::super::tree::Tree;

impl ScriptedDriver {
    /// Asks the terminal. What comes of it is known at once and told when the answer arrives, or when the session begins to
    /// be terminated: nothing is in flight then.
    fn call<T: Clone + Send + 'static>(
        &self,
        operation: &'static str,
        answer: impl FnOnce(&mut Tree, &mut Scene) -> Result<T, Error>,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let index = self.tree;
        let (arrival, result) = self.world.with(|core| {
            let tree = &mut core.trees[index];
            let result = match tree.unreachable().or_else(|| tree.refusal(operation)) {
                Some(error) => Err(error),
                None => answer(tree, &mut core.scene),
            };
            (core.plan_answer(), result)
        });
        observe(Arc::clone(&self.world), move |core| {
            let ended = core.trees[index].refusal(operation).is_some();
            (core.has_arrived(arrival) || ended).then(|| result.clone())
        })
    }
}

impl TerminalDriver for ScriptedDriver {
    fn write(&self, data: Bytes) -> BoxFuture<'static, Result<(), Error>> {
        let index = self.tree;
        let begun = self.world.with(|core| {
            let tree = &mut core.trees[index];
            if let Some(error) = tree.unreachable() {
                return Err(error);
            }
            if let Some(error) = tree.refusal("write") {
                return Err(error.with_written(0));
            }
            let (id, written) = tree.type_in(data, &mut core.scene);
            Ok((id, written, core.plan_answer()))
        });
        let (id, written, arrival) = match begun {
            Ok(begun) => begun,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let unfinished = Unfinished {
            world: Arc::clone(&self.world),
            tree: index,
            id,
        };
        let answer = observe(Arc::clone(&self.world), move |core| {
            let result = written.get()?;
            (result.is_err() || core.has_arrived(arrival)).then(|| result.clone())
        });
        Box::pin(async move {
            let _unfinished = unfinished;
            answer.await
        })
    }

    fn resize(&self, size: TerminalSize) -> BoxFuture<'static, Result<(), Error>> {
        self.call("resize", move |tree, scene| {
            tree.resize(size, scene);
            Ok(())
        })
    }

    fn inspect_foreground(&self) -> BoxFuture<'static, Result<Option<Foreground>, Error>> {
        let index = self.tree;
        let arrival = self.world.with(Core::plan_answer);
        observe(Arc::clone(&self.world), move |core| {
            let tree = &core.trees[index];
            if let Some(error) = tree.refusal("inspect") {
                return Some(Err(error));
            }
            core.has_arrived(arrival)
                .then(|| tree.unreachable().map_or_else(|| Ok(tree.foreground()), Err))
        })
    }

    fn signal_foreground(&self, signal: TerminalSignal) -> BoxFuture<'static, Result<u32, Error>> {
        self.call("signal", move |tree, scene| tree.signal_foreground(signal, scene))
    }

    fn session_exited(&self) -> BoxFuture<'static, Result<(), Error>> {
        self.tree_exited()
    }
}

/// A write that somebody waits for. Its drop stops the typing.
struct Unfinished {
    world: Arc<Inner>,
    tree: usize,
    id: u64,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.world.with(|core| {
            let now = core.scene.agenda.now();
            core.trees[self.tree].tty_mut().typing.withdraw(self.id, now);
        });
    }
}
