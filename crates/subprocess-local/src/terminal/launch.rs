//! From a spec to a program on a terminal.

use std::sync::Arc;

use dsh_subprocess::{Error, ErrorKind, Terminal, TerminalOutput, TerminalSpec};
use dsh_subprocess_sys::pty;
use futures_core::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::driver::LocalTerminal;
use super::output::Output;
use super::{Master, environment};
use crate::driver::LocalProcess;
use crate::environment::Ambient;
use crate::failure::{self, Asked};
use crate::launch::{ChildEnds, absolute, begin};
use crate::machine::Machine;
use crate::tree::Tree;

/// Starts a tree on a terminal of its own. Whoever drops the future before the handle is there has nothing left running.
pub(crate) fn spawn(
    machine: &Arc<Machine>,
    ambient: &Ambient,
    spec: TerminalSpec,
) -> BoxFuture<'static, Result<Terminal, Error>> {
    let cancel = spec.cancel.clone();
    let allocation = match launch(machine, ambient, spec) {
        Ok(allocation) => allocation,
        Err(error) => return Box::pin(std::future::ready(Err(error))),
    };
    Box::pin(async move {
        let started = {
            let tree = Arc::clone(&allocation.tree);
            cancel
                .run_until_cancelled(async move { tree.started.get().await })
                .await
        };
        match started {
            Some(Ok(_)) => Ok(allocation.publish()),
            Some(Err(error)) => Err(error),
            None => {
                let tree = Arc::clone(&allocation.tree);
                drop(allocation);
                // It is being killed; whatever outlives that by the bound is named.
                tree.exited().await?;
                Err(Error::new(
                    ErrorKind::Cancelled,
                    "spawn",
                    "the allocation of the terminal was cancelled: nothing is left running",
                ))
            }
        }
    })
}

/// A terminal whose handle nobody has yet. Its drop ends it.
struct Allocation {
    tree: Arc<Tree>,
    /// `None` once somebody has the handle.
    master: Option<Arc<Master>>,
}

impl Allocation {
    fn publish(mut self) -> Terminal {
        let tree = Arc::clone(&self.tree);
        let master = self.master.take().expect("it is published once");
        let process = Arc::new(LocalProcess(Arc::clone(&tree)));
        let output = TerminalOutput::new(Output(Arc::clone(&master)));
        Terminal::new(process, Arc::new(LocalTerminal { tree, master }), output)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Some(master) = self.master.take() {
            master.leave_unread();
            self.tree.kill();
        }
    }
}

fn launch(machine: &Arc<Machine>, ambient: &Ambient, spec: TerminalSpec) -> Result<Allocation, Error> {
    machine.check_usable("spawn")?;
    spec.validate()?;
    absolute(&spec.cwd)?;
    // The caller's token is about the allocation alone.
    let tree = machine.new_tree(&spec.env, spec.grace, spec.drain, &CancellationToken::new())?;
    let made = pty::open(spec.size.rows, spec.size.cols)
        .map_err(failure::no_terminal)
        .and_then(|pty| {
            Master::new(&tree, pty, machine.write_bound)
                .map_err(|error| failure::no_child_io("a terminal", &error))
        });
    let (master, slave) = match made {
        Ok(made) => made,
        Err(error) => {
            tree.failed(&error);
            return Err(error);
        }
    };
    tree.on_terminal(Arc::clone(&master));
    let allocation = Allocation {
        tree,
        master: Some(master),
    };
    let asked = Asked {
        environment: environment::of_child(machine, ambient, &spec),
        argv: spec.argv,
        cwd: spec.cwd,
    };
    if let Err(error) = begin(&allocation.tree, ChildEnds::Terminal(slave), asked, spec.grace) {
        allocation.tree.failed(&error);
        return Err(error);
    }
    Ok(allocation)
}
