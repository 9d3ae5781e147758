//! A consumer written once, against the seam alone.
//!
//! It is what a language-server host and a command executor have in common: run a program to its end with bounded
//! output, hold a conversation with another, and leave nothing behind. It names no provider, and every world runs it.

use dsh_subprocess::{Error, Outcome, Output, SpawnSpec, Stdin, SubprocessRuntime, TextCursor};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::World;
use super::watchdog::within;

/// Runs a command to its end and gives its text, as an executor does.
async fn execute(world: &dyn SubprocessRuntime, spec: SpawnSpec) -> Result<(Outcome, String), Error> {
    let process = world.spawn(spec)?.scoped();
    let mut cursor = TextCursor::new(0);
    let mut text = String::new();
    if let Some(output) = process.collected_stdout() {
        while !output.is_sealed() {
            output.changed(cursor.offset()).await;
            text.push_str(&cursor.read(output).text);
        }
        text.push_str(&cursor.read(output).text);
    }
    let outcome = process.done().await?;
    process.terminate().await?;
    Ok((outcome, text))
}

/// Asks a server that answers each line, as a language-server host does, and closes it.
async fn converse(
    world: &dyn SubprocessRuntime,
    spec: SpawnSpec,
    questions: &[&str],
) -> Result<Vec<String>, Error> {
    let mut process = world.spawn(spec)?.scoped();
    process.started().await?;
    let (mut input, mut output) = (process.stdin().expect("piped"), process.stdout().expect("piped"));
    let mut answers = Vec::new();
    for question in questions {
        input
            .write_all(question.as_bytes())
            .await
            .expect("the server reads");
        let mut answer = vec![0; question.len()];
        output.read_exact(&mut answer).await.expect("the server answers");
        answers.push(String::from_utf8_lossy(&answer).into_owned());
    }
    drop(input);
    process.done().await?;
    process.terminate().await?;
    Ok(answers)
}

/// A consumer that knows only `&dyn SubprocessRuntime` runs unchanged in every world.
pub async fn a_consumer_written_once_runs_in_every_world(world: &World) {
    let runtime = world.runtime();
    let done = within(
        "the executor",
        execute(&*runtime, world.spec(&["echo", "one", "world"])),
    )
    .await;
    let (outcome, text) = done.expect("the command runs");
    assert_eq!((outcome.code(), text.as_str()), (Some(0), "one world\n"));

    let mut server = world.spec(&["cat"]);
    (server.stdin, server.stdout) = (Stdin::Pipe, Output::Pipe);
    let questions = ["initialize\n", "héllo\n"];
    let answers = within("the conversation", converse(&*runtime, server, &questions)).await;
    assert_eq!(answers.expect("the server runs"), questions);
    within("disposal", runtime.dispose())
        .await
        .expect("nothing is left to end");
}
