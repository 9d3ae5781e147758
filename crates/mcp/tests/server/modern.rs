//! The revision of the protocol that has no handshake: over byte streams the connection is the session.

use rmcp::model::{ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::{ClientLifecycleMode, serve_client_with_lifecycle};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::fixture::{Client, Listener, Served, bounded, structured, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_a_handshake_has_its_jobs_as_well() {
    let served = Served::new();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    let server = served.server.clone();
    let session = tokio::spawn(async move { server.serve(read, write, CancellationToken::new()).await });
    let (listener, heard) = Listener::new();
    let lifecycle = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let service = bounded(serve_client_with_lifecycle(listener, ours, lifecycle))
        .await
        .expect("it is discovered");
    let mut client = Client::of(service, heard).await;

    let id = client.start("echo up; sleep 300").await;
    let read = client
        .call("job_output", json!({ "job_id": id, "wait_ms": 30_000 }))
        .await;
    assert_eq!(text(&read), "up\n[job bash-1: running]");
    assert_eq!(
        structured(&client.call("job_list", json!({})).await)["jobs"][0]["id"],
        id
    );
    bounded(client.service.close()).await.expect("the client ends");
    bounded(session)
        .await
        .expect("no panic")
        .expect("the session ends");
    assert_eq!(served.processes(), Vec::<u32>::new());
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_listens_is_told_of_new_outputs() {
    let served = Served::new();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    let server = served.server.clone();
    let session = tokio::spawn(async move { server.serve(read, write, CancellationToken::new()).await });
    let (listener, heard) = Listener::new();
    let lifecycle = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let service = bounded(serve_client_with_lifecycle(listener, ours, lifecycle))
        .await
        .expect("it is discovered");
    let mut client = Client::of(service, heard).await;
    let filter = SubscriptionFilter::builder().resources_list_changed().build();
    let mut subscription = bounded(client.service.listen(filter))
        .await
        .expect("it is acknowledged");
    client.bash("seq 1 50000").await;
    let told = bounded(subscription.next()).await.expect("it goes on");
    assert!(
        matches!(told, Some(ServerNotification::ResourceListChangedNotification(_))),
        "{told:?}"
    );
    drop(subscription);
    bounded(client.service.close()).await.expect("the client ends");
    bounded(session)
        .await
        .expect("no panic")
        .expect("the session ends");
    served.finish().await;
}
