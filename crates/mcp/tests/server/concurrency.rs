//! Many calls, and many sessions, at once.

use serde_json::json;
use tokio::task::JoinSet;

use super::fixture::{Served, bounded, parameters, structured, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_calls_at_once_have_their_own_answers() {
    let served = Served::new();
    let client = served.connect().await;
    let mut calls = JoinSet::new();
    for number in 0..64 {
        let peer = client.service.peer().clone();
        calls.spawn(async move {
            let command = format!("echo {number}; exit {}", number % 7);
            let result = peer
                .call_tool(parameters("bash", json!({ "command": command })))
                .await;
            (number, result.expect("the call is answered"))
        });
    }
    let mut answered = 0;
    while let Some(call) = bounded(calls.join_next()).await {
        let (number, result) = call.expect("no panic");
        assert_eq!(text(&result), format!("{number}\n[exit code: {}]", number % 7));
        answered += 1;
    }
    assert_eq!(answered, 64);
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_beyond_the_limit_are_refused_and_the_others_go_on() {
    let served = Served::with(|_, config| config.max_calls = 4);
    let client = served.connect().await;
    let mut calls = JoinSet::new();
    for number in 0..5 {
        let peer = client.service.peer().clone();
        let command = format!("touch up-{number}; while [ ! -e go ]; do sleep 0.02; done");
        calls.spawn(async move {
            peer.call_tool(parameters("bash", json!({ "command": command })))
                .await
        });
    }
    let refused = bounded(calls.join_next()).await.expect("there is one");
    let refused = refused.expect("no panic").expect("it is answered");
    assert_eq!(refused.is_error, Some(true));
    assert!(text(&refused).starts_with("4 calls"), "{}", text(&refused));
    std::fs::write(served.directory.path().join("go"), "").expect("it is written");
    while let Some(call) = bounded(calls.join_next()).await {
        let result = call.expect("no panic").expect("it is answered");
        assert_eq!(structured(&result)["exit_code"], 0);
    }
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_beside_each_other_do_not_meet() {
    let served = Served::new();
    let mut clients = Vec::new();
    for number in 0..8 {
        let client = served.connect().await;
        let id = client.start(&format!("echo of {number}; sleep 300")).await;
        clients.push((client, id));
    }
    for (number, (client, id)) in clients.iter().enumerate() {
        let read = client
            .call("job_output", json!({ "job_id": id, "wait_ms": 30_000 }))
            .await;
        assert_eq!(structured(&read)["stdout"]["text"], format!("of {number}\n"));
    }
    for (client, _) in clients {
        client.close().await;
    }
    assert_eq!(served.processes(), Vec::<u32>::new());
    served.finish().await;
}
