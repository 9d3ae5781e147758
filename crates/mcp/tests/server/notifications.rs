//! What is told without having been asked.

use std::time::Duration;

use serde_json::json;

use super::fixture::{Served, Word, content, structured};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_command_tells_how_far_it_is() {
    let served = Served::with(|_, config| config.progress_interval = Duration::from_millis(50));
    let mut client = served.connect().await;
    let command = "printf 'step 1\\r\\033[31mstep 2\\033[0m'; while [ ! -e go ]; do sleep 0.02; done; echo";
    let go = served.directory.path().join("go");
    let (service, heard) = (client.service.peer().clone(), &mut client.heard);
    let call = tokio::spawn(async move {
        service
            .call_tool(super::fixture::parameters("bash", json!({ "command": command })))
            .await
    });
    let mut progress = Vec::new();
    while progress.len() < 3 {
        let told = heard
            .wait_for(|word| match word {
                Word::Progress(told) => Some(told),
                _ => None,
            })
            .await;
        if told
            .message
            .as_ref()
            .is_some_and(|message| message.ends_with(": step 2"))
        {
            progress.push(told.progress);
        }
    }
    assert!(progress.windows(2).all(|pair| pair[0] < pair[1]), "{progress:?}");
    std::fs::write(go, "").expect("it is written");
    call.await.expect("no panic").expect("the call is answered");
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_job_is_told_once() {
    let served = Served::new();
    let mut client = served.connect().await;
    let id = client.start("exit 5").await;
    let told = client
        .heard
        .wait_for(|word| match word {
            Word::Log(data) => Some(data),
            _ => None,
        })
        .await;
    assert_eq!(
        told,
        json!({
            "message": format!("job {id} has ended: completed, exit code: 5"),
            "job_id": id, "status": "completed", "detail": "exit code: 5",
        })
    );
    let job = structured(&client.call("job_output", json!({ "job_id": id })).await)["job"].clone();
    assert_eq!(job["reported"], true);
    assert!(
        !client
            .heard
            .rest()
            .iter()
            .any(|word| matches!(word, Word::Log(_)))
    );
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_was_waited_for_is_no_news() {
    let served = Served::new();
    let mut client = served.connect().await;
    let id = client.start("while [ ! -e go ]; do sleep 0.02; done").await;
    let (service, waited) = (client.service.peer().clone(), id.clone());
    let wait = tokio::spawn(async move {
        let arguments = json!({ "job_id": waited, "wait_ms": 60_000 });
        service
            .call_tool(super::fixture::parameters("job_output", arguments))
            .await
    });
    // Calls of one session are taken up in order, so the wait is under way when this one is answered.
    client.bash("touch go").await;
    let read = wait.await.expect("no panic").expect("the wait is answered");
    assert_eq!(structured(&read)["job"]["status"], "completed");
    // A second job's end is told, so one of the first would have been told before.
    let second = client.start("true").await;
    let told = client
        .heard
        .wait_for(|word| match word {
            Word::Log(data) => Some(data["job_id"].clone()),
            _ => None,
        })
        .await;
    assert_eq!(told, second.as_str());
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(deprecated, reason = "clients of today choose their log level this way")]
async fn a_client_that_wants_no_information_is_told_of_no_end() {
    use rmcp::model::{LoggingLevel, SetLevelRequestParams};
    let served = Served::new();
    let mut client = served.connect().await;
    client
        .service
        .set_level(SetLevelRequestParams::new(LoggingLevel::Warning))
        .await
        .expect("the level is set");
    let id = client.start("echo over > over").await;
    content(&served.directory.path().join("over")).await;
    let done = client
        .call("job_output", json!({ "job_id": id, "wait_ms": 30_000 }))
        .await;
    assert_eq!(structured(&done)["job"]["status"], "completed");
    let untold = client.start("exit 6").await;
    let reported = loop {
        let jobs = structured(&client.call("job_list", json!({})).await);
        if jobs["jobs"][1]["status"] == "completed" {
            break jobs["jobs"][1]["reported"].clone();
        }
    };
    assert_eq!(reported, false, "nobody was told");
    assert!(
        !client
            .heard
            .rest()
            .iter()
            .any(|word| matches!(word, Word::Log(_)))
    );

    // Who wants to know after all is told then.
    client
        .service
        .set_level(SetLevelRequestParams::new(LoggingLevel::Info))
        .await
        .expect("the level is set");
    let told = client
        .heard
        .wait_for(|word| match word {
            Word::Log(data) => Some(data),
            _ => None,
        })
        .await;
    assert_eq!(told["job_id"], untold);
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_outputs_are_told_of() {
    let served = Served::new();
    let mut client = served.connect().await;
    client.bash("seq 1 50000").await;
    client
        .heard
        .wait_for(|word| matches!(word, Word::ResourcesChanged).then_some(()))
        .await;
    client.close().await;
    served.finish().await;
}
