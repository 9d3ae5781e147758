//! Listening: who is let in, and what is said of where and how.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::client::{REVISION, initialize, initialized, text};
use crate::fixture::{BOUND, Case, eventually, finish, signal, start, within};

/// A server that listens, and what it said of that.
struct Listening {
    server: Child,
    address: String,
    token_file: PathBuf,
}

/// An answer: its status, its headers in lower case, its body.
struct Answer {
    status: u16,
    headers: String,
    body: String,
}

impl Listening {
    fn start(case: &Case, options: &[&str]) -> Self {
        let words = [&["mcp", "--http", "127.0.0.1:0"], options].concat();
        let mut server = start(&mut case.command(words));
        let stderr = server.stderr.take().expect("stderr is a pipe");
        let (line, stderr) = within("the address", move || {
            let mut stderr = BufReader::with_capacity(1, stderr);
            let mut line = String::new();
            stderr.read_line(&mut line).expect("it is text");
            (line, stderr.into_inner())
        });
        server.stderr = Some(stderr);
        let (address, token_file) = line
            .strip_prefix("dsh-subprocess: listening on http://")
            .and_then(|rest| rest.trim_end().split_once("/mcp; clients show the token in "))
            .unwrap_or_else(|| panic!("another line: {line}"));
        Self {
            server,
            address: address.to_owned(),
            token_file: token_file.into(),
        }
    }

    fn token(&self) -> String {
        let token = std::fs::read_to_string(&self.token_file).expect("the token is there");
        token.trim().to_owned()
    }

    /// Sends one request, with headers beside those that every request has.
    fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(BOUND)).expect("a bound can be set");
        let mut request = format!(
            "{method} /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&["Host: ", &self.address, "\r\n"].concat());
        }
        request.push_str("Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n");
        for (name, value) in headers {
            request.push_str(&[name, ": ", value, "\r\n"].concat());
        }
        request.push_str("\r\n");
        request.push_str(body);
        stream.write_all(request.as_bytes()).expect("it is taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is answered");
        let (head, body) = answer.split_once("\r\n\r\n").expect("there is a head");
        let (status_line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
        let status = status_line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let headers = headers.to_ascii_lowercase();
        Answer {
            status: status.expect("there is a status"),
            body: if headers.contains("transfer-encoding: chunked") {
                unchunked(body)
            } else {
                body.to_owned()
            },
            headers,
        }
    }

    /// Begins a session, and returns its id.
    fn begin(&self, bearer: &str) -> String {
        let answer = self.send("POST", &[("Authorization", bearer)], &initialize(1).to_string());
        assert_eq!(answer.status, 200, "{}", answer.body);
        let id = answer
            .headers
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "))
            .expect("there is a session");
        let session = [
            ("Authorization", bearer),
            ("Mcp-Session-Id", id),
            ("Mcp-Protocol-Version", REVISION),
        ];
        let answer = self.send("POST", &session, &initialized().to_string());
        assert_eq!(answer.status, 202, "{}", answer.body);
        id.to_owned()
    }

    /// Calls a tool in a session, and returns its result.
    fn call(&self, bearer: &str, session: &str, tool: &str, arguments: &Value) -> Value {
        let headers = [
            ("Authorization", bearer),
            ("Mcp-Session-Id", session),
            ("Mcp-Protocol-Version", REVISION),
        ];
        let request = json!({
            "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": arguments },
        });
        let answer = self.send("POST", &headers, &request.to_string());
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer
            .body
            .lines()
            .filter_map(|line| {
                serde_json::from_str::<Value>(line.strip_prefix("data: ").unwrap_or(line)).ok()
            })
            .find(|message| message["id"] == 2)
            .unwrap_or_else(|| panic!("no answer: {}", answer.body))["result"]
            .clone()
    }

    fn stop(self) {
        signal(&self.server, Signal::SIGTERM);
        let done = finish(self.server);
        assert_eq!((done.code(), done.text()), (143, ""));
    }
}

/// Joins the chunks of a body.
fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("it is a size");
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}

fn mode(path: &Path) -> u32 {
    let metadata = std::fs::metadata(path).expect("it is there");
    metadata.permissions().mode() & 0o7777
}

#[test]
fn who_has_the_token_is_served_and_nobody_else() {
    let case = Case::new();
    let server = Listening::start(&case, &["--log", "off"]);
    let token = server.token();
    assert_eq!(token.len(), 64);
    let bearer = format!("Bearer {token}");
    for wrong in [None, Some("Bearer x"), Some(&token[..]), Some(&bearer[..70])] {
        let headers: Vec<_> = wrong.map(|shown| ("Authorization", shown)).into_iter().collect();
        let answer = server.send("POST", &headers, &initialize(1).to_string());
        assert_eq!(answer.status, 401, "{wrong:?}");
        assert!(
            answer.headers.contains("www-authenticate: bearer"),
            "{}",
            answer.headers
        );
    }
    for foreign in [("Origin", "http://evil.example"), ("Host", "evil.example")] {
        let headers = [("Authorization", &bearer[..]), foreign];
        let answer = server.send("POST", &headers, &initialize(1).to_string());
        assert_eq!(answer.status, 403, "{foreign:?}");
    }
    let session = server.begin(&bearer);
    let result = server.call(&bearer, &session, "bash", &json!({ "command": "echo over http" }));
    assert_eq!(text(&result), "over http\n[exit code: 0]");
    server.stop();
    case.assert_nothing_lives();
}

#[test]
fn an_origin_and_a_host_that_are_allowed_pass() {
    let case = Case::new();
    let options = [
        "--allow-origin",
        "https://app.example:443",
        "--allow-host",
        "build.example",
    ];
    let server = Listening::start(&case, &options);
    let bearer = format!("Bearer {}", server.token());
    for header in [("Origin", "https://app.example:443"), ("Host", "build.example")] {
        let headers = [("Authorization", &bearer[..]), header];
        let answer = server.send("POST", &headers, &initialize(1).to_string());
        assert_eq!(answer.status, 200, "{header:?}: {}", answer.body);
    }
    server.stop();
}

#[test]
fn the_token_is_made_once_for_its_owner_alone_and_is_never_said() {
    let case = Case::new();
    let server = Listening::start(&case, &["--log", "debug"]);
    let (token, file) = (server.token(), server.token_file.clone());
    assert!(file.starts_with(case.path(".local/state")), "{}", file.display());
    assert_eq!(
        (mode(&file), mode(file.parent().expect("it has one"))),
        (0o600, 0o700)
    );
    server.begin(&format!("Bearer {token}"));
    signal(&server.server, Signal::SIGINT);
    let done = finish(server.server);
    assert_eq!(done.code(), 130);
    assert!(!done.stderr.contains(&token), "{}", done.stderr);

    let again = Listening::start(&case, &[]);
    assert_eq!((again.token(), &again.token_file), (token, &file));
    again.stop();
    let left: Vec<_> = std::fs::read_dir(file.parent().expect("it has one"))
        .expect("it is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.contains("token"))
        .collect();
    assert_eq!(left, ["mcp-token"]);
}

#[test]
fn the_token_is_where_it_is_said_to_be() {
    let case = Case::new();
    let server = Listening::start(&case, &["--token-file", "mine"]);
    assert!(server.token_file.is_absolute() && server.token_file.ends_with("mine"));
    assert_eq!(mode(&server.token_file), 0o600);
    server.stop();

    std::fs::create_dir(case.path("run")).expect("a directory can be made");
    let words = ["mcp", "--http", "127.0.0.1:0"];
    let mut command = case.command(words);
    let mut call = start(command.env("XDG_RUNTIME_DIR", case.path("run")));
    let file = case.path("run").join("dsh-subprocess/mcp-token");
    eventually("the token", || file.exists());
    signal(&call, Signal::SIGKILL);
    call.wait().expect("it ends");
    assert_eq!(mode(&file), 0o600);

    let open = case.path("run").join("dsh-subprocess");
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).expect("it is ours");
    let done = finish(start(
        case.command(words).env("XDG_RUNTIME_DIR", case.path("run")),
    ));
    assert_eq!(done.code(), 125);
    assert!(done.line().contains("this user alone"), "{}", done.line());
}

#[test]
fn an_address_that_is_taken_is_named_and_no_token_is_made() {
    let case = Case::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = taken.local_addr().expect("it has one").to_string();
    let done = case.call(["mcp", "--http", &address, "--token-file", "token"]);
    assert_eq!((done.code(), done.text()), (125, ""));
    assert!(
        done.line().contains(&address) && done.line().contains("in use"),
        "{}",
        done.line()
    );
    assert!(!case.path("token").exists());
}

#[test]
fn a_sessions_jobs_end_with_it_or_are_kept_until_the_server_ends() {
    for (options, kept) in [(&["--grace", "200ms"][..], false), (&["--keep-jobs"], true)] {
        let case = Case::new();
        let server = Listening::start(&case, options);
        let bearer = format!("Bearer {}", server.token());
        let session = server.begin(&bearer);
        let gate = case.gate("gate");
        let command = format!("echo $$ > '{}'; exec sleep 300", gate.path());
        let arguments = json!({ "command": command, "run_in_background": true });
        let result = server.call(&bearer, &session, "bash", &arguments);
        assert_eq!(text(&result), "started background job bash-1");
        let pid: i32 = gate.wait().parse().expect("it is a pid");
        let other = server.begin(&bearer);
        let jobs = server.call(&bearer, &other, "job_list", &json!({}));
        assert_eq!(
            jobs["structuredContent"]["jobs"],
            json!([]),
            "it is another session's"
        );

        let headers = [("Authorization", &bearer[..]), ("Mcp-Session-Id", &session[..])];
        let answer = server.send("DELETE", &headers, "");
        assert!((200..300).contains(&answer.status), "{}", answer.status);
        if kept {
            // The session is over when it is not known any more.
            eventually("the session's end", || {
                let answer = server.send("POST", &headers, &initialized().to_string());
                answer.status == 404
            });
            assert!(case.living().contains(&pid));
        } else {
            eventually("the job's end", || !case.living().contains(&pid));
        }
        server.stop();
        case.assert_nothing_lives();
    }
}
