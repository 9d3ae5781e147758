//! The local world.

use dsh_subprocess::{Capabilities, Error, Lookup, Ownership, Process, SpawnSpec, SubprocessRuntime, WorldPath};
use futures_core::future::BoxFuture;

use crate::LocalRuntimeBuilder;

/// The world of this machine. Cloning it gives another reference to the same runtime.
#[derive(Clone, Debug)]
pub struct LocalRuntime(std::sync::Arc<()>);

impl LocalRuntime {
    /// Makes a runtime with the strongest ownership that works here.
    ///
    /// # Errors
    ///
    /// See [`LocalRuntimeBuilder::build`].
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// Starts making a runtime.
    pub fn builder() -> LocalRuntimeBuilder {
        LocalRuntimeBuilder::default()
    }

    /// Returns the mechanism that owns the trees started from now on.
    pub fn ownership(&self) -> Ownership {
        unreachable!("{:?}", self.0)
    }

    /// Sends `SIGKILL` to every tree at once, without waiting: for a host that is about to exit.
    pub fn kill_all(&self) {}
}

impl SubprocessRuntime for LocalRuntime {
    fn resolve_executable(&self, _lookup: Lookup) -> BoxFuture<'static, Result<WorldPath, Error>> {
        unreachable!()
    }

    fn spawn(&self, _spec: SpawnSpec) -> Result<Process, Error> {
        unreachable!()
    }

    fn dispose(&self) -> BoxFuture<'static, Result<(), Error>> {
        unreachable!()
    }

    fn capabilities(&self) -> Capabilities {
        unreachable!()
    }
}
