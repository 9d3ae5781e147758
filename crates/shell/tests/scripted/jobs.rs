//! Commands as jobs, where their processes do not end when they should.

use std::sync::Arc;
use std::time::Duration;

use dsh_jobs::{JobError, JobInfo, JobStatus, Jobs, Kill, Limits, NewJob, Work};
use dsh_shell::{JOB_KIND, ShellError, ShellRequest};
use dsh_subprocess_testkit::scripted::{Reaction, Script};
use tokio_util::sync::CancellationToken;

use crate::stage::Stage;

const LONG: Duration = Duration::from_secs(3600);

/// Starts the stage's command as a job, ends it if asked to, waits for its settlement, and ends the session.
fn settled(stage: &Stage, kill: bool) -> JobInfo {
    stage.play(async {
        let jobs = Jobs::new(Limits::default()).expect("the limits are right");
        let session = jobs.open("agent").expect("the owner is new");
        let spec = stage
            .shell
            .resolve(ShellRequest::new("work"))
            .expect("it is valid");
        let id = session
            .start(NewJob::new(JOB_KIND, "work"), || {
                let execution = stage.shell.start(spec)?;
                Ok::<_, ShellError>(Arc::new(execution) as Arc<dyn Work>)
            })
            .expect("it starts");
        if kill {
            assert_eq!(session.kill(&id).expect("it runs"), Kill::Stopping);
        }
        let info = session
            .wait(&id, LONG, &CancellationToken::new())
            .await
            .expect("it is awaited");
        let ended = tokio::time::timeout(LONG, session.end()).await;
        assert!(
            matches!(ended, Ok(Ok(()) | Err(JobError::Orphaned(_)))),
            "{info:?}"
        );
        info
    })
}

/// As a program does that runs as somebody else, and may not be signalled: its output stays open for as long as it runs.
#[test]
fn a_job_whose_shell_cannot_be_ended_fails_and_names_it() {
    let script = Script::new()
        .starts_as(41)
        .on_term(Reaction::Ignores)
        .on_kill(Reaction::Ignores);
    let info = settled(&Stage::new(script), true);
    assert_eq!(info.status, JobStatus::Failed);
    let detail = info.detail.expect("it says why");
    assert!(detail.contains("could not be ended: 41"), "{detail}");
}

#[test]
fn a_job_whose_owner_is_lost_settles() {
    let script = Script::new()
        .starts_as(41)
        .waits(Duration::from_secs(1))
        .loses_ownership("its warden was killed");
    let info = settled(&Stage::new(script), false);
    assert!(info.status.is_settled(), "{info:?}");
    let detail = info.detail.expect("it says why");
    assert!(detail.contains("its warden was killed"), "{detail}");
}
