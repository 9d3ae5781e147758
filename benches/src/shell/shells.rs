//! Who runs a shell command.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use dsh_shell::{Config, Shell, ShellRequest};
use dsh_subprocess::SubprocessRuntime as _;
use dsh_subprocess_local::LocalRuntime;
use tokio::runtime::Runtime;

use super::NOTHING;
use crate::peers::require_success;
use crate::project::Tier;

/// Runs the shell without anything around it, by `posix_spawn`, and collects both of its streams.
pub(super) fn bare() -> Result<()> {
    let output = Command::new("bash")
        .args(["-c", NOTHING])
        .stdin(Stdio::null())
        .output()?;
    require_success(output.status)
}

/// As [`bare`], under tokio.
pub(super) async fn bare_under_tokio() -> Result<()> {
    let output = tokio::process::Command::new("bash")
        .args(["-c", NOTHING])
        .stdin(Stdio::null())
        .output()
        .await?;
    require_success(output.status)
}

/// The executor of this project, over a runtime of one tier.
pub(super) struct Executor {
    pub(super) tokio: Runtime,
    pub(super) shell: Shell,
    pub(super) world: Arc<LocalRuntime>,
}

impl Executor {
    /// `tokio` is as a program has it that runs one command at a time, or many.
    pub(super) fn new(tier: Tier, tokio: Runtime) -> Result<Self> {
        let world = Arc::new(LocalRuntime::builder().ownership(tier.choice()).build()?);
        let config = Config {
            cwd: Some("/".into()),
            grace: Duration::from_secs(10),
            ..Config::default()
        };
        Ok(Self {
            tokio,
            shell: Shell::new(world.clone(), config)?,
            world,
        })
    }
}

/// Runs the command through the executor.
pub(super) async fn call(shell: &Shell) -> Result<()> {
    let spec = shell.resolve(ShellRequest::new(NOTHING))?;
    let result = shell.run(spec).await?;
    ensure!(result.outcome.success(), "the shell {}", result.outcome);
    Ok(())
}

impl Drop for Executor {
    fn drop(&mut self) {
        // A process that ended at once would leave the runtime's group behind.
        if let Err(error) = self.world.block_on(self.world.dispose()) {
            eprintln!("a runtime could not be disposed of: {error}");
        }
    }
}
