//! What a server sees of the host's environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::sync::Arc;

use dsh_mcp::client::ServerTransport;
use rmcp::ServiceExt;
use serde_json::json;

use crate::fixture::{call, closed, python, within, world};

#[tokio::test]
async fn o25_a_server_sees_no_secret_but_its_own() {
    let ambient: Vec<(OsString, OsString)> = [
        ("OPENAI_API_KEY", "sk-host".into()),
        ("ANTHROPIC_AUTH_TOKEN", "token-host".into()),
        ("AWS_SECRET_ACCESS_KEY", "secret-host".into()),
        ("GITHUB_TOKEN", "ghp-host".into()),
        ("DSH_API_KEY", "own-host".into()),
        ("HOME", "/home/somebody".into()),
        ("LANG", "C.UTF-8".into()),
        ("PATH", std::env::var_os("PATH").expect("the tests have one")),
        ("USER", "somebody".into()),
    ]
    .map(|(name, value): (&str, OsString)| (name.into(), value))
    .to_vec();
    let path = std::env::var("PATH").expect("the tests have one");
    let world = world().with_ambient(Arc::new(ambient));
    let mut commands = [python(&[]), python(&[])];
    commands[0]
        .env
        .insert("GITHUB_TOKEN".into(), Some("ghp-explicit".into()));
    let debug = format!("{:?}", commands[0]);
    assert!(
        debug.contains("GITHUB_TOKEN") && !debug.contains("ghp-explicit"),
        "{debug}"
    );

    for (command, own) in commands.into_iter().zip([Some("ghp-explicit"), None]) {
        let transport = within(ServerTransport::spawn(&world, command)).await;
        let transport = transport.expect("the program is there");
        let server = transport.process();
        let client = within(().serve(transport)).await.expect("it shakes hands");
        let seen = call(&client, "environment", json!({})).await;
        let seen: BTreeMap<String, String> = serde_json::from_str(&seen).expect("it is an object");
        assert_eq!(seen.get("GITHUB_TOKEN").map(String::as_str), own);
        assert_eq!(seen["HOME"], "/home/somebody");
        assert_eq!(seen["LANG"], "C.UTF-8");
        // A wrapper of Python may have put more before it.
        assert!(seen["PATH"].ends_with(&path), "{}", seen["PATH"]);
        assert_eq!(seen["USER"], "somebody");
        let pid = server.pid().expect("it was started");
        let kernels = fs::read(format!("/proc/{pid}/environ")).expect("it is ours");
        let kernels = String::from_utf8_lossy(&kernels).into_owned();
        for place in [format!("{seen:?}"), kernels] {
            assert!(!place.contains("-host"), "{place}");
        }
        closed(client, &server).await;
    }
}
