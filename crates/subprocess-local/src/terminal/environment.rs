//! What this machine's terminals are like, and what a program on one is told.

use dsh_subprocess::{
    EnvOverlay, Environment, Error, ErrorKind, TerminalEnvironment, TerminalSpec, WorldPath, WorldString,
};
use dsh_subprocess_sys::identity;
use futures_core::future::BoxFuture;

use crate::environment::Ambient;
use crate::machine::Machine;

/// Tells the platform and the user's shell.
pub(crate) fn environment(
    machine: &Machine,
    ambient: &Ambient,
) -> BoxFuture<'static, Result<TerminalEnvironment, Error>> {
    let platform = std::env::consts::OS;
    let environment = machine.environment.child(ambient, &EnvOverlay::new());
    if let Some(shell) = environment.get("SHELL").filter(|shell| !shell.is_empty()) {
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
pub(super) fn of_child(machine: &Machine, ambient: &Ambient, spec: &TerminalSpec) -> Environment {
    let mut environment = machine.environment.child(ambient, &spec.env);
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
