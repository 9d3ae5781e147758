//! Whose is what.

use rmcp::service::ServiceError;
use serde_json::json;

use super::fixture::{Served, structured, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_sessions_job_looks_like_none() {
    let served = Served::new();
    let (owner, other) = (served.connect().await, served.connect().await);
    let id = owner.start("echo secret; sleep 300").await;
    let read = owner
        .call("job_output", json!({ "job_id": id, "wait_ms": 30_000 }))
        .await;
    assert!(text(&read).starts_with("secret"));

    assert_eq!(
        structured(&other.call("job_list", json!({})).await),
        json!({ "jobs": [] })
    );
    for tool in ["job_output", "job_kill", "process_info"] {
        let foreign = other.call(tool, json!({ "job_id": id })).await;
        let unknown = other.call(tool, json!({ "job_id": "bash-99" })).await;
        assert_eq!(foreign.is_error, Some(true));
        assert_eq!(text(&foreign).replace(&id, "bash-99"), text(&unknown), "{tool}");
    }
    let uri = format!("dsh-output:///{id}/stdout");
    let refused = |error: ServiceError| error.to_string().replace(&id, "bash-99");
    let foreign = other
        .read(&uri)
        .await
        .map_err(refused)
        .expect_err("it is not theirs");
    let unknown = other
        .read("dsh-output:///bash-99/stdout")
        .await
        .map_err(refused)
        .expect_err("there is none");
    assert_eq!(foreign, unknown);
    assert!(
        other
            .service
            .list_all_resources()
            .await
            .expect("a list")
            .is_empty()
    );

    let jobs = structured(&owner.call("job_list", json!({})).await);
    assert_eq!(jobs["jobs"][0]["status"], "running");
    other.close().await;
    let jobs = structured(&owner.call("job_list", json!({})).await);
    assert_eq!(
        jobs["jobs"][0]["status"], "running",
        "another session's end ends nothing of ours"
    );
    owner.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn truncated_output_of_another_session_cannot_be_read() {
    let served = Served::new();
    let (owner, other) = (served.connect().await, served.connect().await);
    let facts = owner.bash("seq 1 50000").await;
    let uri = facts["stdout"]["uri"].as_str().expect("it is truncated");
    owner.read(uri).await.expect("the owner reads it");
    let error = other.read(uri).await.expect_err("the other does not").to_string();
    assert!(error.contains("no such output"), "{error}");
    other.close().await;
    owner.close().await;
    served.finish().await;
}
