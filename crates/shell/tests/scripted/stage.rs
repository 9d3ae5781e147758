//! One test's world and shell, and a clock for both.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dsh_shell::{Config, Shell, ShellRequest};
use dsh_subprocess_testkit::scripted::{Request, Script, ScriptedWorld};

/// How far the clocks move at once.
const STEP: Duration = Duration::from_millis(5);

/// A shell over a scripted world, whose only program is the shell.
pub(crate) struct Stage {
    pub(crate) world: ScriptedWorld,
    pub(crate) shell: Shell,
}

impl Stage {
    /// Every command does what the script says.
    pub(crate) fn new(script: Script) -> Self {
        Self::with(script, |_| {})
    }

    /// The same, with a configuration of its own.
    pub(crate) fn with(script: Script, change: impl FnOnce(&mut Config)) -> Self {
        let world = ScriptedWorld::stepped();
        world.program("bash", script);
        let mut config = Config {
            cwd: Some("/srv".into()),
            ..Config::default()
        };
        change(&mut config);
        let shell = Shell::new(Arc::new(world.clone()), config).expect("the configuration is valid");
        Self { world, shell }
    }

    /// Plays a test. The time of the world and that of the executor pass together, and none of this machine's does.
    pub(crate) fn play<T>(&self, test: impl Future<Output = T>) -> T {
        let executor = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("it needs nothing");
        let clock = async {
            loop {
                tokio::time::sleep(STEP).await;
                self.world.advance(STEP);
            }
        };
        executor.block_on(async {
            tokio::select! {
                biased;
                answer = test => answer,
                () = clock => unreachable!("a clock does not stop"),
            }
        })
    }

    /// Returns the only spawn that the world was asked for.
    #[track_caller]
    pub(crate) fn request(&self) -> Request {
        let mut requests = self.world.requests();
        assert_eq!(requests.len(), 1);
        requests.remove(0)
    }
}

/// Asks for a command that may take so long.
pub(crate) fn for_at_most(timeout: Duration) -> ShellRequest {
    let mut request = ShellRequest::new("work");
    request.timeout = Some(timeout);
    request
}
