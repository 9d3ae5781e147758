//! Servers to start, and what to ask of them.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dsh_mcp::client::{ServerCommand, ServerProcess, ServerTransport};
use dsh_subprocess_local::LocalRuntime;
use rmcp::model::{CallToolRequestParams, JsonRpcMessage, ServerNotification};
use rmcp::service::{RunningService, ServiceError};
use rmcp::transport::Transport;
use rmcp::{RoleClient, ServiceExt};

/// So that a defect ends in a failure instead of a hang. On a busy machine, everything takes its time.
const BOUND: Duration = Duration::from_secs(60);
/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(3600);
/// Long enough for a signal to be handled, and short enough to wait for its end.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// What scripts announce themselves with: a message of the protocol.
const SAY: &str = r#"say() {
    printf '{"jsonrpc":"2.0","method":"notifications/said","params":{"words":"%s"}}\n' "$1"
}
"#;

pub(crate) type Client = RunningService<RoleClient, ()>;

pub(crate) fn world() -> LocalRuntime {
    LocalRuntime::new().expect("this machine has a mechanism")
}

/// The server whose tools misbehave.
pub(crate) fn python(arguments: &[&str]) -> ServerCommand {
    let script = ["python3", "-c", include_str!("server.py")];
    let argv = script.iter().chain(arguments).map(|&word| word.into());
    ServerCommand::new(argv.collect(), "/")
}

/// A script, and the file it logs to.
pub(crate) fn bash(script: &str, log: &Path) -> ServerCommand {
    let script = format!("{SAY}{script}");
    let argv = vec![
        "bash".into(),
        "-c".into(),
        script.into(),
        "bash".into(),
        log.into(),
    ];
    ServerCommand::new(argv, "/")
}

/// A script behind a launcher that waits for it, as npx and uvx do.
pub(crate) fn behind_a_launcher(script: &str) -> ServerCommand {
    let script = format!("{SAY}{script}");
    let argv = ["bash", "-c", r#"bash -c "$1"; :"#, "bash", &script].map(Into::into);
    ServerCommand::new(argv.to_vec(), "/")
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    let bounded = tokio::time::timeout(BOUND, future).await;
    bounded.expect("it comes within a minute")
}

pub(crate) async fn spawned(world: &LocalRuntime, command: ServerCommand) -> ServerTransport {
    within(ServerTransport::spawn(world, command))
        .await
        .expect("the program is there")
}

/// Starts a server and shakes hands with it.
pub(crate) async fn connected(world: &LocalRuntime, command: ServerCommand) -> (Client, ServerProcess) {
    let transport = spawned(world, command).await;
    let server = transport.process();
    let client = within(().serve(transport)).await.expect("it shakes hands");
    (client, server)
}

/// Waits for what a script says.
pub(crate) async fn said(transport: &mut ServerTransport) -> String {
    let message = within(transport.receive()).await.expect("it says something");
    let JsonRpcMessage::Notification(notification) = message else {
        panic!("{message:?} is no notification");
    };
    let ServerNotification::CustomNotification(said) = notification.notification else {
        panic!("{notification:?} is none of the scripts'");
    };
    let words = said.params.as_ref().and_then(|params| params["words"].as_str());
    words.expect("it is a text").to_owned()
}

pub(crate) async fn try_call(
    client: &Client,
    tool: &'static str,
    arguments: serde_json::Value,
) -> Result<String, ServiceError> {
    let serde_json::Value::Object(arguments) = arguments else {
        panic!("{arguments} is no object");
    };
    let request = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = within(client.call_tool(request)).await?;
    let text = result.content[0].as_text().expect("it is a text");
    Ok(text.text.clone())
}

pub(crate) async fn call(client: &Client, tool: &'static str, arguments: serde_json::Value) -> String {
    try_call(client, tool, arguments)
        .await
        .expect("the server answers")
}

/// Calls a tool that never answers, and returns once the server has the call.
pub(crate) async fn call_in_vain(
    client: &Client,
    server: &ServerProcess,
    tool: &'static str,
) -> tokio::task::JoinHandle<Result<String, ServiceError>> {
    let peer = client.peer().clone();
    let call = tokio::spawn(async move {
        let result = peer.call_tool(CallToolRequestParams::new(tool)).await?;
        Ok(format!("{result:?}"))
    });
    while !server.stderr().text().contains("called\n") {
        within(server.stderr().changed(server.stderr().total())).await;
    }
    call
}

/// Closes, and makes sure that nobody is left.
pub(crate) async fn closed(mut client: Client, server: &ServerProcess) {
    within(client.close()).await.expect("the service ends");
    within(server.gone()).await.expect("nobody is left");
    let members = within(server.handle().members()).await;
    assert!(members.expect("the tree is known").is_empty());
}

/// Whether a process runs. A zombie does not.
pub(crate) fn runs(pid: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Files of a test, and the log of a script among them.
pub(crate) struct Log(Arc<tempfile::TempDir>);

impl Log {
    pub(crate) fn new() -> Self {
        Self(Arc::new(tempfile::tempdir().expect("a temporary directory")))
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.0.path().join("log")
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path()).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }
}
