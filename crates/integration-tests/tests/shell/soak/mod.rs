//! Two thousand mixed commands, sixteen at once, after which nothing is left.

mod kinds;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dsh_jobs::JobSession;
use dsh_shell::{Config, LeftBehindPolicy, Shell, WorldPath};
use dsh_subprocess::SubprocessRuntime;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::fixture::{self, Case, Tier, eventually, group_of, on_each_tier};
use crate::stage::Stage;

on_each_tier! {
    issue_6_a_soak_leaves_no_process_descriptor_cgroup_or_file,
}

const COMMANDS: usize = 2000;
const AT_ONCE: usize = 16;
/// What all of it may take on two busy cores.
const BOUND: Duration = Duration::from_secs(150);

/// What the kinds of commands run on.
struct Scene {
    tier: Tier,
    shell: Shell,
    /// A shell over the same world that ends nothing of what a command leaves behind.
    keeping: Shell,
    session: JobSession,
    /// `TMPDIR` of the commands, and where streams are spilled.
    directory: TempDir,
}

fn issue_6_a_soak_leaves_no_process_descriptor_cgroup_or_file(tier: Tier) {
    let before = descriptors();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path().to_owned();
    let group = soak(tier, directory);
    let mut open = descriptors();
    let deadline = Instant::now() + fixture::BOUND;
    while open != before && Instant::now() < deadline {
        // A runtime's threads end in their own time.
        thread::sleep(Duration::from_millis(2));
        open = descriptors();
    }
    assert_eq!(open, before, "what is open now, and what was before");
    eventually("every file is removed", || !place.exists());
    eventually("no child is left", || children().is_empty());
    if let Some(group) = group {
        eventually("the control group is gone", || !group.exists());
    }
}

/// Plays all commands and disposes of everything. Returns the runtime's control group, where it has one.
fn soak(tier: Tier, directory: TempDir) -> Option<PathBuf> {
    let case = Case::with(tier, |builder| builder.spill_parent(directory.path()));
    let world = Arc::new(case.runtime.clone());
    let stage = Stage::of(case, world, |config| {
        config.cwd = Some(WorldPath::from(directory.path()));
        config.env.insert("TMPDIR".into(), Some(directory.path().into()));
        config.grace = Duration::from_millis(300);
        config.quiet = Duration::from_millis(100);
        config.drain = Duration::from_millis(200);
    });
    let group = (tier == Tier::Cgroup).then(|| {
        let target = stage.start("exec sleep 300");
        let leaf = group_of(target.pid().expect("this world has ids"));
        target.kill();
        stage.within(target.done());
        leaf.parent().expect("it is in the runtime's").to_owned()
    });
    let keeping = Config {
        left_behind: LeftBehindPolicy::Keep,
        ..Config::clone(&stage.shell.config())
    };
    let scene = Arc::new(Scene {
        tier,
        shell: stage.shell.clone(),
        keeping: Shell::new(Arc::new(stage.case.runtime.clone()), keeping).expect("it is valid"),
        session: stage.jobs.open("soak").expect("it is the first"),
        directory,
    });
    let played = Arc::new(AtomicUsize::new(0));
    stage.within_bound(BOUND, async {
        let mut workers = JoinSet::new();
        for _ in 0..AT_ONCE {
            let (scene, played) = (Arc::clone(&scene), Arc::clone(&played));
            workers.spawn(async move {
                loop {
                    let number = played.fetch_add(1, Ordering::Relaxed);
                    if number >= COMMANDS {
                        return;
                    }
                    scene.play(number).await;
                }
            });
        }
        while let Some(ended) = workers.join_next().await {
            if let Err(error) = ended {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    });
    // What the sixteen left to nobody is gone before anything is disposed of.
    eventually("every process has ended", || stage.case.living().is_empty());
    let scene = Arc::into_inner(scene).expect("every worker has ended");
    stage.within(scene.session.end()).expect("every job can be ended");
    assert!(scene.session.list().is_empty());
    stage
        .within(stage.jobs.dispose())
        .expect("nothing is left to end");
    stage
        .within(stage.case.runtime.dispose())
        .expect("nothing is left to end");
    let directory = scene.directory;
    drop((scene.shell, scene.keeping, scene.session));
    stage.end();
    eventually("only an empty directory is left", || {
        files(directory.path()).is_empty()
    });
    directory.close().expect("it is empty");
    group
}

/// Lists every file below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("it is there");
    entries
        .map(|entry| entry.expect("it can be listed").path())
        .collect()
}

/// What stays open for the next runtime of this process: the wardens' program in memory, and the count of births.
const KEPT: [&str; 2] = ["/memfd:dsh-subprocess (deleted)", "/proc/loadavg"];

/// Lists what this process has open, but for what it keeps.
fn descriptors() -> Vec<String> {
    let descriptors = fs::read_dir("/proc/self/fd").expect("/proc is there");
    let mut open: Vec<String> = descriptors
        .filter_map(|descriptor| Some(fs::read_link(descriptor.ok()?.path()).ok()?.display().to_string()))
        .filter(|file| !KEPT.contains(&&file[..]))
        .collect();
    open.sort_unstable();
    open
}

/// Lists the children of all threads of this process, zombies too.
fn children() -> Vec<String> {
    let threads = fs::read_dir("/proc/self/task").expect("/proc is there");
    threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok())
        .flat_map(|children| children.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}
