//! Outputs, a page at a time.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ContentBlock, ResourceContents};
use serde_json::{Value, json};

use super::fixture::{Client, Served, structured};

/// One page: its bytes, whether they came as text, and what is said of them.
async fn page(client: &Client, uri: &str) -> (Vec<u8>, bool, Value) {
    let read = client.read(uri).await.expect("the page is there");
    let [contents] = read.contents.as_slice() else {
        panic!("one page: {:?}", read.contents);
    };
    let (bytes, is_text, meta) = match contents {
        ResourceContents::TextResourceContents { text, meta, .. } => (text.clone().into_bytes(), true, meta),
        ResourceContents::BlobResourceContents { blob, meta, .. } => {
            (STANDARD.decode(blob).expect("it is base64"), false, meta)
        }
        other => panic!("text or bytes: {other:?}"),
    };
    let meta = serde_json::to_value(meta).expect("it is JSON");
    (bytes, is_text, meta)
}

/// Pages through a whole stream.
async fn whole(client: &Client, uri: &str, length: u64) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let offset = all.len();
        let (bytes, _, meta) = page(client, &format!("{uri}?offset={offset}&length={length}")).await;
        assert!(bytes.len() as u64 <= length);
        assert_eq!(meta["offset"], offset as u64);
        all.extend(bytes);
        assert_eq!(meta["next_offset"], all.len() as u64);
        if meta["complete"] == true {
            assert_eq!(meta["total_bytes"], all.len() as u64);
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_text_are_the_whole_output() {
    let served = Served::new();
    let client = served.connect().await;
    let command =
        "for i in $(seq 1 3000); do echo \"line $i → 漢字 🦀 and somewhat more text beside it\"; done";
    let facts = client.bash(&format!("{command} | tee copy")).await;
    let uri = facts["stdout"]["uri"].as_str().expect("it is truncated");
    let copy = std::fs::read(served.directory.path().join("copy")).expect("it was copied");
    for length in [777, 10_001, 512 << 10] {
        assert!(whole(&client, uri, length).await == copy, "in pages of {length}");
    }
    let (first, is_text, meta) = page(&client, uri).await;
    assert!(is_text && first.len() <= 64 << 10 && first.len() > (64 << 10) - 4);
    assert_eq!(meta["complete"], false);
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o12_bytes_that_are_no_text_come_unchanged() {
    let served = Served::new();
    let client = served.connect().await;
    let facts = client.bash("head -c 300000 /dev/urandom | tee copy").await;
    let uri = facts["stdout"]["uri"].as_str().expect("it is truncated");
    let copy = std::fs::read(served.directory.path().join("copy")).expect("it was copied");
    assert!(whole(&client, uri, 65_537).await == copy);
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_is_to_read_is_listed_with_its_size() {
    let served = Served::new();
    let client = served.connect().await;
    client.bash("seq 1 50000 >&2").await;
    let id = client.start("echo some; sleep 300").await;
    client
        .call("job_output", json!({ "job_id": id, "wait_ms": 30_000 }))
        .await;
    let listed: Vec<(String, Option<u64>)> = client
        .service
        .list_all_resources()
        .await
        .expect("a list")
        .into_iter()
        .map(|resource| (resource.uri, resource.size))
        .collect();
    assert_eq!(
        listed,
        [
            ("dsh-output:///run-1/stderr".to_owned(), Some(288_894)),
            (format!("dsh-output:///{id}/stdout"), Some(5)),
        ]
    );
    let templates = client
        .service
        .list_all_resource_templates()
        .await
        .expect("a list");
    assert_eq!(
        templates[0].uri_template,
        "dsh-output:///{id}/{stream}{?offset,length}"
    );

    let (bytes, _, meta) = page(&client, &format!("dsh-output:///{id}/stdout?offset=2")).await;
    assert_eq!(bytes, b"me\n");
    assert_eq!(
        meta,
        json!({ "offset": 2, "next_offset": 5, "total_bytes": 5, "complete": false })
    );
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_said_in_errors() {
    let served = Served::new();
    let client = served.connect().await;
    client.bash("seq 1 50000").await;
    for (uri, words) in [
        (
            "dsh-output:///run-1/stdout?length=524289",
            &["524289", "524288"][..],
        ),
        ("dsh-output:///run-1/stdout?length=0", &["length is 0"]),
        ("dsh-output:///run-1/stdout?offset=288895", &["288895", "288894"]),
        ("dsh-output:///run-1/stdout?offset=x", &["`offset`"]),
        ("dsh-output:///run-1/stderr", &["no such output"]),
        ("dsh-output:///run-2/stdout", &["run-2", "no such output"]),
        ("dsh-output:///run-1/stdin", &["stdin"]),
        ("file:///etc/passwd", &["file:///etc/passwd"]),
    ] {
        let error = client.read(uri).await.expect_err(uri).to_string();
        for word in words {
            assert!(error.contains(word), "{uri}: {error}");
        }
    }
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_file_is_gone_what_is_in_memory_is_offered() {
    let served = Served::with(|shell, _| shell.max_spill_bytes = 100_000);
    let client = served.connect().await;
    let facts = client.bash("seq 1 50000").await;
    assert_eq!(facts["stdout"]["path"], Value::Null);
    let uri = facts["stdout"]["uri"].as_str().expect("it is truncated");
    let error = client
        .read(&format!("{uri}?offset=100000"))
        .await
        .expect_err("the middle is gone")
        .to_string();
    assert!(
        error.contains("In memory are 16000 bytes from 0 and 48000 bytes from 240894"),
        "{error}"
    );
    let (head, _, _) = page(&client, &format!("{uri}?length=16000")).await;
    assert_eq!((head.len(), &head[..6]), (16_000, &b"1\n2\n3\n"[..]));
    let (tail, _, meta) = page(&client, &format!("{uri}?offset=240894")).await;
    assert!(tail.ends_with(b"\n50000\n"));
    assert_eq!(meta["complete"], true);
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_somebody_else_spoiled_the_file_what_is_in_memory_is_offered() {
    let served = Served::new();
    let client = served.connect().await;
    for (run, spoil) in [
        (
            1,
            (|path| std::fs::remove_file(path)) as fn(&str) -> std::io::Result<()>,
        ),
        (2, |path| std::fs::File::create(path).map(drop)),
    ] {
        let facts = client.bash("seq 1 50000").await;
        let path = facts["stdout"]["path"].as_str().expect("there is a file");
        spoil(path).expect("it is a file of ours");
        let uri = format!("dsh-output:///run-{run}/stdout");
        let (head, _, _) = page(&client, &format!("{uri}?length=16000")).await;
        assert_eq!((head.len(), &head[..6]), (16_000, &b"1\n2\n3\n"[..]));
        let error = client
            .read(&format!("{uri}?offset=100000"))
            .await
            .expect_err("the middle is gone")
            .to_string();
        assert!(
            error.contains("In memory are 16000 bytes from 0 and 48000 bytes from 240894"),
            "{error}"
        );
    }
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_last_outputs_are_kept_and_the_files_of_the_others_go() {
    let served = Served::with(|_, config| config.kept_outputs = 2);
    let client = served.connect().await;
    let mut paths = Vec::new();
    for _ in 0..3 {
        let facts = client.bash("seq 1 50000").await;
        paths.push(
            facts["stdout"]["path"]
                .as_str()
                .expect("there is a file")
                .to_owned(),
        );
    }
    super::fixture::until("the first file is gone", || {
        !std::path::Path::new(&paths[0]).exists()
    })
    .await;
    assert!(std::path::Path::new(&paths[1]).exists() && std::path::Path::new(&paths[2]).exists());
    client
        .read("dsh-output:///run-1/stdout")
        .await
        .expect_err("it was given up");
    client
        .read("dsh-output:///run-2/stdout")
        .await
        .expect("it is kept");
    client.close().await;
    super::fixture::until("all files go with the session", || {
        !paths.iter().any(|path| std::path::Path::new(path).exists())
    })
    .await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_jobs_output_is_paged_while_it_grows() {
    let served = Served::new();
    let client = served.connect().await;
    let id = client.start("seq 1 100000").await;
    let uri = format!("dsh-output:///{id}/stdout");
    let expected: String = (1..=100_000).map(|number| number.to_string() + "\n").collect();
    assert!(whole(&client, &uri, 50_000).await == expected.as_bytes());
    let done = structured(
        &client
            .call("job_output", json!({ "job_id": id, "wait_ms": 30_000 }))
            .await,
    );
    assert_eq!(done["stdout"]["uri"], uri);
    client.close().await;
    served.finish().await;
}

/// A line that is too long to be shown is nowhere in the answer, and no file has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_clipped_is_kept_whole() {
    let served = Served::new();
    let client = served.connect().await;
    let command = "printf '[%09990d]\\n' 0; echo short >&2";
    let result = client.call("bash", json!({ "command": command })).await;
    let facts = structured(&result);
    assert_eq!(
        (&facts["stdout"]["total_bytes"], &facts["stdout"]["omitted_bytes"]),
        (&json!(9993), &json!(0))
    );
    let shown = facts["stdout"]["text"].as_str().expect("a text");
    assert!(shown.contains(" of 9992 bytes of this line left out"), "{shown}");
    let [_, ContentBlock::ResourceLink(link)] = result.content.as_slice() else {
        panic!("a text and a link: {:?}", result.content);
    };
    assert_eq!(facts["stdout"]["uri"], json!(link.uri));
    assert_eq!(facts["stderr"]["uri"], Value::Null);
    assert_eq!(
        whole(&client, &link.uri, 4000).await,
        format!("[{:09990}]\n", 0).as_bytes()
    );
    client.close().await;
    served.finish().await;
}
