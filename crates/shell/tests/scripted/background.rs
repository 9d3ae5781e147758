//! Commands in the background (items 123 to 126).

use std::time::Duration;

use dsh_shell::{Error, ErrorKind, ShellRequest, Status};
use dsh_subprocess::SubprocessRuntime;
use dsh_subprocess_testkit::scripted::Script;
use tokio::time::sleep;

use crate::stage::Stage;

const SECOND: Duration = Duration::from_secs(1);

fn start(stage: &Stage) -> dsh_shell::Execution {
    let spec = stage
        .shell
        .resolve(ShellRequest::new("serve"))
        .expect("it is valid");
    stage
        .shell
        .start(spec)
        .expect("a start reports its failure later")
}

#[test]
fn item_123_a_background_command_has_no_deadline() {
    let stage = Stage::new(Script::new().waits(130 * SECOND).exits(3));
    stage.play(async {
        let execution = start(&stage);
        sleep(125 * SECOND).await;
        assert_eq!(execution.status(), Status::Running);
        let ended = execution.done().await;
        assert_eq!(
            (ended.status, execution.status()),
            (Status::Completed, Status::Completed)
        );
    });
}

#[test]
fn item_123_a_failed_start_settles_as_killed_and_is_told_once() {
    let why = Error::new(
        ErrorKind::ProgramNotFound,
        "spawn",
        "no program named `bash` on PATH",
    );
    let stage = Stage::new(Script::new().waits(SECOND).fails(why));
    stage.play(async {
        let execution = start(&stage);
        assert_eq!(execution.read_output().delta, "");
        let ended = execution.done().await;
        assert_eq!(ended.status, Status::Killed);
        assert_eq!(
            execution.clone().read_output().delta,
            "[stderr]\nspawn failed: no program named `bash` on PATH"
        );
        assert_eq!(execution.read_output().delta, "");
        assert!(!execution.kill());
    });
}

#[test]
fn item_124_a_delta_is_standard_output_then_error_output_below_a_line_of_its_own() {
    let script = Script::new()
        .stdout("a")
        .stderr("b")
        .waits(SECOND)
        .stdout("c\n")
        .stderr("d\n")
        .waits(SECOND)
        .stderr("e")
        .waits(SECOND)
        .exits(0);
    let stage = Stage::new(script);
    stage.play(async {
        let execution = start(&stage);
        let mut deltas = Vec::new();
        for _ in 0..3 {
            sleep(Duration::from_millis(900)).await;
            deltas.push(execution.read_output().delta);
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(deltas, ["a\n[stderr]\nb", "c\n[stderr]\nd\n", "[stderr]\ne"]);
        execution.done().await;
        assert_eq!(execution.read_output().delta, "");
    });
}

#[test]
fn item_124_a_loss_on_either_stream_is_told() {
    for on_stderr in [false, true] {
        let text = "0123456789";
        let script = if on_stderr {
            Script::new().stderr(text)
        } else {
            Script::new().stdout(text)
        };
        let stage = Stage::with(script.exits(0), |config| config.max_output_bytes = 8);
        stage.play(async {
            let execution = start(&stage);
            execution.done().await;
            let read = execution.read_output();
            assert_eq!(read.lost, 4, "a quarter of the room is for the beginning");
            assert!(read.delta.ends_with("456789"), "{}", read.delta);
            assert_eq!(execution.read_output().lost, 0);
        });
    }
}

#[test]
fn item_125_a_kill_is_true_once_and_false_after_the_end() {
    let stage = Stage::new(Script::new());
    stage.play(async {
        let execution = start(&stage);
        sleep(SECOND).await;
        assert!(execution.kill());
        assert!(!execution.clone().kill());
        assert_eq!(execution.status(), Status::Killed, "from then on");
        assert_eq!(execution.done().await.status, Status::Killed);
        assert!(!execution.kill());
    });
    let ended = Stage::new(Script::new().exits(0));
    ended.play(async {
        let execution = start(&ended);
        execution.done().await;
        assert!(!execution.kill());
        assert_eq!(execution.status(), Status::Completed);
    });
}

#[test]
fn item_126_a_background_command_ends_with_its_world_and_not_with_its_executor() {
    let Stage { world, shell } = Stage::new(Script::new().stdout("up\n"));
    let stage = Stage {
        world,
        shell: shell.clone(),
    };
    stage.play(async {
        let execution = start(&stage);
        drop(shell);
        sleep(SECOND).await;
        assert_eq!(execution.status(), Status::Running);
        stage.world.dispose().await.expect("every tree can be ended");
        assert_eq!(execution.done().await.status, Status::Killed);
        assert_eq!(execution.read_output().delta, "up\n");
    });
}
