//! What it costs to spawn from a large host, to have children, and to have survivors: case O29 and items 28a and 72.

use crate::fixture::{Case, Host, LiveHost, Tier, alive, eventually, on_each_tier};

/// How often the threads of a process ran, and for how long: none of it moves while all of them sleep.
fn activity(pid: u32) -> Vec<(String, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the host runs");
    let mut all: Vec<_> = tasks
        .map(|task| {
            let task = task.expect("the host runs").path();
            let status = std::fs::read_to_string(task.join("status")).expect("its threads stay");
            let switches: Vec<&str> = status
                .lines()
                .filter(|line| line.contains("ctxt_switches"))
                .collect();
            (task.display().to_string(), switches.join(" "))
        })
        .collect();
    all.sort();
    all
}

/// Shows that a host does nothing at all while other work goes on, for a hundred spawns of that work.
pub(crate) fn assert_idle(host: &LiveHost) {
    let elsewhere = Case::new(Tier::ProcessGroup);
    let work = |rounds: usize| {
        for _ in 0..rounds {
            let (outcome, _) = elsewhere.run(elsewhere.bash("for i in 1 2 3; do /bin/true; done"));
            assert!(outcome.success());
        }
    };
    // What the host still does for what just happened has an end.
    eventually("the host settles", || {
        let before = activity(host.pid());
        work(20);
        before == activity(host.pid())
    });
    let before = activity(host.pid());
    work(100);
    assert_eq!(before, activity(host.pid()), "the host woke up for nothing");
}

on_each_tier! {
    an_idle_runtime_makes_no_system_call,
    item_72_surviving_helpers_cost_nothing,
    item_72_the_end_of_a_helper_costs_one_look,
    o29_a_spawn_does_not_touch_the_hosts_memory,
}

/// A hundred quiet children, and not one wake-up of any thread of their host.
fn an_idle_runtime_makes_no_system_call(tier: Tier) {
    let mut host = Host::new(tier).start(["idle", "100"]);
    host.wait_for("ready");
    assert_idle(&host);
    host.go_on();
    host.wait_for("disposed");
    host.end();
}

/// Helpers that outlive their leader cost nothing while they live, before and after one of them ends.
fn item_72_surviving_helpers_cost_nothing(tier: Tier) {
    let mut host = Host::new(tier).start(["survivors", "50"]);
    let helpers = host.wait_for("helpers");
    host.wait_for("ready");
    assert_idle(&host);
    let first = helpers
        .split(' ')
        .next()
        .expect("there are helpers")
        .parse()
        .expect("a pid");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(first),
        nix::sys::signal::Signal::SIGKILL,
    )
    .expect("it is ours");
    assert_idle(&host);
    host.go_on();
    assert_eq!(host.wait_for("gone"), "true");
    host.end();
}

/// How often the threads of a process went to sleep of their own accord: once for each time something woke them.
fn naps(pid: u32) -> u64 {
    activity(pid)
        .iter()
        .filter_map(|(_, switches)| switches.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum()
}

/// Each helper that ends wakes the host a few times at most, however many live on, and nothing follows from it later.
fn item_72_the_end_of_a_helper_costs_one_look(tier: Tier) {
    // The wake itself, and the group's own notice, which may come in two.
    const EACH: u64 = 4;
    let mut host = Host::new(tier).start(["survivors", "50"]);
    let helpers = host.wait_for("helpers");
    host.wait_for("ready");
    assert_idle(&host);
    for helper in helpers.split(' ').take(4) {
        let before = naps(host.pid());
        let helper: i32 = helper.parse().expect("a pid");
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(helper),
            nix::sys::signal::Signal::SIGKILL,
        )
        .expect("it is ours");
        eventually("the helper is dead", || !alive(helper.unsigned_abs()));
        assert_idle(&host);
        let naps = naps(host.pid()) - before;
        assert!(naps <= EACH, "{naps} naps for one helper");
    }
    host.go_on();
    assert_eq!(host.wait_for("gone"), "true");
    host.end();
}

/// A spawn copies none of the host's memory: no page of it becomes copy-on-write.
fn o29_a_spawn_does_not_touch_the_hosts_memory(tier: Tier) {
    for without in [None, Some("--without=clone3")] {
        let mut host = Host::new(tier);
        if let Some(without) = without {
            host = host.peculiar(without);
        }
        let report = host.report(["page-faults", "1024", "20"]);
        let (pages, faults): (u64, u64) = (report.number("pages"), report.number("faults"));
        // A single fork would cost a fault for each page.
        assert!(
            faults < pages / 20,
            "{faults} faults on {pages} pages in 20 spawns"
        );
    }
}
