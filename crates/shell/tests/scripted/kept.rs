//! What is kept of a command is let go of with its last handle.

use std::time::Duration;

use dsh_shell::{Fate, LeftBehindPolicy, ShellRequest, StreamName};
use dsh_subprocess_testkit::scripted::{Script, ScriptedMember};

use crate::stage::Stage;

/// A stream's spill lives as long as its handle, so a spill that is gone shows that nobody holds one.
#[test]
fn a_kept_command_does_not_hold_itself() {
    let server = ScriptedMember::new(77, "server --watch").holding(StreamName::Stdout);
    let stage = Stage::with(
        Script::new().stdout("0123456789").bears(server).exits(0),
        |config| {
            config.left_behind = LeftBehindPolicy::Keep;
            config.max_output_bytes = 8;
        },
    );
    stage.play(async {
        let spec = stage
            .shell
            .resolve(ShellRequest::new("server &"))
            .expect("it is valid");
        let result = stage.shell.run(spec).await.expect("it is run");
        assert_eq!(stage.world.spilled_streams(), 1);
        let Some(Fate::Continues(execution)) = result.left_behind.as_ref().map(|left| left.fate.clone())
        else {
            panic!("{result:?}")
        };
        drop(result);
        assert!(execution.kill());
        execution.done().await;
        assert_eq!(stage.world.spilled_streams(), 1, "there is a handle");
        drop(execution);
        // The task that saw to it ends in its own time.
        tokio::time::sleep(Duration::from_secs(1)).await;
    });
    assert_eq!(stage.world.spilled_streams(), 0);
}

/// Each handle to a command that goes on gives the same result.
#[test]
fn a_kept_command_gives_its_result_to_everybody() {
    let server = ScriptedMember::new(77, "server --watch");
    let stage = Stage::with(Script::new().bears(server).exits(0), |config| {
        config.left_behind = LeftBehindPolicy::Keep;
    });
    stage.play(async {
        let spec = stage
            .shell
            .resolve(ShellRequest::new("server &"))
            .expect("it is valid");
        let execution = stage.shell.execute(spec).expect("it starts");
        for result in [execution.result().await, execution.clone().result().await] {
            let left_behind = result.expect("it is run").left_behind.expect("it goes on");
            assert_eq!(left_behind.members[0].command, "server --watch");
            assert!(matches!(left_behind.fate, Fate::Continues(_)), "{left_behind:?}");
        }
        execution.kill();
        execution.done().await;
    });
}
