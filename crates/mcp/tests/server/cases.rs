//! Public bug reports about running commands, through the server. Each name begins with the case's number.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fixture::{Served, structured, text, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o1_a_background_child_holds_no_call_up() {
    let served = Served::new();
    let client = served.connect().await;
    for command in [
        "sleep 300 & echo fg-done",
        "(while :; do echo tick; sleep 0.05; done) & echo fg-done",
        "nohup sleep 300 & echo fg-done",
    ] {
        let result = client
            .call("bash", json!({ "command": command, "timeout_ms": 300_000 }))
            .await;
        let facts = structured(&result);
        assert_eq!(
            (&facts["exit_code"], &facts["cause"]),
            (&json!(0), &json!("ended")),
            "{command}"
        );
        assert!(text(&result).contains("fg-done"), "{command}");
        assert_eq!(facts["left_behind"]["fate"], "ended", "{command}: {facts}");
        let members = facts["left_behind"]["members"].as_array().expect("a list");
        assert!(!members.is_empty(), "{command}: {facts}");
        assert!(
            text(&result).contains("[ended what was left running: "),
            "{}",
            text(&result)
        );
        served.is_empty().await;
    }
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o3_a_timeout_ends_the_whole_pipeline() {
    let served = Served::new();
    let client = served.connect().await;
    let result = client
        .call(
            "bash",
            json!({ "command": "echo first; sleep 300 | cat | cat", "timeout_ms": 500 }),
        )
        .await;
    assert_eq!(structured(&result)["cause"], "timed_out");
    assert_eq!(structured(&result)["stdout"]["text"], "first\n");
    assert!(
        text(&result).contains("[timed out after 500ms]\n"),
        "{}",
        text(&result)
    );
    served.is_empty().await;
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o13_huge_output_is_counted_and_shortened() {
    let served = Served::new();
    let client = served.connect().await;
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("there is one");
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .expect("it has a peak");
        line.split_whitespace()
            .nth(1)
            .and_then(|kib| kib.parse::<u64>().ok())
            .expect("a number")
    };
    let before = resident();
    let (lines, line) = tokio::join!(
        client.bash("yes | head -c 500000000"),
        client.bash("head -c 300000000 /dev/zero | tr '\\0' x"),
    );
    for (facts, total) in [(&lines, 500_000_000_u64), (&line, 300_000_000)] {
        assert_eq!(facts["exit_code"], 0);
        let stdout = &facts["stdout"];
        assert_eq!(stdout["total_bytes"], total);
        assert_eq!(stdout["omitted_bytes"], total - 64_000);
        assert!(stdout["text"].as_str().is_some_and(|text| text.len() < 70_000));
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 128 << 10, "the peak grew by {grown} KiB");
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o17_a_timeout_keeps_what_was_printed() {
    let served = Served::new();
    let client = served.connect().await;
    let command = "echo CRITICAL; echo warn >&2; head -c 5000000 /dev/zero | tr '\\0' z; sleep 300";
    let result = client
        .call("bash", json!({ "command": command, "timeout_ms": 3000 }))
        .await;
    let facts = structured(&result);
    assert_eq!(
        (&facts["cause"], &facts["exit_code"]),
        (&json!("timed_out"), &Value::Null)
    );
    assert!(text(&result).starts_with("CRITICAL\n"));
    assert!(text(&result).contains("[stderr]\nwarn\n"));
    let path = facts["stdout"]["path"].as_str().expect("there is a file");
    assert_eq!(std::fs::metadata(path).expect("it is there").len(), 5_000_009);
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o18_no_byte_of_a_job_is_lost_or_read_twice() {
    const JOBS: usize = 40;
    let served = Served::new();
    let client = served.connect().await;
    let expected: String = (1..=2000)
        .map(|number| format!("{number}\n"))
        .chain(["LAST\n".to_owned()])
        .collect();
    let mut running: BTreeMap<String, String> = BTreeMap::new();
    let mut started = 0;
    let mut finished = 0;
    while finished < JOBS {
        while started < JOBS && running.len() < 8 {
            let id = client
                .start("sleep 0.$((RANDOM % 4)); seq 1 2000; echo LAST")
                .await;
            running.insert(id, String::new());
            started += 1;
        }
        let ids: Vec<String> = running.keys().cloned().collect();
        for id in ids {
            let read = client
                .call("job_output", json!({ "job_id": id, "wait_ms": 20 }))
                .await;
            let facts = structured(&read);
            let seen = running.get_mut(&id).expect("it runs");
            assert_eq!(facts["stdout"]["offset"], seen.len() as u64);
            seen.push_str(facts["stdout"]["text"].as_str().expect("a text"));
            assert_eq!(facts["stdout"]["next_offset"], seen.len() as u64);
            if facts["job"]["status"] != "running" {
                assert!(running.remove(&id).expect("it was there") == expected, "{id}");
                finished += 1;
            }
        }
    }
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o25_no_credential_of_the_host_reaches_a_command() {
    let path = std::env::var_os("PATH").expect("there is one");
    let served = Served::in_host_with(vec![
        ("PATH".into(), path),
        ("HOME".into(), "/home/agent".into()),
        ("LANG".into(), "C.UTF-8".into()),
        ("OPENAI_API_KEY".into(), "hidden-1".into()),
        ("ANTHROPIC_AUTH_TOKEN".into(), "hidden-2".into()),
        ("AWS_SECRET_ACCESS_KEY".into(), "hidden-3".into()),
        ("DSH_HOST_FACT".into(), "hidden-4".into()),
    ]);
    let client = served.connect().await;
    client
        .start("env > job; cat /proc/$$/environ >> job; touch done")
        .await;
    until("the job is done", || {
        served.directory.path().join("done").exists()
    })
    .await;
    let facts = client.bash("env; tr '\\0' '\\n' < /proc/$$/environ").await;
    let environment = facts["stdout"]["text"].as_str().expect("a text");
    let of_job = std::fs::read(served.directory.path().join("job")).expect("it is there");
    let of_job = String::from_utf8_lossy(&of_job);
    for environment in [environment, &of_job] {
        assert!(
            environment.contains("HOME=/home/agent") && environment.contains("LANG=C.UTF-8"),
            "{environment}"
        );
        assert!(!environment.contains("hidden-"), "{environment}");
    }
    for line in [
        "NO_COLOR=1",
        "TERM=dumb",
        "PAGER=cat",
        "GIT_PAGER=cat",
        "GIT_TERMINAL_PROMPT=0",
        "DSH_SHELL=1",
    ] {
        assert!(
            environment.lines().any(|own| own == line),
            "{line} in {environment}"
        );
    }
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_longer_than_one_argument_runs() {
    let served = Served::new();
    let client = served.connect().await;
    let long = "x".repeat(300_000);
    let facts = client.bash(&format!("v={long}; echo ${{#v}}")).await;
    assert_eq!(facts["stdout"]["text"], "300000\n");

    let too_long = format!("echo {}", "y".repeat(4 << 20));
    let refused = client.call("bash", json!({ "command": too_long })).await;
    assert_eq!(refused.is_error, Some(true));
    let told = text(&refused);
    assert!(
        told.len() < 1000 && told.chars().any(|c| c.is_ascii_digit()),
        "{told}"
    );
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o27_a_directory_that_cannot_be_used_is_named_with_its_cause() {
    let served = Served::new();
    let client = served.connect().await;
    let below = |name: &str| served.directory.path().join(name);
    std::fs::write(below("file"), "").expect("it is written");
    std::fs::create_dir(below("removed")).expect("it is made");
    client
        .call(
            "bash",
            json!({ "command": "rmdir ../removed", "workdir": "removed" }),
        )
        .await;
    for (workdir, cause) in [("removed", "does not exist"), ("file", "not a directory")] {
        for in_background in [false, true] {
            let arguments =
                json!({ "command": "echo hi", "workdir": workdir, "run_in_background": in_background });
            let refused = client.call("bash", arguments).await;
            assert_eq!(refused.is_error, Some(true));
            let told = text(&refused);
            assert!(told.contains(workdir) && told.contains(cause), "{told}");
        }
    }
    std::fs::create_dir(below("with blank\nand line")).expect("it is made");
    let odd = client
        .call(
            "bash",
            json!({ "command": "echo hi", "workdir": "with blank\nand line" }),
        )
        .await;
    assert_eq!(structured(&odd)["stdout"]["text"], "hi\n");
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o19_nothing_can_prompt() {
    let served = Served::new();
    let client = served.connect().await;
    let result = client
        .call(
            "bash",
            json!({ "command": "cat; read -r x </dev/tty; echo rc=$?", "timeout_ms": 300_000 }),
        )
        .await;
    assert_eq!(structured(&result)["stdout"]["text"], "rc=1\n");
    assert_eq!(structured(&result)["cause"], "ended");
    served.is_empty().await;
    client.close().await;
    served.finish().await;
}
