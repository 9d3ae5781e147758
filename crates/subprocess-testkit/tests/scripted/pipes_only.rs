//! A world that has no terminals, and says so.

use dsh_subprocess::{
    Capabilities, Error, ErrorKind, Lookup, Process, SpawnSpec, SubprocessRuntime, Terminal,
    TerminalEnvironment, TerminalSpec, WorldPath,
};
use dsh_subprocess_testkit::scripted::ScriptedWorld;
use futures_core::future::BoxFuture;

/// The scripted world without its terminals.
pub(crate) struct PipesOnly(pub(crate) ScriptedWorld);

fn refused<T: Send + 'static>() -> BoxFuture<'static, Result<T, Error>> {
    let error = Error::new(ErrorKind::Unsupported, "spawn", "this world has no terminals");
    Box::pin(std::future::ready(Err(error)))
}

impl SubprocessRuntime for PipesOnly {
    fn resolve_executable(&self, lookup: Lookup) -> BoxFuture<'static, Result<WorldPath, Error>> {
        self.0.resolve_executable(lookup)
    }

    fn spawn(&self, spec: SpawnSpec) -> Result<Process, Error> {
        self.0.spawn(spec)
    }

    fn spawn_terminal(&self, _: TerminalSpec) -> BoxFuture<'static, Result<Terminal, Error>> {
        refused()
    }

    fn terminal_environment(&self) -> BoxFuture<'static, Result<TerminalEnvironment, Error>> {
        refused()
    }

    fn dispose(&self) -> BoxFuture<'static, Result<(), Error>> {
        self.0.dispose()
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.0.capabilities();
        capabilities.terminal = false;
        capabilities
    }
}
