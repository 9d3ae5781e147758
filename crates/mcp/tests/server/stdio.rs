//! Lines that are no messages.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;

use super::fixture::{Served, bounded};

/// A client that says anything.
struct Plain {
    write: WriteHalf<DuplexStream>,
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Plain {
    async fn say(&mut self, line: &[u8]) {
        bounded(async {
            self.write.write_all(line).await.expect("the session goes on");
            self.write.write_all(b"\n").await.expect("the session goes on");
        })
        .await;
    }

    async fn hear(&mut self) -> Value {
        let line = bounded(self.read.next_line()).await.expect("it can be read");
        serde_json::from_str(&line.expect("the session goes on")).expect("each line is a message")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_lines_are_answered_and_end_nothing() {
    let served = Served::new();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    let server = served.server.clone();
    let session = tokio::spawn(async move { server.serve(read, write, CancellationToken::new()).await });
    let (read, write) = tokio::io::split(ours);
    let mut client = Plain {
        write,
        read: BufReader::new(read).lines(),
    };

    client.say(b"Content-Length: 5").await;
    assert_eq!(
        client.hear().await["error"]["code"],
        -32700,
        "before there is a session"
    );
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "plain", "version": "1" } } });
    client.say(initialize.to_string().as_bytes()).await;
    let begun = client.hear().await;
    assert_eq!(begun["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(begun["result"]["serverInfo"]["name"], "dsh-subprocess");
    assert!(begun["result"]["capabilities"]["logging"].is_object());
    client
        .say(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;

    client.say(b"\xff\xfe{").await;
    assert_eq!(client.hear().await["error"]["code"], -32700);
    let long = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {
        "name": "bash", "arguments": { "command": format!(": {}", "x".repeat(9 << 20)) } } });
    client.say(long.to_string().as_bytes()).await;
    let answer = client.hear().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(5), &json!(-32600))
    );
    assert!(
        answer["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("8388608")),
        "{answer}"
    );
    client.say(br#"[{"jsonrpc":"2.0","id":6,"method":"ping"}]"#).await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
    client
        .say(br#"{"jsonrpc":"2.0","id":"seven","method":"tools/call","params":{"arguments":{}}}"#)
        .await;
    let answer = client.hear().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!("seven"), &json!(-32602))
    );
    assert_eq!(
        answer["error"]["message"],
        "the parameters of `tools/call` are missing, or not what the protocol says they are"
    );
    let unknown = json!({ "jsonrpc": "2.0", "id": "eight", "method": "m".repeat(1 << 20) });
    client.say(unknown.to_string().as_bytes()).await;
    let answer = client.hear().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!("eight"), &json!(-32601))
    );
    assert!(answer.to_string().len() < 300, "{answer}");
    client
        .say(br#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"job_list"}}"#)
        .await;
    let answer = client.hear().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&Value::Null, &json!(-32600))
    );

    client.say(br#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#).await;
    assert_eq!(
        client.hear().await,
        json!({ "jsonrpc": "2.0", "id": 8, "result": {} })
    );
    drop(client);
    bounded(session)
        .await
        .expect("no panic")
        .expect("the session ends");
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_message_that_begins_nothing_is_an_error_without_its_content() {
    let served = Served::new();
    let message = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"s3cret\",\"progress\":1}}\n";
    let session = served
        .server
        .serve(&message[..], tokio::io::sink(), CancellationToken::new());
    let error = bounded(session)
        .await
        .expect_err("there was no session")
        .to_string();
    assert_eq!(error, "no session was begun: the first message is a notification");
    let session = served
        .server
        .serve(&b""[..], tokio::io::sink(), CancellationToken::new());
    bounded(session)
        .await
        .expect("a client that says nothing is no error");
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_cannot_be_answered_is_an_error_in_plain_words() {
    let served = Served::new();
    let message = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"plain\",\"version\":\"1\"}}}\n";
    let (ours, theirs) = tokio::io::duplex(64);
    drop(theirs);
    let session = served.server.serve(&message[..], ours, CancellationToken::new());
    let error = bounded(session)
        .await
        .expect_err("there was no session")
        .to_string();
    assert_eq!(
        error,
        "no session was begun: broken pipe, when sending initialize response"
    );
    served.finish().await;
}
