//! A client that knows no more of the protocol than what it writes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde_json::{Value, json};

use crate::fixture::{BOUND, Case, Finished, finish, start};

/// The protocol's revision that is asked for.
pub(super) const REVISION: &str = "2025-06-18";

/// A server on pipes, with a session begun.
pub(super) struct Client {
    server: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: u64,
}

/// What a client says first.
pub(super) fn initialize(id: u64) -> Value {
    json!({
        "jsonrpc": "2.0", "id": id, "method": "initialize",
        "params": {
            "protocolVersion": REVISION, "capabilities": {}, "clientInfo": { "name": "by hand", "version": "1" },
        },
    })
}

/// What it says next.
pub(super) fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

impl Client {
    /// Starts a server with these options.
    pub(super) fn start(case: &Case, options: &[&str]) -> Self {
        Self::over(&mut case.command([&["mcp"], options].concat()))
    }

    /// Starts this server.
    pub(super) fn over(command: &mut Command) -> Self {
        let mut server = start(command.stdin(std::process::Stdio::piped()));
        let output = BufReader::new(server.stdout.take().expect("stdout is a pipe"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut client = Self {
            input: server.stdin.take(),
            server,
            lines,
            last_id: 0,
        };
        let answer = client.request("initialize", &initialize(0)["params"]);
        assert_eq!(answer["serverInfo"]["name"], "dsh-subprocess", "{answer:#}");
        client.send(&initialized());
        client
    }

    pub(super) fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the input is open");
        writeln!(input, "{message}").expect("the server reads");
    }

    /// Sends a request, and returns its id.
    pub(super) fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }));
        self.last_id
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub(super) fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.lines.recv_timeout(BOUND).expect("there is an answer");
            let message: Value = serde_json::from_str(&line).expect("every line is JSON");
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{line}");
                return message["result"].clone();
            }
        }
    }

    #[track_caller]
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Begins to run a command.
    pub(super) fn begin_bash(&mut self, arguments: &Value) -> u64 {
        self.begin("tools/call", &json!({ "name": "bash", "arguments": arguments }))
    }

    /// Calls a tool that succeeds, and returns its result.
    #[track_caller]
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert_ne!(result["isError"], true, "{result:#}");
        result
    }

    /// Runs a command to its end, and returns what the model sees.
    #[track_caller]
    pub(super) fn bash(&mut self, command: &str) -> String {
        text(&self.call("bash", &json!({ "command": command })))
    }

    pub(super) fn server(&self) -> &Child {
        &self.server
    }

    /// Closes the client's end.
    pub(super) fn close(&mut self) {
        self.input = None;
    }

    /// Waits for the server's end.
    #[track_caller]
    pub(super) fn finish(self) -> Finished {
        let _open = self.input;
        finish(self.server)
    }
}

/// The text of a result.
#[track_caller]
pub(super) fn text(result: &Value) -> String {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {result:#}")).to_owned()
}
