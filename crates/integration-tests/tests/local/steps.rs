//! The host is killed at every step of a spawn: nobody and nothing is left. Issue 3.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use dsh_subprocess_local::Step;
use tempfile::TempDir;

use crate::fixture::{Host, Report, Tier, eventually};

/// Kills at each step, on each tier, unless `DSH_STEPS_KILLS` says otherwise. Of a step that a host comes to more than once, each
/// time has its share.
const KILLS: usize = 20;
/// Hosts at once.
const WORKERS: usize = 2;
const PROBE: &str = env!("CARGO_BIN_EXE_probe");

/// Where one host has all that it has in file systems.
pub(crate) struct Ground {
    records: TempDir,
    pub(crate) spills: TempDir,
}

impl Ground {
    pub(crate) fn new() -> Self {
        // A temporary directory is its user's alone, so it will do for a runtime directory.
        let directory = || tempfile::tempdir().expect("a temporary directory");
        Self {
            records: directory(),
            spills: directory(),
        }
    }

    /// A host that has it there.
    pub(crate) fn host(&self, tier: Tier) -> Host {
        let text = |directory: &TempDir| directory.path().to_str().expect("text").to_owned();
        Host::new(tier)
            .variable("XDG_RUNTIME_DIR", &text(&self.records))
            .peculiar(format!("--spill-parent={}", text(&self.spills)))
    }

    /// Lists what a host with this pid has left, except for what was there before it: its number may have been another's.
    pub(crate) fn left(&self, pid: &str, before: &[PathBuf]) -> Vec<PathBuf> {
        let mut left = entries(&self.records.path().join("dsh-subprocess"));
        left.extend(entries(self.spills.path()));
        let own = format!("dsh-subprocess-{pid}-");
        left.extend(groups().into_iter().filter(|group| {
            let name = group.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&own) && !before.contains(group)
        }));
        left
    }
}

/// Lists the control groups beside which a host's own are made.
pub(crate) fn groups() -> Vec<PathBuf> {
    ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
        .into_iter()
        .flat_map(|root| entries(Path::new(root)))
        .collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Whether a host of this tier comes to a step.
fn is_on(step: Step, tier: Tier) -> bool {
    match step {
        Step::GroupNamed | Step::GroupMade | Step::GroupEntrusted | Step::LeafTaken => tier == Tier::Cgroup,
        Step::TreeWardenNext | Step::LaunchNext | Step::LaunchSent | Step::RunningHeard => {
            tier == Tier::Reaper
        }
        _ => true,
    }
}

/// Has a host killed at a step to which it comes for the nth time. `false` where it does not come to it so often.
#[track_caller]
fn kill(tier: Tier, step: Step, nth: usize) -> bool {
    let what = format!("{tier:?}, {step:?}@{nth}");
    let (ground, before) = (Ground::new(), groups());
    let report = ground
        .host(tier)
        .variable("DSH_SUBPROCESS_STEP", &format!("{step:?}@{nth}"))
        .under([PROBE, "adopt"])
        .report(["steps"]);
    let pid = report.get("adopted");
    // It has waited for the last process that descends from the host: members, daemons and wardens.
    assert!(report.find("alone").is_some(), "{what}: {report:?}");
    let passed = report.find("passed").is_some();
    if passed {
        assert_eq!(report.get("exited"), "0", "{what}: {report:?}");
    } else {
        assert_eq!(report.get("ended"), "SIGKILL", "{what}: {report:?}");
    }
    let left = ground.left(pid, &before);
    if passed || is_wardens_to_remove(step, &report) {
        assert!(left.is_empty(), "{what}: {left:?}");
    } else if !left.is_empty() {
        eventually(&format!("{what}: the next start removes what is left"), || {
            ground.host(Tier::ProcessGroup).report(["build"]);
            ground.left(pid, &before).is_empty()
        });
    }
    !passed
}

/// Whether a warden knew of all that the host had. What it did not is removed by the next start.
fn is_wardens_to_remove(step: Step, report: &Report) -> bool {
    // The host reports it as soon as its runtime is there.
    report.find("mechanism").is_some() && !matches!(step, Step::SpillNamed | Step::SpillMade)
}

/// Kills hosts at each of the tier's steps.
fn kill_at_every_step(tier: Tier) {
    let steps = Mutex::new(Step::ALL.into_iter().filter(|&step| is_on(step, tier)));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let next = steps.lock().expect("no other thread has panicked").next();
                    let Some(step) = next else { break };
                    kill_at(tier, step);
                }
            });
        }
    });
}

fn kill_at(tier: Tier, step: Step) {
    let kills = std::env::var("DSH_STEPS_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number"));
    let mut nth = 1;
    let mut killed = 0;
    while killed < kills {
        if kill(tier, step, nth) {
            killed += 1;
            nth += 1;
        } else {
            assert!(nth > 1, "a host on {tier:?} never comes to {step:?}");
            nth = 1;
        }
    }
}

#[test]
fn as_root_on_cgroup_issue_3_a_host_killed_at_any_step_of_a_spawn_leaves_nothing() {
    kill_at_every_step(Tier::Cgroup);
}

#[test]
fn on_reaper_issue_3_a_host_killed_at_any_step_of_a_spawn_leaves_nothing() {
    kill_at_every_step(Tier::Reaper);
}
