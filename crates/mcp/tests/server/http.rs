//! Sessions over HTTP.

use std::time::Duration;

use dsh_mcp::server::{BearerToken, HttpConfig};
use rmcp::ServiceExt;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::fixture::{BOUND, Client, Listener, Served, bounded, content, parameters, structured, text};

/// An endpoint that serves until it is stopped.
pub(super) struct Endpoint {
    pub(super) served: Served,
    pub(super) address: std::net::SocketAddr,
    pub(super) token: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Endpoint {
    pub(super) async fn new(change: impl FnOnce(&mut HttpConfig)) -> Self {
        let served = Served::new();
        let path = served.directory.path().join("token");
        BearerToken::create(&path).expect("a token is made");
        let mut config = HttpConfig::new(BearerToken::from_file(&path).expect("it is read"));
        change(&mut config);
        let token = std::fs::read_to_string(&path)
            .expect("it is there")
            .trim()
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = listener.local_addr().expect("it has an address");
        let stop = CancellationToken::new();
        let (server, stopped) = (served.server.clone(), stop.clone());
        let task = tokio::spawn(async move {
            server
                .serve_http(listener, config, stopped)
                .await
                .expect("it serves");
        });
        Self {
            served,
            address,
            token,
            stop,
            task,
        }
    }

    pub(super) async fn connect(&self) -> Client {
        let config = StreamableHttpClientTransportConfig::with_uri(format!("http://{}/mcp", self.address))
            .auth_header(self.token.clone());
        let (listener, heard) = Listener::new();
        let service = bounded(listener.serve(StreamableHttpClientTransport::from_config(config)))
            .await
            .expect("a session begins");
        Client::of(service, heard).await
    }

    pub(super) async fn stop(self) -> Served {
        self.stop.cancel();
        bounded(self.task).await.expect("it ends");
        self.served
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_over_http_has_the_same_tools_jobs_and_resources() {
    let endpoint = Endpoint::new(|_| {}).await;
    let client = endpoint.connect().await;
    let result = client.call("bash", json!({ "command": "seq 1 50000" })).await;
    let uri = structured(&result)["stdout"]["uri"]
        .as_str()
        .expect("it is truncated")
        .to_owned();
    client.read(&uri).await.expect("it is read");
    let id = client.start("echo up; sleep 300").await;
    let read = client
        .call("job_output", json!({ "job_id": id, "wait_ms": 30_000 }))
        .await;
    assert_eq!(text(&read), "up\n[job bash-1: running]");
    client.close().await;
    endpoint.served.is_empty().await;
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_over_http_do_not_see_each_other() {
    let endpoint = Endpoint::new(|_| {}).await;
    let (owner, other) = (endpoint.connect().await, endpoint.connect().await);
    let id = owner.start("sleep 300").await;
    let refused = other.call("job_kill", json!({ "job_id": id })).await;
    assert!(text(&refused).contains("there is no job"), "{}", text(&refused));
    other.close().await;
    let jobs = structured(&owner.call("job_list", json!({})).await);
    assert_eq!(jobs["jobs"][0]["status"], "running");
    owner.close().await;
    endpoint.served.is_empty().await;
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_ends_every_session() {
    let endpoint = Endpoint::new(|_| {}).await;
    let (first, second) = (endpoint.connect().await, endpoint.connect().await);
    first.start("sleep 300").await;
    second.start("trap '' TERM; sleep 300").await;
    let peer = second.service.peer().clone();
    let arguments = json!({ "command": "echo up > up; sleep 300" });
    let call = tokio::spawn(async move { peer.call_tool(parameters("bash", arguments)).await });
    content(&endpoint.served.directory.path().join("up")).await;
    let served = endpoint.stop().await;
    assert_eq!(served.processes(), Vec::<u32>::new());
    call.abort();
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_nothing_happens_in_ends() {
    let endpoint = Endpoint::new(|config| config.session_idle = Duration::from_millis(200)).await;
    let session = super::raw::Session::begin(&endpoint).await;
    session
        .call(
            &endpoint,
            "bash",
            json!({ "command": "echo up > up; sleep 300", "run_in_background": true }),
        )
        .await;
    content(&endpoint.served.directory.path().join("up")).await;
    endpoint.served.is_empty().await;
    let answer = session
        .send(
            &endpoint,
            json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list" }),
        )
        .await;
    assert_eq!(answer.status, 404);
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_outlasts_the_idle_time_of_its_session() {
    let endpoint = Endpoint::new(|config| config.session_idle = Duration::from_millis(100)).await;
    let session = super::raw::Session::begin(&endpoint).await;
    let answer = session
        .call(&endpoint, "bash", json!({ "command": "sleep 1; echo done" }))
        .await;
    assert!(answer.body.contains("done\\n[exit code: 0]"), "{}", answer.body);
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_client_does_not_come_back_ends() {
    let endpoint = Endpoint::new(|config| config.reconnect = Duration::from_millis(200)).await;
    let session = super::raw::Session::begin(&endpoint).await;
    let up = endpoint.served.directory.path().join("up");
    let call = session.call(&endpoint, "bash", json!({ "command": "echo up > up; sleep 300" }));
    tokio::select! {
        _ = call => panic!("it takes long"),
        _ = content(&up) => {}
    }
    // The connection is gone with the call; the session is not.
    tokio::time::timeout(BOUND, endpoint.served.is_empty())
        .await
        .expect("it ends in time");
    let answer = session
        .call(&endpoint, "bash", json!({ "command": "echo back" }))
        .await;
    assert!(answer.body.contains("back\\n[exit code: 0]"), "{}", answer.body);
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_session_takes_its_jobs_with_it() {
    let endpoint = Endpoint::new(|_| {}).await;
    let session = super::raw::Session::begin(&endpoint).await;
    session
        .call(
            &endpoint,
            "bash",
            json!({ "command": "sleep 300 | cat", "run_in_background": true }),
        )
        .await;
    super::fixture::until("the job runs", || !endpoint.served.processes().is_empty()).await;
    let answer = session.delete(&endpoint).await;
    assert_eq!(answer.status, 200);
    endpoint.served.is_empty().await;
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_sessions_begin_than_allowed() {
    let endpoint = Endpoint::new(|config| config.max_sessions = 2).await;
    let first = super::raw::Session::begin(&endpoint).await;
    let _second = super::raw::Session::begin(&endpoint).await;
    let refused = super::raw::Session::try_begin(&endpoint).await;
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("retry-after: "), "{}", refused.head);
    first.delete(&endpoint).await;
    let _third = super::raw::Session::begin(&endpoint).await;
    endpoint.stop().await.finish().await;
}
