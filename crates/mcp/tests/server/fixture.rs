//! A server in a world of its own, and clients of it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dsh_jobs::{Jobs, Limits};
use dsh_mcp::server::{McpServer, ServeError, ServerConfig};
use dsh_shell::{Config, Shell};
use dsh_subprocess::SubprocessRuntime;
use dsh_subprocess_local::LocalRuntime;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ProgressNotificationParam,
    ReadResourceRequestParams, ReadResourceResult, Tool,
};
use rmcp::service::{NotificationContext, RunningService, ServiceError};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long anything may take, on a machine that is busy.
pub(crate) const BOUND: Duration = Duration::from_secs(40);

/// The variable by which a test finds its own processes.
const MARKER: &str = "CASE_MARKER";

/// A server, and the world that its commands run in.
pub(crate) struct Served {
    pub(crate) server: McpServer,
    pub(crate) directory: tempfile::TempDir,
    world: Arc<LocalRuntime>,
    marker: String,
}

impl Served {
    pub(crate) fn new() -> Self {
        Self::with(|_, _| {})
    }

    /// Makes a server after a change of what is configured. The grace is short unless that changes it.
    pub(crate) fn with(change: impl FnOnce(&mut Config, &mut ServerConfig)) -> Self {
        let world = LocalRuntime::new().expect("this machine has processes");
        Self::in_world(world, change)
    }

    /// Makes a server whose host has this environment.
    pub(crate) fn in_host_with(environment: Vec<(OsString, OsString)>) -> Self {
        let world = LocalRuntime::new().expect("this machine has processes");
        Self::in_world(world.with_ambient(environment), |_, _| {})
    }

    fn in_world(world: LocalRuntime, change: impl FnOnce(&mut Config, &mut ServerConfig)) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let marker = format!("{}-{number}", std::process::id());
        let directory = tempfile::tempdir().expect("a directory is made");
        let world = Arc::new(world);
        let mut shell = Config {
            cwd: Some(directory.path().into()),
            grace: Duration::from_millis(500),
            ..Config::default()
        };
        shell.env.insert(MARKER.into(), Some(marker.as_str().into()));
        let mut config = ServerConfig::default();
        change(&mut shell, &mut config);
        let shell = Shell::new(world.clone(), shell).expect("the shell's configuration is right");
        let jobs = Jobs::new(Limits::default()).expect("the limits are right");
        let server =
            McpServer::new(world.clone(), shell, jobs, config).expect("the server's configuration is right");
        Self {
            server,
            directory,
            world,
            marker,
        }
    }

    /// Begins a session over byte streams.
    pub(crate) async fn connect(&self) -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let stop = CancellationToken::new();
        let (server, stopped) = (self.server.clone(), stop.clone());
        let session = tokio::spawn(async move { server.serve(read, write, stopped).await });
        let (listener, heard) = Listener::new();
        let service = bounded(listener.serve(ours)).await.expect("a session begins");
        Client::new(service, heard, Some(Session { task: session, stop })).await
    }

    /// Returns the processes of this server's commands, by their ids, whatever tree they are in.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let wanted = format!("{MARKER}={}", self.marker);
        let entries = std::fs::read_dir("/proc").expect("there is a process table");
        entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
                let environment = std::fs::read(entry.path().join("environ")).ok()?;
                environment
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == wanted.as_bytes())
                    .then_some(pid)
            })
            .collect()
    }

    /// Waits until none of them is left. One look does not tell: a process that begins another program has no environment for a
    /// moment.
    pub(crate) async fn is_empty(&self) {
        let mut empty_looks = 0;
        until("no process is left", || {
            empty_looks = if self.processes().is_empty() {
                empty_looks + 1
            } else {
                0
            };
            empty_looks == 5
        })
        .await;
    }

    /// Ends the world, and looks whether anything outlived it.
    pub(crate) async fn finish(self) {
        self.world.dispose().await.expect("the world ends");
        self.is_empty().await;
    }
}

/// One session of a client.
pub(crate) struct Client {
    pub(crate) service: RunningService<RoleClient, Listener>,
    pub(crate) heard: Heard,
    tools: Vec<Tool>,
    session: Option<Session>,
}

/// The server's end of a session over byte streams.
struct Session {
    task: JoinHandle<Result<(), ServeError>>,
    stop: CancellationToken,
}

impl Client {
    async fn new(
        service: RunningService<RoleClient, Listener>,
        heard: Heard,
        session: Option<Session>,
    ) -> Self {
        let tools = bounded(service.list_all_tools())
            .await
            .expect("the tools are listed");
        Self {
            service,
            heard,
            tools,
            session,
        }
    }

    /// Begins with a service that is connected already.
    pub(crate) async fn of(service: RunningService<RoleClient, Listener>, heard: Heard) -> Self {
        Self::new(service, heard, None).await
    }

    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Calls a tool. What it answers in structure is held against its output schema each time.
    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let result = self
            .try_call(tool, arguments)
            .await
            .expect("the call is answered");
        let schema = self
            .tools
            .iter()
            .find(|known| known.name == tool)
            .expect("it is listed");
        let schema = schema
            .output_schema
            .as_ref()
            .expect("its output schema is published");
        if result.is_error == Some(true) {
            assert_eq!(result.structured_content, None);
        } else {
            let schema =
                jsonschema::validator_for(&Value::Object(schema.as_ref().clone())).expect("it is a schema");
            let structured = result
                .structured_content
                .as_ref()
                .expect("there is a structured answer");
            if let Err(error) = schema.validate(structured) {
                panic!("{tool}: {error}: {structured}");
            }
        }
        result
    }

    pub(crate) async fn try_call(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Result<CallToolResult, ServiceError> {
        bounded(self.service.call_tool(parameters(tool, arguments))).await
    }

    /// Runs a command and returns the answer's structure.
    pub(crate) async fn bash(&self, command: &str) -> Value {
        let result = self.call("bash", serde_json::json!({ "command": command })).await;
        assert_ne!(result.is_error, Some(true), "{}", text(&result));
        structured(&result)
    }

    /// Starts a job and returns its id.
    pub(crate) async fn start(&self, command: &str) -> String {
        let arguments = serde_json::json!({ "command": command, "run_in_background": true });
        let result = self.call("bash", arguments).await;
        assert_ne!(result.is_error, Some(true), "{}", text(&result));
        structured(&result)["job_id"]
            .as_str()
            .expect("it has an id")
            .to_owned()
    }

    pub(crate) async fn read(&self, uri: &str) -> Result<ReadResourceResult, ServiceError> {
        bounded(self.service.read_resource(ReadResourceRequestParams::new(uri))).await
    }

    /// Ends the session as a client does that closes its streams, and waits until the server is done with it.
    pub(crate) async fn close(mut self) {
        bounded(self.service.close()).await.expect("the client ends");
        if let Some(session) = self.session.take() {
            bounded(session.task)
                .await
                .expect("no panic")
                .expect("the session ends");
        }
    }

    /// Ends the session from the server's side.
    pub(crate) async fn stop(mut self) {
        let session = self.session.take().expect("it is a session over byte streams");
        session.stop.cancel();
        bounded(session.task)
            .await
            .expect("no panic")
            .expect("the session ends");
    }

    /// Drops the client, as one that is killed, and waits until the server is done with it.
    pub(crate) async fn vanish(mut self) {
        let session = self.session.take().expect("it is a session over byte streams");
        drop(self.service);
        bounded(session.task)
            .await
            .expect("no panic")
            .expect("the session ends");
    }
}

pub(crate) fn parameters(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

/// What the server said without having been asked.
pub(crate) enum Word {
    Progress(ProgressNotificationParam),
    Log(Value),
    ResourcesChanged,
}

/// Hears what the server says.
pub(crate) struct Heard(mpsc::UnboundedReceiver<Word>);

impl Heard {
    /// Waits for something to be said.
    pub(crate) async fn wait_for<T>(&mut self, mut wanted: impl FnMut(Word) -> Option<T>) -> T {
        bounded(async {
            loop {
                let word = self.0.recv().await.expect("the session goes on");
                if let Some(found) = wanted(word) {
                    return found;
                }
            }
        })
        .await
    }

    /// Returns what was said and not heard yet.
    pub(crate) fn rest(&mut self) -> Vec<Word> {
        let mut words = Vec::new();
        while let Ok(word) = self.0.try_recv() {
            words.push(word);
        }
        words
    }
}

/// A client that passes on what it hears.
pub(crate) struct Listener(mpsc::UnboundedSender<Word>);

impl Listener {
    pub(crate) fn new() -> (Self, Heard) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), Heard(receiver))
    }

    fn hear(&self, word: Word) {
        // A test that listens no more is over.
        let _ = self.0.send(word);
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(Word::Progress(params));
    }

    #[expect(
        deprecated,
        reason = "it is how sessions with a handshake are told of a job's end"
    )]
    async fn on_logging_message(
        &self,
        params: rmcp::model::LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(Word::Log(params.data));
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.hear(Word::ResourcesChanged);
    }
}

/// Fails a test instead of letting it hang.
pub(crate) async fn bounded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, future)
        .await
        .expect("it happens in time")
}

/// Waits until something that nobody tells of is so.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < BOUND, "in time, {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a file is there with something in it, and returns that.
pub(crate) async fn content(path: &Path) -> String {
    until("the file is written", || {
        std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0)
    })
    .await;
    std::fs::read_to_string(path).expect("the file is there")
}

pub(crate) fn text(result: &CallToolResult) -> String {
    result.content[0]
        .as_text()
        .expect("the first block is text")
        .text
        .clone()
}

pub(crate) fn structured(result: &CallToolResult) -> Value {
    result
        .structured_content
        .clone()
        .expect("there is a structured answer")
}
