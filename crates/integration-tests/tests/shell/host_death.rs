//! A host that is killed leaves no job behind (O10). A process group cannot promise that, and its capabilities say so.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::fixture::{Host, Tier, alive, eventually};

/// It obeys nothing but `SIGKILL`, and has a session of its own besides.
const STUBBORN: &str = "setsid sh -c 'trap : TERM HUP; echo ready; while :; do sleep 1; done' & \
                        trap : TERM HUP; while :; do sleep 1; done";

#[track_caller]
fn killed_host_leaves_nobody(tier: Tier) {
    let mut host = Host::new(tier).start(["shell-job", STUBBORN]);
    let target: u32 = host.wait_for("target").parse().expect("a pid");
    host.wait_for("ready");
    assert!(alive(target));
    kill(Pid::from_raw(host.pid().cast_signed()), Signal::SIGKILL).expect("it is a child of this process");
    eventually("every process of the job is gone", || host.living().is_empty());
}

#[test]
fn as_root_o10_a_killed_host_leaves_no_job_on_cgroup() {
    killed_host_leaves_nobody(Tier::Cgroup);
}

#[test]
fn o10_a_killed_host_leaves_no_job_on_reaper() {
    killed_host_leaves_nobody(Tier::Reaper);
}
