//! The kinds of commands, after the cases that harnesses met with: each is checked, and each leaves nothing.

use std::sync::Arc;
use std::time::Duration;

use dsh_jobs::{JobStatus, Kill, NewJob, Work};
use dsh_shell::{
    Cause, ErrorKind, Fate, JOB_KIND, RunResult, ShellError, ShellRequest, SpillState, StreamName, hand_over,
    render, view,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio_util::sync::CancellationToken;

use super::Scene;
use crate::stage::{assert_exit, stderr, stdout, survivors, whole};

/// How long a command of these may take that must be begun by then.
const SOON: Duration = Duration::from_millis(150);

impl Scene {
    /// Plays the command of this number.
    pub(super) async fn play(&self, number: usize) {
        match number % 20 {
            0 => self.o01_a_quiet_holder().await,
            1 => self.o01_a_chatty_holder().await,
            2 => self.o01_a_holder_that_becomes_a_job().await,
            3 => self.o02_an_escape_that_a_process_group_can_only_name().await,
            4 => self.o03_a_pipeline_that_takes_too_long().await,
            5 => self.o04_a_member_that_ignores_sigterm().await,
            6 => self.o06_a_signal_to_its_own_group().await,
            7 => self.o06_a_timeout_right_after_the_start(number).await,
            8 => self.o07_a_lock_that_is_released(number).await,
            9 => self.o12_bytes_of_all_kinds().await,
            10 => self.o13_a_spilled_output().await,
            11 => self.o15_a_progress_bar().await,
            12 => self.o16_two_streams_in_one().await,
            13 => self.o18_a_followed_job().await,
            14 => self.o18_a_killed_job().await,
            15 => self.o19_a_question_to_nobody().await,
            16 => self.o20_a_large_input().await,
            17 => self.o24_an_end_of_the_shell(number / 20).await,
            18 => self.o27_a_missing_directory().await,
            _ => self.a_text_longer_than_one_argument().await,
        }
    }

    async fn run(&self, request: ShellRequest) -> Result<RunResult, ShellError> {
        self.shell.run(self.shell.resolve(request)?).await
    }

    async fn result(&self, request: ShellRequest) -> RunResult {
        self.run(request).await.expect("the command is run")
    }

    async fn of(&self, command: &str) -> RunResult {
        self.result(ShellRequest::new(command)).await
    }

    fn assert_ended(result: &RunResult) {
        assert_exit(result, 0);
        let left_behind = result.left_behind.as_ref().expect("something was left behind");
        assert!(matches!(left_behind.fate, Fate::Ended), "{left_behind:?}");
    }

    async fn o01_a_quiet_holder(&self) {
        let result = self.of("sleep 300 & echo done").await;
        Self::assert_ended(&result);
        assert_eq!(stdout(&result), "done\n");
    }

    async fn o01_a_chatty_holder(&self) {
        let result = self
            .of("(while :; do echo tick; sleep 0.05; done) & echo fg-done")
            .await;
        Self::assert_ended(&result);
        assert!(stdout(&result).contains("fg-done\n"));
    }

    async fn o01_a_holder_that_becomes_a_job(&self) {
        let request = ShellRequest::new("sleep 300 & echo done");
        let spec = self.keeping.resolve(request).expect("it is valid");
        let mut result = self.keeping.run(spec).await.expect("the command is run");
        hand_over(&self.session, "sleeper", &mut result).await;
        let left_behind = result.left_behind.expect("something was left behind");
        let Fate::Job(id) = &left_behind.fate else {
            panic!("{left_behind:?}")
        };
        assert_eq!(self.session.kill(id).expect("it can be ended"), Kill::Stopping);
        let never = CancellationToken::new();
        let info = self
            .session
            .wait(id, Duration::from_secs(60), &never)
            .await
            .expect("it ends");
        assert_eq!(info.status, JobStatus::Killed);
    }

    async fn o02_an_escape_that_a_process_group_can_only_name(&self) {
        let result = self.of("setsid -f sleep 300; sleep 0.05; echo done").await;
        assert_exit(&result, 0);
        assert_eq!(stdout(&result), "done\n");
        if self.tier.owns_all() {
            Self::assert_ended(&result);
            return;
        }
        assert_eq!(survivors(&result).len(), 1, "{result:?}");
        for member in result.left_behind.expect("it is named").members {
            let pid = member.pid.expect("this world has ids");
            kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).expect("it is there, and ours");
        }
    }

    async fn o03_a_pipeline_that_takes_too_long(&self) {
        let mut request = ShellRequest::new("echo begun; sleep 300 | cat | cat");
        request.timeout = Some(SOON);
        let result = self.result(request).await;
        assert_eq!(result.cause, Cause::TimedOut);
        assert!(["", "begun\n"].contains(&&stdout(&result)[..]), "{result:?}");
    }

    async fn o04_a_member_that_ignores_sigterm(&self) {
        let mut request = ShellRequest::new("(trap '' TERM; while :; do sleep 1; done) & sleep 300");
        request.timeout = Some(SOON);
        let result = self.result(request).await;
        assert_eq!(result.cause, Cause::TimedOut);
        assert!(result.left_behind.is_none(), "{result:?}");
    }

    async fn o06_a_signal_to_its_own_group(&self) {
        let result = self.of("kill -TERM 0; sleep 300").await;
        assert_eq!(
            (result.cause, result.outcome.to_string()),
            (Cause::Ended, "ended by SIGTERM".to_owned())
        );
    }

    async fn o06_a_timeout_right_after_the_start(&self, number: usize) {
        let mut request = ShellRequest::new("sleep 300");
        request.timeout = Some(Duration::from_micros(1 + number as u64));
        assert_eq!(self.result(request).await.cause, Cause::TimedOut);
    }

    async fn o07_a_lock_that_is_released(&self, number: usize) {
        let lock = self.directory.path().join(format!("lock-{number}"));
        let script =
            "trap 'rm -f \"$0\"; exit 143' TERM; touch \"$0\"; echo locked; while :; do sleep 0.05; done";
        let mut request = ShellRequest::new(format!(
            "sh -c '{}' {}; :",
            script.replace('\'', "'\\''"),
            lock.display()
        ));
        request.timeout = Some(Duration::from_secs(100));
        let cancel = request.cancel.clone();
        let execution = self
            .shell
            .execute(self.shell.resolve(request).expect("it is valid"))
            .expect("it starts");
        execution.stdout().changed(0).await;
        cancel.cancel();
        let result = execution.result().await.expect("the command is run");
        assert_eq!((result.cause, &stdout(&result)[..]), (Cause::Aborted, "locked\n"));
        assert!(!lock.exists());
    }

    async fn o12_bytes_of_all_kinds(&self) {
        let result = self
            .of(r"printf 'a\xe2'; printf '\x80\x94b\xff\x00z' >&2; printf '\x80\x94b\xff\x00z'")
            .await;
        assert_exit(&result, 0);
        assert_eq!(whole(&result.stdout), b"a\xe2\x80\x94b\xff\0z");
        assert_eq!(
            whole(result.stderr.as_ref().expect("it is its own")),
            b"\x80\x94b\xff\0z"
        );
    }

    async fn o13_a_spilled_output(&self) {
        let result = self
            .of("yes | head -c 300000; head -c 100000 /dev/zero | tr '\\0' x")
            .await;
        assert_exit(&result, 0);
        assert_eq!(
            (result.stdout.snapshot.total, result.stdout.snapshot.dropped()),
            (400_000, 336_000)
        );
        let SpillState::Available(file) = &result.stdout.spill else {
            panic!("{:?}", result.stdout.spill)
        };
        assert_eq!(file.length, 400_000);
        let page = result
            .stdout
            .reader
            .read_spilled(299_998, 4)
            .await
            .expect("it can be read");
        assert_eq!(&page[..], b"y\nxx");
    }

    async fn o15_a_progress_bar(&self) {
        let result = self
            .of(r#"for i in $(seq 1 100); do printf "\rat %d%%" $i; done; echo; echo final"#)
            .await;
        let shown = render::render(&view(&result), &render::Style::default()).text;
        assert_eq!(shown, "at 100%\nfinal\n[exit code: 0]");
    }

    async fn o16_two_streams_in_one(&self) {
        let mut request = ShellRequest::new("for i in 1 2 3; do echo o$i; echo e$i >&2; done");
        request.merge_stderr = true;
        assert_eq!(stdout(&self.result(request).await), "o1\ne1\no2\ne2\no3\ne3\n");
    }

    fn start_job(&self, command: &str) -> dsh_jobs::JobId {
        let spec = self
            .shell
            .resolve(ShellRequest::new(command))
            .expect("it is valid");
        let start = || Ok::<_, ShellError>(Arc::new(self.shell.start(spec)?) as Arc<dyn Work>);
        self.session
            .start(NewJob::new(JOB_KIND, command), start)
            .expect("there is room")
    }

    async fn o18_a_followed_job(&self) {
        let id = self.start_job("seq 1 500; echo LAST");
        let reader = self.session.reader(&id, StreamName::Stdout).expect("it has one");
        let mut text = String::new();
        loop {
            let seen = reader.total();
            let read = self.session.read(&id).expect("it is there");
            text.push_str(&read.streams[0].text);
            if read.info.status.is_settled() {
                assert_eq!(read.info.detail.as_deref(), Some("exit code: 0"));
                break;
            }
            if reader.is_sealed() {
                let never = CancellationToken::new();
                self.session
                    .wait(&id, Duration::from_secs(60), &never)
                    .await
                    .expect("it ends");
            } else {
                reader.changed(seen).await;
            }
        }
        assert!(
            text.ends_with("500\nLAST\n") && text.lines().count() == 501,
            "{} bytes",
            text.len()
        );
    }

    async fn o18_a_killed_job(&self) {
        let id = self.start_job("echo ready; sleep 300 | cat");
        self.session
            .reader(&id, StreamName::Stdout)
            .expect("it has one")
            .changed(0)
            .await;
        assert_eq!(self.session.kill(&id).expect("it can be ended"), Kill::Stopping);
        let never = CancellationToken::new();
        let info = self
            .session
            .wait(&id, Duration::from_secs(60), &never)
            .await
            .expect("it ends");
        assert_eq!(info.status, JobStatus::Killed);
        let read = self.session.read(&id).expect("it is there");
        assert_eq!(read.streams[0].text, "ready\n");
    }

    async fn o19_a_question_to_nobody(&self) {
        let result = self.of("read -r x </dev/tty; echo rc=$?; cat").await;
        assert_exit(&result, 0);
        assert_eq!(stdout(&result), "rc=1\n");
    }

    async fn o20_a_large_input(&self) {
        let mut request = ShellRequest::new("cat | wc -c");
        request.stdin = Some(vec![b'x'; 1 << 20].into());
        assert_eq!(stdout(&self.result(request).await).trim(), "1048576");
    }

    async fn o24_an_end_of_the_shell(&self, number: usize) {
        let (command, end) = [
            ("exit 42", "exited with code 42"),
            ("exec true", "exited with code 0"),
            ("kill -9 $$", "ended by SIGKILL"),
            (
                "set -euo pipefail; false | cat; echo unreached",
                "exited with code 1",
            ),
            (
                "yes | head -1 >/dev/null; exit ${PIPESTATUS[0]}",
                "exited with code 141",
            ),
        ][number % 5];
        let result = self.of(command).await;
        assert_eq!(
            (result.cause, &result.outcome.to_string()[..]),
            (Cause::Ended, end),
            "{command}"
        );
        assert_eq!(
            (&stdout(&result)[..], &stderr(&result)[..]),
            ("", ""),
            "{command}"
        );
    }

    async fn o27_a_missing_directory(&self) {
        let mut request = ShellRequest::new("echo hi");
        request.workdir = Some("missing".into());
        let error = self.run(request).await.expect_err("it is missing");
        assert_eq!(error.kind(), Some(ErrorKind::CwdNotFound), "{error}");
    }

    /// Longer than one argument may be.
    async fn a_text_longer_than_one_argument(&self) {
        let result = self
            .of(&format!("#{}\necho $# $0; exit 9", "x".repeat(200_000)))
            .await;
        assert_eq!(
            (result.outcome.code(), &stdout(&result)[..]),
            (Some(9), "0 bash\n")
        );
    }
}
