//! Whatever happens at whatever time, there is one cause, one result and one end.

use std::time::Duration;

use dsh_shell::{Cause, OnExpiry, Outcome, ShellRequest, Status};
use dsh_subprocess_testkit::scripted::{Reaction, Script};
use proptest::prelude::*;
use tokio::time::sleep;

use crate::stage::Stage;

/// More than the clocks move at once, so that what happens at different times is seen at different times.
const UNIT: Duration = Duration::from_millis(20);
const NEVER: u32 = 1000;

/// When each thing happens that can end a command, in units. At least one does.
#[derive(Clone, Debug)]
struct Times {
    exit: u32,
    timeout: u32,
    cancel: u32,
    kill: u32,
}

fn times() -> impl Strategy<Value = Times> {
    let time = || prop_oneof![3 => 1_u32..7, 1 => Just(NEVER)];
    (time(), time(), time(), time())
        .prop_map(|(exit, timeout, cancel, kill)| Times {
            exit,
            timeout,
            cancel,
            kill,
        })
        .prop_filter("something ends it", |times| times.first() < NEVER)
}

impl Times {
    fn first(&self) -> u32 {
        [self.exit, self.timeout, self.cancel, self.kill]
            .into_iter()
            .min()
            .unwrap_or(NEVER)
    }

    /// The causes that are right: several where they come at the same time.
    fn causes(&self) -> Vec<Cause> {
        let first = self.first();
        let all = [
            (self.exit, Cause::Ended),
            (self.timeout, Cause::TimedOut),
            (self.cancel, Cause::Aborted),
            (self.kill, Cause::Aborted),
        ];
        all.into_iter()
            .filter(|(time, _)| *time == first)
            .map(|(_, cause)| cause)
            .collect()
    }
}

fn reaction() -> impl Strategy<Value = Reaction> {
    prop_oneof![
        Just(Reaction::Dies),
        Just(Reaction::Ignores),
        Just(Reaction::Ends {
            after: 2 * UNIT,
            outcome: Outcome::Exited { code: 0 }
        }),
    ]
}

proptest! {
    #[test]
    fn the_first_cause_is_the_only_one(times in times(), on_term in reaction()) {
        let script = Script::new().on_term(on_term).waits(UNIT * times.exit).exits(9);
        let stage = Stage::with(script, |config| config.grace = 3 * UNIT);
        let (results, ends, killed) = stage.play(async {
            let mut request = ShellRequest::new("work");
            request.timeout = Some(UNIT * times.timeout);
            if times.timeout == NEVER {
                request.on_expiry = OnExpiry::None;
            }
            let cancel = request.cancel.clone();
            let spec = stage.shell.resolve(request).expect("it is valid");
            let execution = stage.shell.execute(spec).expect("it starts");
            let cancelling = async {
                sleep(UNIT * times.cancel).await;
                cancel.cancel();
            };
            let killing = async {
                sleep(UNIT * times.kill).await;
                execution.kill()
            };
            let (first, second, end, (), killed) = tokio::join!(
                execution.result(),
                execution.result(),
                execution.done(),
                cancelling,
                killing
            );
            // What came later changes nothing that was told.
            (
                [first, second, execution.result().await].map(|result| result.expect("it is run")),
                [end, execution.done().await],
                killed,
            )
        });

        let causes = times.causes();
        prop_assert!(causes.contains(&results[0].cause), "{:?} is none of {:?}", results[0].cause, causes);
        for result in &results {
            prop_assert_eq!(result.cause, results[0].cause);
            prop_assert_eq!(&result.outcome, &results[0].outcome);
        }
        for end in &ends {
            prop_assert_eq!(end.outcome.as_ref().ok(), Some(&results[0].outcome));
            prop_assert_eq!(end.status, ends[0].status);
        }
        let alone = causes.iter().all(|cause| *cause == causes[0]);
        if alone && causes[0] == Cause::Ended {
            prop_assert_eq!(ends[0].status, Status::Completed);
            prop_assert_eq!(results[0].outcome.code(), Some(9));
            prop_assert!(!killed, "it had ended");
            prop_assert!(stage.request().signals.is_empty());
        } else if alone {
            prop_assert_eq!(ends[0].status, Status::Killed);
        }
        if times.kill == times.first() && alone && times.kill != times.cancel {
            prop_assert!(killed);
        }
    }
}
