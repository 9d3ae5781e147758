//! A host without any privilege, whose tree has a daemon.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::time::Duration;

use dsh_subprocess::{ErrorOutput, Output, SpawnSpec, Stdin, SubprocessRuntime};
use dsh_subprocess_local::{LocalRuntime, OwnershipChoice};

const DAEMON: &str = "trap 'echo asked; exit' TERM; echo $$; while :; do sleep 1000; done";

fn main() -> Result<(), dsh_subprocess::Error> {
    let world = LocalRuntime::builder()
        .ownership(OwnershipChoice::Reaper)
        .build()?;
    let _process = world.spawn(SpawnSpec {
        argv: ["sh", "-c", r#"setsid sh -c "$1" & wait"#, "sh", DAEMON].map(Into::into).to_vec(),
        cwd: "/".into(),
        env: BTreeMap::new(),
        stdin: Stdin::Ignore,
        stdout: Output::Inherit,
        stderr: ErrorOutput::Own(Output::Inherit),
        grace: Duration::from_secs(20),
        drain: Duration::from_secs(1),
        control: false,
        cancel: Default::default(),
    })?;
    loop {
        std::thread::park();
    }
}
