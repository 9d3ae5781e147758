//! How a session ends that this side ends.

use std::pin::Pin;

use dsh_mcp::client::ServerError;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, RequestId};
use rmcp::transport::Transport;
use tokio_test::{assert_pending, task};

use crate::fixture::{
    LONG, Log, SHORT, bash, behind_a_launcher, closed, connected, python, runs, said, spawned, within, world,
};

type Sending = Pin<Box<dyn Future<Output = Result<(), ServerError>> + Send>>;

const EOF: &str = include_str!("eof.sh");
const TERM: &str = include_str!("term.sh");
const STUBBORN: &str = include_str!("stubborn.sh");
const INNER: &str = include_str!("inner.sh");
const UNREAD: &str = include_str!("unread.sh");
const CHATTY: &str = include_str!("chatty.sh");

#[tokio::test]
async fn o9_a_server_that_ends_with_its_input_gets_no_signal() {
    let (world, log) = (world(), Log::new());
    let mut command = bash(EOF, &log.path());
    command.limits.close_wait = LONG;
    let mut transport = spawned(&world, command).await;
    said(&mut transport).await;
    within(transport.close()).await.expect("it ends");
    assert_eq!(log.lines(), ["eof"]);
    assert!(!runs(transport.process().pid().expect("it was started")));
}

#[tokio::test]
async fn o9_a_server_that_ignores_the_end_of_its_input_ends_on_term() {
    let (world, log) = (world(), Log::new());
    let mut command = bash(TERM, &log.path());
    command.limits.close_wait = SHORT;
    command.limits.grace = LONG.min(dsh_subprocess::MAX_GRACE);
    let mut transport = spawned(&world, command).await;
    said(&mut transport).await;
    within(transport.close()).await.expect("it ends");
    assert_eq!(log.lines(), ["term"]);
    let outcome = transport.process().handle().exited().await;
    assert!(outcome.expect("it is known").success());
}

#[tokio::test]
async fn o9_a_server_that_ignores_both_is_killed() {
    let (world, log) = (world(), Log::new());
    let mut command = bash(STUBBORN, &log.path());
    command.limits.close_wait = SHORT;
    command.limits.grace = SHORT;
    let mut transport = spawned(&world, command).await;
    said(&mut transport).await;
    within(transport.close()).await.expect("it ends");
    assert_eq!(log.lines(), ["term"]);
    let outcome = transport.process().handle().exited().await.expect("it is known");
    assert_eq!(outcome.to_string(), "ended by SIGKILL");
}

#[tokio::test]
async fn o9_closing_twice_and_closing_a_dead_server_do_nothing() {
    let (world, log) = (world(), Log::new());
    let mut transport = spawned(&world, bash(STUBBORN, &log.path())).await;
    said(&mut transport).await;
    let server = transport.process();
    world
        .signal(server.pid().expect("it was started"), 9)
        .expect("it is ours");
    within(server.gone()).await.expect("it is dead");
    for _ in 0..2 {
        within(transport.close()).await.expect("nothing is left to do");
    }
    assert!(within(transport.receive()).await.is_none());
    assert!(log.lines().is_empty(), "no signal was sent");
}

#[tokio::test]
async fn o8_a_server_behind_a_launcher_ends_with_it() {
    let world = world();
    let mut command = behind_a_launcher(INNER);
    command.limits.close_wait = SHORT;
    let mut transport = spawned(&world, command).await;
    let inner: u32 = said(&mut transport).await.parse().expect("it is an id");
    let launcher = transport.process().pid().expect("it was started");
    assert!(inner != launcher && runs(inner) && runs(launcher));
    within(transport.close()).await.expect("both end");
    assert!(!runs(inner) && !runs(launcher));
}

#[tokio::test]
async fn a_server_that_never_reads_delays_no_close() {
    let (world, log) = (world(), Log::new());
    let mut command = bash(UNREAD, &log.path());
    command.limits.close_wait = SHORT;
    let mut transport = spawned(&world, command).await;
    said(&mut transport).await;
    // More than a pipe takes, so it is held up; and one behind it.
    let mut sends = Vec::new();
    for text in ["x".repeat(4 * 1024 * 1024), String::new()] {
        let params = CallToolRequestParams::new(text);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let message = ClientJsonRpcMessage::request(request, RequestId::Number(1));
        let send: Sending = Box::pin(transport.send(message));
        sends.push(task::spawn(send));
    }
    for send in &mut sends {
        assert_pending!(send.poll());
    }
    within(transport.close()).await.expect("it ends");
    for send in sends {
        let sent = within(send.into_inner()).await;
        assert!(matches!(sent, Err(ServerError::Closed)), "{sent:?}");
    }
}

/// Else it would block in a write, and never see the end of its input.
#[tokio::test]
async fn what_a_server_still_writes_is_read_while_it_is_closed() {
    let (world, log) = (world(), Log::new());
    let mut command = bash(CHATTY, &log.path());
    command.limits.close_wait = LONG;
    let mut transport = spawned(&world, command).await;
    said(&mut transport).await;
    within(transport.close()).await.expect("it ends");
    assert_eq!(log.lines(), ["eof"]);
}

#[tokio::test]
async fn a_dropped_transport_gives_its_server_the_same_end() {
    let (world, log) = (world(), Log::new());
    let mut command = bash(EOF, &log.path());
    command.limits.close_wait = LONG;
    let mut transport = spawned(&world, command).await;
    said(&mut transport).await;
    let server = transport.process();
    drop(transport);
    within(server.gone()).await.expect("it ends");
    assert_eq!(log.lines(), ["eof"]);
}

#[tokio::test]
async fn a_dropped_service_ends_its_server() {
    let world = world();
    let (client, server) = connected(&world, python(&[])).await;
    drop(client);
    within(server.gone()).await.expect("it ends");
}

#[test]
fn a_transport_that_is_dropped_outside_of_a_runtime_ends_its_server() {
    let (world, log) = (world(), Log::new());
    let runtime = tokio::runtime::Runtime::new().expect("there are threads");
    let transport = runtime.block_on(async {
        let mut transport = spawned(&world, bash(TERM, &log.path())).await;
        said(&mut transport).await;
        transport
    });
    drop(runtime);
    let server = transport.process();
    drop(transport);
    world.block_on(server.gone()).expect("it ends");
    assert_eq!(log.lines(), ["term"]);
}

#[test]
fn a_runtime_that_ends_before_the_server_does_not_keep_it_alive() {
    let (world, log) = (world(), Log::new());
    let mut command = bash(TERM, &log.path());
    command.limits.close_wait = LONG;
    let runtime = tokio::runtime::Runtime::new().expect("there are threads");
    let server = runtime.block_on(async {
        let mut transport = spawned(&world, command).await;
        said(&mut transport).await;
        transport.process()
    });
    drop(runtime);
    world.block_on(server.gone()).expect("it ends");
    assert_eq!(log.lines(), ["term"]);
}

/// The rest of the ladder is left to whoever closes again.
#[tokio::test]
async fn a_close_that_is_given_up_is_completed_by_the_next() {
    let (world, log) = (world(), Log::new());
    let mut command = bash(EOF, &log.path());
    command.limits.close_wait = LONG;
    let mut transport = spawned(&world, command).await;
    said(&mut transport).await;
    {
        let mut close = task::spawn(transport.close());
        assert_pending!(close.poll());
    }
    within(transport.close()).await.expect("it ends");
    assert_eq!(log.lines(), ["eof"]);
}

#[tokio::test]
async fn a_call_in_the_middle_does_not_delay_the_end() {
    let world = world();
    let (client, server) = connected(&world, python(&[])).await;
    let call = crate::fixture::call_in_vain(&client, &server, "never").await;
    closed(client, &server).await;
    assert!(within(call).await.expect("it does not panic").is_err());
}
