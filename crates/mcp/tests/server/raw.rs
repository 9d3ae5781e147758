//! Requests as bytes, right and wrong.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::bounded;
use super::http::Endpoint;

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    /// The head, in lower case.
    pub(super) head: String,
    pub(super) body: String,
}

/// Sends one request on a connection of its own, and reads until that ends.
async fn exchange(endpoint: &Endpoint, request: &str) -> Answer {
    bounded(async {
        let mut stream = TcpStream::connect(endpoint.address).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it is sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("it is answered");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("there is a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answer {
            status: status.expect("there is a status"),
            head: head.to_lowercase(),
            body: body.to_owned(),
        }
    })
    .await
}

/// Words a request. Headers given later stand after the usual ones, so that those are left out which they replace.
fn request(endpoint: &Endpoint, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let host = endpoint.address.to_string();
    let token = format!("Bearer {}", endpoint.token);
    let length = body.len().to_string();
    let usual = [
        ("host", host.as_str()),
        ("authorization", &token),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("content-length", &length),
        ("connection", "close"),
    ];
    let replaced = |name: &str| headers.iter().any(|(other, _)| *other == name);
    let kept = usual.into_iter().filter(|(name, _)| !replaced(name));
    // An empty value stands for a header that is left out.
    let all = kept
        .chain(headers.iter().copied())
        .filter(|(_, value)| !value.is_empty());
    let lines: String = all
        .map(|(name, value)| [name, ": ", value, "\r\n"].concat())
        .collect();
    format!("{method} {path} HTTP/1.1\r\n{lines}\r\n{body}")
}

fn initialize() -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" } } })
    .to_string()
}

/// A session that keeps no stream open.
pub(super) struct Session(String);

impl Session {
    pub(super) async fn try_begin(endpoint: &Endpoint) -> Answer {
        exchange(endpoint, &request(endpoint, "POST", "/mcp", &[], &initialize())).await
    }

    pub(super) async fn begin(endpoint: &Endpoint) -> Self {
        let answer = Self::try_begin(endpoint).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let id = answer
            .head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "))
            .expect("the session has an id");
        let session = Self(id.to_owned());
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(session.send(endpoint, ready).await.status, 202);
        session
    }

    pub(super) async fn send(&self, endpoint: &Endpoint, message: Value) -> Answer {
        let headers = [("mcp-session-id", self.0.as_str())];
        exchange(
            endpoint,
            &request(endpoint, "POST", "/mcp", &headers, &message.to_string()),
        )
        .await
    }

    pub(super) async fn call(&self, endpoint: &Endpoint, tool: &str, arguments: Value) -> Answer {
        let message = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments } });
        let answer = self.send(endpoint, message).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer
    }

    pub(super) async fn delete(&self, endpoint: &Endpoint) -> Answer {
        let headers = [("mcp-session-id", self.0.as_str())];
        exchange(endpoint, &request(endpoint, "DELETE", "/mcp", &headers, "")).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_the_token_is_refused() {
    let endpoint = Endpoint::new(|_| {}).await;
    let wrong = format!(
        "Bearer {}",
        endpoint.token.replace(|c: char| c.is_ascii_digit(), "g")
    );
    let longer = format!("Bearer {}0", endpoint.token);
    let basic = format!("Basic {}", endpoint.token);
    for value in ["", "Bearer", "Bearer ", &wrong, &longer, &basic, &endpoint.token] {
        for (method, path) in [
            ("POST", "/mcp"),
            ("GET", "/mcp"),
            ("DELETE", "/mcp"),
            ("GET", "/"),
        ] {
            let answer = exchange(
                &endpoint,
                &request(
                    &endpoint,
                    method,
                    path,
                    &[("authorization", value)],
                    &initialize(),
                ),
            )
            .await;
            assert_eq!(answer.status, 401, "{method} {path} {value}");
            assert!(
                answer.head.contains("www-authenticate: bearer"),
                "{}",
                answer.head
            );
            assert!(!answer.body.contains(&endpoint.token));
        }
    }
    let twice = [
        ("authorization", format!("Bearer {}", endpoint.token)),
        ("Authorization", "Bearer x".to_owned()),
    ];
    let twice: Vec<(&str, &str)> = twice
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let answer = exchange(
        &endpoint,
        &request(&endpoint, "POST", "/mcp", &twice, &initialize()),
    )
    .await;
    assert_eq!(answer.status, 401, "two tokens are none");
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_host_or_origin_is_refused() {
    let endpoint = Endpoint::new(|config| {
        config.allowed_origins.push("http://localhost:*".to_owned());
        config.allowed_hosts.push("build.example".to_owned());
    })
    .await;
    let status = async |headers: &[(&str, &str)]| {
        exchange(
            &endpoint,
            &request(&endpoint, "POST", "/mcp", headers, &initialize()),
        )
        .await
        .status
    };
    assert_eq!(status(&[("host", "attacker.example")]).await, 403);
    assert_eq!(status(&[("host", "127.0.0.1.attacker.example:80")]).await, 403);
    assert_eq!(status(&[("host", "build.example:9")]).await, 200);
    assert_eq!(status(&[("host", "localhost:1")]).await, 200);
    assert_eq!(status(&[("origin", "https://attacker.example")]).await, 403);
    assert_eq!(status(&[("origin", "null")]).await, 403);
    assert_eq!(status(&[("origin", "http://localhost:6274")]).await, 200);
    assert_eq!(status(&[]).await, 200);
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_is_told_which_pages_may_ask() {
    let endpoint = Endpoint::new(|config| config.allowed_origins.push("http://localhost:*".to_owned())).await;
    let ask = async |origin: &str, method: &str, authorization: &str| {
        let headers = [
            ("origin", origin),
            ("authorization", authorization),
            ("access-control-request-method", "POST"),
        ];
        exchange(
            &endpoint,
            &request(&endpoint, method, "/mcp", &headers, &initialize()),
        )
        .await
    };
    let page = "http://localhost:5173";
    let shown = format!("access-control-allow-origin: {page}");

    let leave = ask(page, "OPTIONS", "").await;
    assert_eq!(leave.status, 204);
    assert!(
        leave.head.contains(&shown) && leave.head.contains("authorization"),
        "{}",
        leave.head
    );
    let token = format!("Bearer {}", endpoint.token);
    let answer = ask(page, "POST", &token).await;
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains(&shown), "{}", answer.head);
    assert!(
        answer
            .head
            .contains("access-control-expose-headers: mcp-session-id"),
        "{}",
        answer.head
    );
    let refused = ask(page, "POST", "").await;
    assert_eq!(refused.status, 401, "leave to ask is no token");

    let foreign = ask("https://attacker.example", "OPTIONS", "").await;
    assert_eq!(foreign.status, 401);
    assert!(!foreign.head.contains("access-control"), "{}", foreign.head);
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_origin_is_let_in_unless_it_was_named() {
    let endpoint = Endpoint::new(|_| {}).await;
    let origin = format!("http://{}", endpoint.address);
    let answer = exchange(
        &endpoint,
        &request(&endpoint, "POST", "/mcp", &[("origin", &origin)], &initialize()),
    )
    .await;
    assert_eq!(answer.status, 403);
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_make_no_sense_are_told_so() {
    let endpoint = Endpoint::new(|config| config.max_body_bytes = 100_000).await;
    let session = Session::begin(&endpoint).await;
    let answers = async |headers: &[(&str, &str)], path: &str, body: &str| {
        exchange(&endpoint, &request(&endpoint, "POST", path, headers, body))
            .await
            .status
    };
    assert_eq!(answers(&[], "/", &initialize()).await, 404);
    assert_eq!(answers(&[], "/mcp/", &initialize()).await, 404);
    assert_eq!(
        answers(&[("accept", "text/html")], "/mcp", &initialize()).await,
        406
    );
    assert_eq!(
        answers(&[("content-type", "text/plain")], "/mcp", &initialize()).await,
        415
    );
    assert!((400..500).contains(&answers(&[], "/mcp", "no json").await));
    assert_eq!(answers(&[], "/mcp", &"x".repeat(200_000)).await, 413);
    let list = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" }).to_string();
    assert!(
        (400..500).contains(&answers(&[], "/mcp", &list).await),
        "no session"
    );
    assert_eq!(
        answers(&[("mcp-session-id", "guessed")], "/mcp", &list).await,
        404
    );
    assert_eq!(
        answers(&[("mcp-protocol-version", "1999-01-01")], "/mcp", &list).await,
        400
    );
    let listed = session
        .send(&endpoint, serde_json::from_str(&list).expect("it is JSON"))
        .await;
    assert!(listed.status == 200 && listed.body.contains("job_output"));
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_outside_a_session_starts_nothing() {
    let endpoint = Endpoint::new(|_| {}).await;
    for version in ["2025-06-18", "2026-07-28"] {
        let message = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "bash", "arguments": { "command": "touch started" },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
            } } });
        let headers = [
            ("mcp-protocol-version", version),
            ("mcp-method", "tools/call"),
            ("mcp-name", "bash"),
        ];
        let answer = exchange(
            &endpoint,
            &request(&endpoint, "POST", "/mcp", &headers, &message.to_string()),
        )
        .await;
        assert!(
            answer.body.contains("\"error\""),
            "{version}: {} {}",
            answer.status,
            answer.body
        );
        assert!(!endpoint.served.directory.path().join("started").exists());
    }
    endpoint.stop().await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_holds_up_nobody() {
    let endpoint = Endpoint::new(|_| {}).await;
    let lazy = Session::begin(&endpoint).await;
    let headers = [("mcp-session-id", lazy.0.as_str())];
    let mut unread = Vec::new();
    for id in 10..14 {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "bash", "arguments": { "command": "seq 1 50000" } } });
        let mut stream = TcpStream::connect(endpoint.address).await.expect("it listens");
        let request = request(&endpoint, "POST", "/mcp", &headers, &message.to_string());
        stream.write_all(request.as_bytes()).await.expect("it is sent");
        unread.push(stream);
    }
    let other = endpoint.connect().await;
    assert_eq!(other.bash("echo served").await["stdout"]["text"], "served\n");
    other.close().await;
    let served = endpoint.stop().await;
    drop(unread);
    served.finish().await;
}
