//! What this machine's terminals are like, and what a program on one is told.

use dsh_subprocess::{
    EnvOverlay, Error, ErrorKind, TerminalEnvironment, TerminalSpec, WorldPath, WorldString,
};
use dsh_subprocess_sys::identity;
use futures_core::future::BoxFuture;

use crate::machine::Machine;

/// Tells the platform and the user's shell.
pub(crate) fn environment(machine: &Machine) -> BoxFuture<'static, Result<TerminalEnvironment, Error>> {
    let platform = std::env::consts::OS;
    let ambient = machine.environment.child(&EnvOverlay::new());
    if let Some(shell) = ambient.get("SHELL").filter(|shell| !shell.is_empty()) {
        let told = TerminalEnvironment::new(platform, shell.clone());
        return Box::pin(std::future::ready(Ok(told)));
    }
    // The account may be looked up over a network.
    let asked = machine.blocking.run("look-up", identity::account_shell);
    Box::pin(async move {
        let shell = asked.await?.map_err(|error| {
            Error::new(
                ErrorKind::Os,
                "look-up",
                format!("SHELL is not set, and the user's account cannot be read: {error}"),
            )
            .with_source(error)
        })?;
        Ok(TerminalEnvironment::new(platform, WorldPath::from(shell)))
    })
}

/// The scrubbed environment with the caller's entries, `PWD` as for any spawn, and `TERM`.
///
/// The size that the host's own terminal had, where it is in the environment, would be believed before the real one
/// (ncurses(3X), `use_env`).
pub(super) fn of_child(machine: &Machine, spec: &TerminalSpec) -> dsh_subprocess::Environment {
    let mut environment = machine.environment.child(&spec.env);
    let explicit = |name: &str| spec.env.contains_key(&WorldString::from(name));
    for name in ["LINES", "COLUMNS"] {
        if !explicit(name) {
            environment.remove(name);
        }
    }
    if !explicit("TERM") {
        environment.insert("TERM", spec.terminal_type.clone());
    }
    if !explicit("PWD") {
        environment.insert("PWD", spec.cwd.as_world_string().clone());
    }
    environment
}
