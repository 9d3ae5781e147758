//! The steps of a spawn, for tests that have the host killed at one of them.
//!
//! Without the feature `steps`, which only tests ask for, [`step`] is nothing. With it, the variable
//! `DSH_SUBPROCESS_STEP=NAME@N` in the environment of a process has that process send itself `SIGKILL` when it comes to the
//! step for the Nth time.

/// A point in the life of a host, named after what has just been done, or is to be done next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The record of the runtime is there, empty and not locked.
    RecordMade,
    /// It says whose it is.
    RecordWritten,
    /// The record names the runtime's control group, which is not there yet.
    GroupNamed,
    /// The control group is there.
    GroupMade,
    /// A runtime warden is to be started.
    WardenNext,
    /// The hello waits for it.
    HelloSent,
    /// Its program runs.
    WardenRuns,
    /// It knows this process.
    WardenReady,
    /// It knows the control group.
    GroupEntrusted,
    /// It knows the record.
    RecordEntrusted,
    /// The pipes of a child are there.
    PipesMade,
    /// The leaf of a tree is taken.
    LeafTaken,
    /// A child is to be cloned.
    CloneNext,
    /// The child is on its way to its program.
    Cloned,
    /// The child runs its program.
    Executed,
    /// The tree has its owner.
    TreeOwned,
    /// The end of the tree is awaited.
    TreeWatched,
    /// The runtime warden is to be asked for a tree warden.
    TreeWardenNext,
    /// A tree warden is to be told of its target.
    LaunchNext,
    /// It was told.
    LaunchSent,
    /// It has said that the target runs.
    RunningHeard,
    /// The record names the private directory, which is not there yet.
    SpillNamed,
    /// The private directory is there.
    SpillMade,
    /// The runtime warden knows it.
    SpillEntrusted,
}

/// Comes to a step.
#[cfg(not(feature = "steps"))]
#[inline]
pub const fn step(_step: Step) {}

#[cfg(feature = "steps")]
pub use armed::step;

#[cfg(feature = "steps")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    use super::Step;

    impl Step {
        /// Every step.
        pub const ALL: [Self; 24] = [
            Self::RecordMade,
            Self::RecordWritten,
            Self::GroupNamed,
            Self::GroupMade,
            Self::WardenNext,
            Self::HelloSent,
            Self::WardenRuns,
            Self::WardenReady,
            Self::GroupEntrusted,
            Self::RecordEntrusted,
            Self::PipesMade,
            Self::LeafTaken,
            Self::CloneNext,
            Self::Cloned,
            Self::Executed,
            Self::TreeOwned,
            Self::TreeWatched,
            Self::TreeWardenNext,
            Self::LaunchNext,
            Self::LaunchSent,
            Self::RunningHeard,
            Self::SpillNamed,
            Self::SpillMade,
            Self::SpillEntrusted,
        ];
    }

    /// What the environment asks for.
    struct Wanted {
        step: Step,
        /// How often the process has still to come to it.
        left: AtomicU32,
    }

    impl Wanted {
        fn from_environment() -> Option<Self> {
            let value = std::env::var("DSH_SUBPROCESS_STEP").ok()?;
            let (name, times) = value.split_once('@')?;
            let step = Step::ALL.into_iter().find(|step| format!("{step:?}") == name)?;
            let left = AtomicU32::new(times.parse().ok()?);
            Some(Self { step, left })
        }
    }

    /// Comes to a step, and no further if it is the one that the environment names.
    pub fn step(step: Step) {
        static WANTED: OnceLock<Option<Wanted>> = OnceLock::new();
        let wanted = WANTED.get_or_init(Wanted::from_environment);
        if let Some(wanted) = wanted
            && wanted.step == step
            && wanted.left.fetch_sub(1, Ordering::Relaxed) == 1
        {
            // It does not return, on any thread (kill(2)): a process that may signal anybody may signal itself.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}
