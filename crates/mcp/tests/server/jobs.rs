//! Jobs, from their start to their end.

use serde_json::{Value, json};

use super::fixture::{Served, structured, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_started_followed_and_ended() {
    let served = Served::new();
    let client = served.connect().await;
    let started = client
        .call(
            "bash",
            json!({ "command": "echo one; sleep 300", "description": "wait long", "run_in_background": true }),
        )
        .await;
    assert_eq!(text(&started), "started background job bash-1");
    assert_eq!(structured(&started)["kind"], "background");

    let read = client
        .call("job_output", json!({ "job_id": "bash-1", "wait_ms": 30_000 }))
        .await;
    assert_eq!(text(&read), "one\n[job bash-1: running]");
    let read = client.call("job_output", json!({ "job_id": "bash-1" })).await;
    assert_eq!(text(&read), "(no new output)\n[job bash-1: running]");
    let stdout = structured(&read)["stdout"].clone();
    assert_eq!(
        (&stdout["offset"], &stdout["next_offset"]),
        (&json!(4), &json!(4))
    );

    let listed = client.call("job_list", json!({})).await;
    assert_eq!(text(&listed), "[job bash-1: running] wait long");
    assert_eq!(structured(&listed)["jobs"][0]["label"], "wait long");

    let killed = client.call("job_kill", json!({ "job_id": "bash-1" })).await;
    assert_eq!(structured(&killed)["result"], "stopped");
    assert_eq!(structured(&killed)["job"]["status"], "killed");
    assert_eq!(text(&killed), "[job bash-1: killed, signal: SIGTERM]");
    let again = client.call("job_kill", json!({ "job_id": "bash-1" })).await;
    assert_eq!(structured(&again)["result"], "already_finished");
    served.is_empty().await;
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_jobs_last_words_and_exit_code_come_together() {
    let served = Served::new();
    let client = served.connect().await;
    let id = client.start("echo out; echo err >&2; exit 4").await;
    let mut seen = String::new();
    let last = loop {
        let read = client
            .call("job_output", json!({ "job_id": id, "wait_ms": 30_000 }))
            .await;
        seen.push_str(&text(&read));
        if structured(&read)["job"]["status"] != "running" {
            break structured(&read);
        }
    };
    assert!(
        seen.contains("out\n") && seen.contains("[stderr]\nerr\n"),
        "{seen}"
    );
    assert!(seen.ends_with("[job bash-1: completed, exit code: 4]"), "{seen}");
    assert_eq!(
        (&last["job"]["status"], &last["job"]["reported"]),
        (&json!("completed"), &json!(true))
    );
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_goes_on_past_a_stream_that_has_ended() {
    let served = Served::new();
    let client = served.connect().await;
    let id = client
        .start("exec >&-; read -t 1 x < <(sleep 1); echo late >&2; sleep 300")
        .await;
    let read = client
        .call("job_output", json!({ "job_id": id, "wait_ms": 30_000 }))
        .await;
    assert_eq!(structured(&read)["stderr"]["text"], "late\n");
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_that_left_memory_is_counted_and_found_in_the_file() {
    let served = Served::new();
    let client = served.connect().await;
    let id = client.start("seq 1 50000; echo done >&2; sleep 300").await;
    let stderr = format!("dsh-output:///{id}/stderr");
    loop {
        let page = client.read(&stderr).await.expect("the stream is there");
        if serde_json::to_string(&page).expect("it is JSON").contains("done") {
            break;
        }
        tokio::task::yield_now().await;
    }
    let read = client.call("job_output", json!({ "job_id": id })).await;
    let stdout = structured(&read)["stdout"].clone();
    let lost = stdout["lost_bytes"].as_u64().expect("a number");
    assert_eq!(stdout["total_bytes"], 288_894);
    assert_eq!(
        lost + stdout["text"].as_str().expect("a text").len() as u64,
        288_894
    );
    let path = stdout["path"].as_str().expect("there is a file");
    let notice = format!("[{lost} bytes were dropped from memory; full output: {path}]\n");
    assert!(text(&read).starts_with(&notice), "{}", &text(&read)[..200]);
    assert_eq!(std::fs::metadata(path).expect("it is there").len(), 288_894);
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_jobs_than_allowed_are_refused_before_they_start() {
    let served = Served::new();
    let client = served.connect().await;
    for _ in 0..10 {
        client.start("sleep 300").await;
    }
    let refused = client
        .call(
            "bash",
            json!({ "command": "touch started", "run_in_background": true }),
        )
        .await;
    assert_eq!(refused.is_error, Some(true));
    assert!(text(&refused).contains("10 jobs"), "{}", text(&refused));
    assert!(!served.directory.path().join("started").exists());
    client.close().await;
    served.is_empty().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_leaves_running_goes_on_as_a_job_where_configured() {
    let served = Served::with(|shell, _| shell.left_behind = dsh_shell::LeftBehindPolicy::Keep);
    let client = served.connect().await;
    let facts = client.bash("(sleep 300; echo over) & echo fg").await;
    let left = &facts["left_behind"];
    assert_eq!(left["fate"], "job", "{facts}");
    let id = left["job_id"].as_str().expect("it has an id").to_owned();
    let tree = structured(&client.call("process_info", json!({ "job_id": id })).await);
    assert!(
        tree["members"]
            .as_array()
            .is_some_and(|members| !members.is_empty()),
        "{tree}"
    );
    let killed = structured(&client.call("job_kill", json!({ "job_id": id })).await);
    assert_eq!(killed["result"], Value::from("stopped"));
    served.is_empty().await;
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_job_can_be_made_of_is_ended_and_the_reason_told() {
    let served = Served::with(|shell, _| shell.left_behind = dsh_shell::LeftBehindPolicy::Keep);
    let client = served.connect().await;
    for _ in 0..10 {
        client.start("sleep 300").await;
    }
    let result = client
        .call("bash", json!({ "command": "sleep 300 & echo fg" }))
        .await;
    let left = structured(&result)["left_behind"].clone();
    assert_eq!((&left["fate"], &left["job_id"]), (&json!("ended"), &Value::Null));
    assert!(
        left["refused"]
            .as_str()
            .is_some_and(|reason| reason.contains("10 jobs")),
        "{left}"
    );
    assert!(
        text(&result).contains("; no job was made of it: 10 jobs"),
        "{}",
        text(&result)
    );
    client.close().await;
    served.is_empty().await;
    served.finish().await;
}
