//! One test's shell, on a runtime whose processes carry a mark.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dsh_jobs::{JobSession, Jobs, Limits, NewJob, Work};
use dsh_shell::{
    Cause, Collected, Config, Execution, Fate, JOB_KIND, OutputReader, RunResult, Shell, ShellError,
    ShellRequest,
};
use dsh_subprocess::SubprocessRuntime;
use tokio::runtime::{Builder, Runtime};

use crate::fixture::{BOUND, Case, Tier, eventually};

/// Longer than any test lasts.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// A shell over the runtime of a [`Case`], and an executor for it.
pub(crate) struct Stage {
    executor: Runtime,
    pub(crate) shell: Shell,
    pub(crate) jobs: Jobs,
    pub(crate) case: Case,
}

impl Stage {
    /// A shell whose timeout and grace no test waits out.
    #[track_caller]
    pub(crate) fn new(tier: Tier) -> Self {
        Self::with(tier, |_| {})
    }

    /// A shell with a configuration of its own.
    #[track_caller]
    pub(crate) fn with(tier: Tier, change: impl FnOnce(&mut Config)) -> Self {
        let case = Case::new(tier);
        let world = Arc::new(case.runtime.clone());
        Self::of(case, world, change)
    }

    /// A shell over a world that is the case's runtime in another form.
    #[track_caller]
    pub(crate) fn of(
        case: Case,
        world: Arc<dyn SubprocessRuntime>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = Config {
            cwd: Some("/".into()),
            timeout: LONG,
            grace: LONG,
            ..Config::default()
        };
        config
            .env
            .insert("DSH_CASE".into(), Some(case.marker.as_str().into()));
        change(&mut config);
        let limits = Limits {
            live_per_owner: 1000,
            settled_per_owner: 1000,
            ..Limits::default()
        };
        Self {
            executor: Builder::new_multi_thread()
                .worker_threads(2)
                .enable_time()
                .build()
                .expect("threads are to be had"),
            shell: Shell::new(world, config).expect("the configuration is valid"),
            jobs: Jobs::new(limits).expect("the limits are valid"),
            case,
        }
    }

    /// Waits for a future, with a bound that only a failure meets.
    #[track_caller]
    pub(crate) fn within<F: Future>(&self, future: F) -> F::Output {
        self.within_bound(BOUND, future)
    }

    /// As [`within`](Self::within), for what takes longer than anything else here.
    #[track_caller]
    pub(crate) fn within_bound<F: Future>(&self, bound: Duration, future: F) -> F::Output {
        let bounded = async { tokio::time::timeout(bound, future).await };
        self.executor
            .block_on(bounded)
            .unwrap_or_else(|_| panic!("nothing happened within {bound:?}"))
    }

    /// Runs a command.
    #[track_caller]
    pub(crate) fn run(&self, command: &str) -> RunResult {
        self.run_request(ShellRequest::new(command))
    }

    /// Runs a command that must have a result.
    #[track_caller]
    pub(crate) fn run_request(&self, request: ShellRequest) -> RunResult {
        self.try_run(request).expect("the command is run")
    }

    /// Runs a command.
    #[track_caller]
    pub(crate) fn try_run(&self, request: ShellRequest) -> Result<RunResult, ShellError> {
        let spec = self.shell.resolve(request)?;
        self.within(self.shell.run(spec))
    }

    /// Runs a command that may take so long.
    #[track_caller]
    pub(crate) fn run_for(&self, command: &str, timeout: Duration) -> RunResult {
        let mut request = ShellRequest::new(command);
        request.timeout = Some(timeout);
        self.run_request(request)
    }

    /// Runs a command, and cancels it once its output has a line with this word.
    #[track_caller]
    pub(crate) fn cancel_at(&self, command: &str, word: &str) -> RunResult {
        let request = ShellRequest::new(command);
        let cancel = request.cancel.clone();
        let execution = self.execute(request);
        self.wait_for_word(execution.stdout(), word);
        cancel.cancel();
        self.within(execution.result()).expect("the command is run")
    }

    /// Starts a command as `run` does, and returns its handle.
    #[track_caller]
    pub(crate) fn execute(&self, request: ShellRequest) -> Execution {
        let _inside = self.executor.enter();
        let spec = self.shell.resolve(request).expect("the request is valid");
        self.shell.execute(spec).expect("the command starts")
    }

    /// Starts a command in the background.
    #[track_caller]
    pub(crate) fn start(&self, command: &str) -> Execution {
        let _inside = self.executor.enter();
        let spec = self
            .shell
            .resolve(ShellRequest::new(command))
            .expect("the request is valid");
        self.shell.start(spec).expect("the command starts")
    }

    /// Starts a command as a job.
    #[track_caller]
    pub(crate) fn start_job(&self, session: &JobSession, command: &str) -> dsh_jobs::JobId {
        let _inside = self.executor.enter();
        let spec = self
            .shell
            .resolve(ShellRequest::new(command))
            .expect("the request is valid");
        let start = || Ok::<_, ShellError>(Arc::new(self.shell.start(spec)?) as Arc<dyn Work>);
        session
            .start(NewJob::new(JOB_KIND, command), start)
            .expect("the registry has room")
    }

    /// Waits until a stream has a complete line with this word.
    #[track_caller]
    pub(crate) fn wait_for_word(&self, output: &OutputReader, word: &str) {
        self.within(async {
            loop {
                let (total, sealed) = (output.total(), output.is_sealed());
                let text = output.text();
                if text
                    .split_inclusive('\n')
                    .any(|line| line.trim_end() == word && line.ends_with('\n'))
                {
                    return;
                }
                assert!(!sealed, "the output ended without `{word}`: {text:?}");
                output.changed(total).await;
            }
        });
    }

    /// Disposes of the registry and the runtime: nothing that carries the mark is left.
    #[track_caller]
    pub(crate) fn end(self) {
        self.within(self.jobs.dispose()).expect("every job can be ended");
        self.within(self.case.runtime.dispose())
            .expect("every tree can be ended");
        self.case.assert_gone();
    }

    /// As [`end`](Self::end), where processes got away from a mechanism that lets them: those are ended here.
    #[track_caller]
    pub(crate) fn end_with_strays(self) {
        self.case.end_strays();
        eventually("they are gone", || self.case.living().is_empty());
        self.end();
    }
}

/// Everything on a stream that fits in memory.
#[track_caller]
pub(crate) fn whole(collected: &Collected) -> Vec<u8> {
    assert_eq!(collected.snapshot.dropped(), 0, "it fits");
    [&collected.snapshot.head[..], &collected.snapshot.tail[..]].concat()
}

/// Standard output as text.
#[track_caller]
pub(crate) fn stdout(result: &RunResult) -> String {
    String::from_utf8(whole(&result.stdout)).expect("it is text")
}

/// Error output as text.
#[track_caller]
pub(crate) fn stderr(result: &RunResult) -> String {
    let stderr = result.stderr.as_ref().expect("it is a stream of its own");
    String::from_utf8(whole(stderr)).expect("it is text")
}

/// It ended by itself, with this exit code.
#[track_caller]
pub(crate) fn assert_exit(result: &RunResult, code: u32) {
    assert_eq!(
        (result.cause, result.outcome.code()),
        (Cause::Ended, Some(code)),
        "{result:?}"
    );
}

/// Returns the processes that the result says could not be ended.
pub(crate) fn survivors(result: &RunResult) -> Vec<String> {
    match result.left_behind.as_ref().map(|left_behind| &left_behind.fate) {
        Some(Fate::Survives(members)) => members.iter().map(|member| member.command.clone()).collect(),
        _ => Vec::new(),
    }
}
