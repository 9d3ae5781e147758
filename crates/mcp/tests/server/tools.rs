//! What each tool takes and answers.

use rmcp::model::ContentBlock;
use serde_json::{Value, json};

use super::fixture::{Served, bounded, structured, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_says_what_it_takes_answers_and_does() {
    let served = Served::new();
    let client = served.connect().await;
    let names: Vec<&str> = client.tools().iter().map(|tool| &*tool.name).collect();
    assert_eq!(
        names,
        ["bash", "job_output", "job_kill", "job_list", "process_info"]
    );
    for tool in client.tools() {
        assert!(tool.description.as_ref().is_some_and(|text| text.len() > 20));
        let input = Value::Object(tool.input_schema.as_ref().clone());
        assert_eq!(input["type"], "object");
        assert_eq!(input["additionalProperties"], false);
        jsonschema::validator_for(&input).expect("its input schema is one");
        let output = tool.output_schema.as_ref().expect("it has an output schema");
        let output = Value::Object(output.as_ref().clone());
        assert_eq!(output["type"], "object");
        jsonschema::validator_for(&output).expect("its output schema is one");
    }
    let hints = |name: &str| {
        let tool = client
            .tools()
            .iter()
            .find(|tool| tool.name == name)
            .expect("it is listed");
        let hints = tool.annotations.clone().expect("it has hints");
        (hints.read_only_hint, hints.destructive_hint)
    };
    assert_eq!(hints("bash"), (Some(false), Some(true)));
    assert_eq!(hints("job_kill"), (Some(false), Some(true)));
    for name in ["job_output", "job_list", "process_info"] {
        assert_eq!(hints(name).0, Some(true), "{name}");
    }
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_answered_in_text_and_in_structure() {
    let served = Served::new();
    let client = served.connect().await;
    let result = client
        .call(
            "bash",
            json!({ "command": "echo out; echo err >&2; exit 3", "timeout_ms": 20_000 }),
        )
        .await;
    assert_eq!(text(&result), "out\n[stderr]\nerr\n[exit code: 3]");
    assert_eq!(result.is_error, Some(false));
    let facts = structured(&result);
    assert_eq!(facts["kind"], "foreground");
    assert_eq!((&facts["exit_code"], &facts["signal"]), (&json!(3), &Value::Null));
    assert_eq!(
        (&facts["cause"], &facts["timeout_ms"]),
        (&json!("ended"), &json!(20_000))
    );
    assert_eq!(
        facts["stdout"],
        json!({ "text": "out\n", "total_bytes": 4, "omitted_bytes": 0, "uri": null, "path": null })
    );
    assert_eq!(facts["stderr"]["text"], "err\n");
    assert_eq!(facts["left_behind"], Value::Null);
    assert!(facts["pid"].as_u64().is_some_and(|pid| pid > 1));
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_is_a_result() {
    let served = Served::new();
    let client = served.connect().await;
    let facts = client.bash("kill -USR1 $$").await;
    assert_eq!(
        (&facts["exit_code"], &facts["signal"]),
        (&Value::Null, &json!("SIGUSR1"))
    );
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_longer_timeout_than_allowed_is_shortened_and_told() {
    let served = Served::new();
    let client = served.connect().await;
    let result = client
        .call("bash", json!({ "command": "true", "timeout_ms": u64::MAX }))
        .await;
    assert_eq!(structured(&result)["timeout_ms"], 600_000);
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relative_workdir_begins_at_the_servers() {
    let served = Served::new();
    std::fs::create_dir(served.directory.path().join("below")).expect("a directory is made");
    let client = served.connect().await;
    let result = client
        .call("bash", json!({ "command": "pwd -P", "workdir": "below" }))
        .await;
    let below = served
        .directory
        .path()
        .canonicalize()
        .expect("it is there")
        .join("below");
    assert_eq!(
        structured(&result)["stdout"]["text"],
        format!("{}\n", below.display())
    );
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_done_names_the_input_and_the_cause() {
    let served = Served::new();
    let client = served.connect().await;
    for (tool, arguments, words) in [
        ("bash", json!({}), &["`command`", "missing"][..]),
        ("bash", json!({ "command": "" }), &["`command`", "empty"]),
        ("bash", json!({ "command": 7 }), &["`command`", "7"]),
        (
            "bash",
            json!({ "command": "true", "timeout_ms": 0 }),
            &["`timeout_ms`", "at least 1", "0"],
        ),
        (
            "bash",
            json!({ "command": "true", "timeout": 5 }),
            &["`timeout`", "unknown", "`timeout_ms`"],
        ),
        (
            "bash",
            json!({ "command": "true", "workdir": "/no/such" }),
            &["/no/such"],
        ),
        (
            "bash",
            json!({ "command": "true", "workdir": "/no/such", "run_in_background": true }),
            &["/no/such"],
        ),
        ("bash", json!({ "command": "true\u{0}" }), &["NUL"]),
        (
            "job_output",
            json!({ "job_id": "bash-77" }),
            &["`bash-77`", "`bash-1`"],
        ),
        (
            "job_output",
            json!({ "job_id": "bash-1", "wait_ms": 600_001 }),
            &["`wait_ms`", "600000"],
        ),
        ("job_kill", json!({ "job_id": "../../x" }), &["../../x"]),
        ("job_list", json!({ "all": true }), &["`all`", "no arguments"]),
        ("process_info", json!({ "job_id": "bash-77" }), &["`bash-77`"]),
    ] {
        let result = client.call(tool, arguments.clone()).await;
        assert_eq!(
            result.is_error,
            Some(true),
            "{tool} {arguments}: {}",
            text(&result)
        );
        for word in words {
            assert!(
                text(&result).contains(word),
                "{tool} {arguments}: {}",
                text(&result)
            );
        }
    }
    let unknown = client
        .try_call("rm", json!({}))
        .await
        .expect_err("there is no such tool");
    assert!(unknown.to_string().contains("`rm`"), "{unknown}");
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nulls_are_what_was_left_out() {
    let served = Served::new();
    let client = served.connect().await;
    let arguments =
        json!({ "command": "echo x", "workdir": null, "timeout_ms": null, "run_in_background": null });
    assert_eq!(text(&client.call("bash", arguments).await), "x\n[exit code: 0]");
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn truncated_output_comes_with_a_link_to_the_whole() {
    let served = Served::new();
    let client = served.connect().await;
    let result = client.call("bash", json!({ "command": "seq 1 50000" })).await;
    let facts = structured(&result);
    let uri = facts["stdout"]["uri"].as_str().expect("it is truncated");
    assert_eq!(facts["stdout"]["total_bytes"], 288_894);
    assert!(
        facts["stdout"]["omitted_bytes"]
            .as_u64()
            .is_some_and(|omitted| omitted > 200_000)
    );
    assert_eq!(facts["stderr"]["uri"], Value::Null);
    let [_, ContentBlock::ResourceLink(link)] = result.content.as_slice() else {
        panic!("a text and a link: {:?}", result.content);
    };
    assert_eq!((link.uri.as_str(), link.size), (uri, Some(288_894)));
    let path = facts["stdout"]["path"].as_str().expect("there is a file");
    assert!(text(&result).contains(&format!("[output truncated; full output: {path}]")));
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_info_tells_of_the_world_and_of_a_jobs_tree() {
    let served = Served::new();
    let client = served.connect().await;
    let world = structured(&client.call("process_info", json!({})).await);
    assert_eq!(world["max_timeout_ms"], 600_000);
    assert_eq!(world["shell"], json!(["bash"]));
    assert_eq!(
        world["workdir"],
        served.directory.path().to_str().expect("it is UTF-8")
    );
    assert_eq!(world["live_jobs"], 0);

    let id = client.start("sleep 300 & echo ready; wait").await;
    let output = json!({ "job_id": id, "wait_ms": 30_000 });
    assert_eq!(
        structured(&client.call("job_output", output).await)["stdout"]["text"],
        "ready\n"
    );
    // The child is a copy of the shell until it has become the other program.
    let tree = bounded(Box::pin(async {
        loop {
            let tree = structured(&client.call("process_info", json!({ "job_id": id })).await);
            let members = tree["members"].as_array().expect("a list");
            if members.iter().any(|member| member["command"] == "sleep 300") {
                break tree;
            }
        }
    }))
    .await;
    assert_eq!(tree["mechanism"], world["mechanism"]);
    assert_eq!(tree["pid"], tree["members"][0]["pid"]);
    assert_eq!(
        structured(&client.call("process_info", json!({})).await)["live_jobs"],
        1
    );
    client.close().await;
    served.finish().await;
}
