//! The MCP server and a client of it, in one process.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use dsh_jobs::{Jobs, Limits};
use dsh_mcp::server::{McpServer, ServerConfig};
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::NOTHING;
use super::shells::Executor;
use crate::peers::one_thread;
use crate::project::Tier;

/// Bytes on their way in each direction at most: what a pipe holds.
const DUPLEX: usize = 64 * 1024;

/// A session over a byte stream, which lasts as long as this.
pub(super) struct Served {
    client: Option<RunningService<RoleClient, ()>>,
    arguments: Map<String, Value>,
    executor: Executor,
}

impl Served {
    pub(super) fn new(tier: Tier) -> Result<Self> {
        let executor = Executor::new(tier, one_thread()?)?;
        let world = Arc::clone(&executor.world);
        let jobs = Jobs::new(Limits::default())?;
        let server = McpServer::new(world, executor.shell.clone(), jobs, ServerConfig::default())?;
        let client = executor.tokio.block_on(async {
            let (ours, theirs) = tokio::io::duplex(DUPLEX);
            let (read, write) = tokio::io::split(theirs);
            tokio::spawn(async move { server.serve(read, write, CancellationToken::new()).await });
            ().serve(ours).await
        })?;
        Ok(Self {
            client: Some(client),
            arguments: Map::from_iter([("command".to_owned(), NOTHING.into())]),
            executor,
        })
    }

    /// Calls the tool that runs a shell command.
    pub(super) fn call(&self) -> Result<()> {
        let client = self
            .client
            .as_ref()
            .context("the session lasts as long as this")?;
        let call = CallToolRequestParams::new("bash").with_arguments(self.arguments.clone());
        let answer = self.executor.tokio.block_on(client.call_tool(call))?;
        let code = answer.structured_content.as_ref().map(|told| &told["exit_code"]);
        ensure!(code == Some(&Value::from(0)), "the tool answered {answer:?}");
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(client) = self.client.take()
            && let Err(error) = self.executor.tokio.block_on(client.cancel())
        {
            eprintln!("a session could not be ended: {error}");
        }
    }
}
