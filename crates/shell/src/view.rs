//! From a result to what is rendered of it.

use dsh_subprocess::{Member, SpillState};

use crate::render::{RenderInput, StreamView, Whole};
use crate::result::{Cause, Collected, Fate, LeftBehind, RunResult};

/// How many processes are named; of more, the number is.
const NAMED: usize = 10;

/// How much of a command line is shown, in characters.
const LONGEST_NAME: usize = 120;

/// Makes of a result what [`render`](crate::render::render) reads.
///
/// ```no_run
/// # fn show(result: &dsh_shell::RunResult) -> Result<(), Box<dyn std::error::Error>> {
/// use dsh_shell::{render, view};
///
/// println!("{}", render::render(&view(result), &render::Style::default()).text);
/// # Ok(())
/// # }
/// ```
pub fn view(result: &RunResult) -> RenderInput {
    RenderInput {
        stdout: stream(&result.stdout),
        stderr: result.stderr.as_ref().map(stream),
        outcome: Some(result.outcome.clone()),
        timed_out: (result.cause == Cause::TimedOut).then_some(result.timeout),
        aborted: result.cause == Cause::Aborted,
        notes: result.left_behind.as_ref().map(note).into_iter().collect(),
    }
}

fn stream(collected: &Collected) -> StreamView {
    let whole = match &collected.spill {
        _ if !collected.is_truncated() => Whole::InMemory,
        SpillState::Available(spilled) => Whole::At(spilled.location.to_string()),
        _ => Whole::Unavailable,
    };
    StreamView {
        snapshot: collected.snapshot.clone(),
        whole,
    }
}

/// Says what was left behind, in a line.
fn note(left_behind: &LeftBehind) -> String {
    let members = names(&left_behind.members);
    match &left_behind.fate {
        Fate::Ended => match &left_behind.refused {
            Some(reason) => {
                format!("[ended what was left running: {members}; no job was made of it: {reason}]")
            }
            None => format!("[ended what was left running: {members}]"),
        },
        Fate::Survives(survivors) => format!("[could not end: {}]", names(survivors)),
        Fate::Continues(_) => format!("[left running: {members}]"),
        Fate::Job(id) => format!("[left running as job {id}: {members}]"),
    }
}

fn names(members: &[Member]) -> String {
    let mut names: Vec<String> = members.iter().take(NAMED).map(name).collect();
    if members.len() > NAMED {
        names.push(format!("and {} more", members.len() - NAMED));
    }
    names.join(", ")
}

/// A process in a line, whatever its command line holds.
fn name(member: &Member) -> String {
    let whole = member.to_string();
    let mut name: String = whole
        .chars()
        .take(LONGEST_NAME)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    if whole.chars().nth(LONGEST_NAME).is_some() {
        name.push('…');
    }
    name
}
