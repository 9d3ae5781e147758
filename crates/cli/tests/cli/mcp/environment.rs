//! What commands know of the server's environment.

use super::client::Client;
use crate::fixture::Case;

#[test]
fn o25_credentials_stay_behind_unless_they_are_named() {
    let case = Case::new();
    let options = [
        "--keep",
        "KEPT_TOKEN",
        "--keep",
        "DSH_KEPT",
        "--env",
        "GIVEN_KEY=given",
    ];
    let mut command = case.command([&["mcp"], &options[..]].concat());
    command.envs([
        ("OPENAI_API_KEY", "sk-hidden"),
        ("GITHUB_TOKEN", "ghp_hidden"),
        ("DSH_OWN", "hidden"),
        ("KEPT_TOKEN", "kept"),
        ("DSH_KEPT", "kept too"),
    ]);
    let mut client = Client::over(&mut command);
    let shown = client.bash("env; tr '\\0' '\\n' </proc/$$/environ");
    assert!(!shown.contains("hidden"), "{shown}");
    for variable in [
        "KEPT_TOKEN=kept\n",
        "DSH_KEPT=kept too\n",
        "GIVEN_KEY=given\n",
        "PATH=/usr/local/bin:/usr/bin:/bin\n",
        "TERM=dumb\n",
    ] {
        assert!(shown.contains(variable), "{variable}: {shown}");
    }
    client.close();
    assert_eq!(client.finish().code(), 0);
}
