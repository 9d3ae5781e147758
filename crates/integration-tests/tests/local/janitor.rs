//! What a dead host left on disk is removed by the next start, on proof only: issue 3, cases O10 and O14.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::fixture::{Host, LiveHost, Tier, alive, eventually, group_of, on_each_tier};
use crate::host_death::wardens;

/// Above every number that a process can have; as text, behind every one of them.
const NOBODY: u32 = 9_999_999;
/// A start time that no process of today has.
const LONG_AGO: u64 = 1;
const OTHER_BOOT: &str = "00000000-0000-0000-0000-000000000000";

/// A user's records, and a place for what they name.
struct Ground {
    /// `XDG_RUNTIME_DIR`.
    above: TempDir,
    /// Where private directories are made.
    spills: TempDir,
    /// Where kept files go.
    kept: TempDir,
}

/// Who a record says that its owner is.
struct Owner {
    pid: u32,
    start_time: u64,
    boot: String,
    namespace: u64,
}

impl Owner {
    /// A process of this boot and namespace that has ended.
    fn dead() -> Self {
        Self {
            pid: NOBODY,
            start_time: LONG_AGO,
            ..Self::this_process()
        }
    }

    fn this_process() -> Self {
        use std::os::unix::fs::MetadataExt;
        let stat = fs::read_to_string("/proc/self/stat").expect("/proc is there");
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("/proc is there");
        Self {
            pid: std::process::id(),
            start_time: stat[stat.rfind(')').expect("it has a name") + 2..]
                .split(' ')
                .nth(19)
                .and_then(|ticks| ticks.parse().ok())
                .expect("a number"),
            boot: boot.trim_end().to_owned(),
            namespace: fs::metadata("/proc/self/ns/pid").expect("/proc is there").ino(),
        }
    }
}

impl Ground {
    fn new() -> Self {
        let directory = || tempfile::tempdir().expect("a temporary directory");
        let ground = Self {
            above: directory(),
            spills: directory(),
            kept: directory(),
        };
        // The user's alone, or it is no runtime directory.
        set_mode(ground.above.path(), 0o700);
        make_private(&ground.records());
        ground
    }

    fn records(&self) -> PathBuf {
        self.above.path().join("dsh-subprocess")
    }

    /// The records that are there, all other files included.
    fn recorded(&self) -> Vec<PathBuf> {
        entries(&self.records())
    }

    /// A host that finds these records and adds its own.
    fn host(&self, tier: Tier) -> Host {
        let text = |path: &Path| path.to_str().expect("temporary directories are text").to_owned();
        Host::new(tier)
            .variable("XDG_RUNTIME_DIR", &text(self.above.path()))
            .variable("XDG_STATE_HOME", &text(self.kept.path()))
            .peculiar(format!("--spill-parent={}", text(self.spills.path())))
    }

    /// Starts a host that has a spilled stream, in the file returned, and stays.
    #[track_caller]
    fn start(&self, tier: Tier) -> (LiveHost, PathBuf) {
        let host = start(self.host(tier));
        let prefix = format!("dsh-subprocess-{}-", host.pid());
        let mut file = None;
        // The file is made by the host's own thread, in its own time.
        eventually("the spill is there", || {
            file = entries(self.spills.path())
                .into_iter()
                .filter(|path| {
                    path.file_name()
                        .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
                })
                .find_map(|directory| entries(&directory).pop());
            file.is_some()
        });
        (host, file.expect("it was found"))
    }

    /// Writes a record that nobody holds.
    fn write(&self, owner: &Owner, facts: &[String]) -> PathBuf {
        let Owner {
            pid,
            start_time,
            boot,
            namespace,
        } = owner;
        let mut text = format!("dsh-subprocess record 1\nowner {pid} {start_time} {boot} {namespace}\n");
        for fact in facts {
            text += fact;
            text.push('\n');
        }
        let path = self.records().join(format!("{pid}-{}.record", random()));
        fs::write(&path, text).expect("it is writable");
        path
    }

    /// Makes a private directory as a runtime of that process does, with a file in it.
    fn left(&self, pid: u32) -> PathBuf {
        let path = self
            .spills
            .path()
            .join(format!("dsh-subprocess-{pid}-{}", random()));
        make_private(&path);
        fs::write(path.join("dsh-subprocess-1-1-0-stdout.log"), "spilled").expect("it is writable");
        path
    }

    /// What a dead host left, with its record.
    fn left_by(&self, owner: &Owner) -> (PathBuf, PathBuf) {
        let directory = self.left(owner.pid);
        let record = self.write(owner, &[directory_fact(&directory)]);
        (record, directory)
    }

    /// Starts a host, and waits until it has looked at every record that is there now.
    #[track_caller]
    fn sweep(&self, host: Host) -> LiveHost {
        // They are looked at in the order of their names, and this one's is the last.
        let directory = self.left(NOBODY);
        let fact = directory_fact(&directory);
        let written = self.write(&Owner::dead(), &[fact]);
        let last = self.records().join(format!("{NOBODY}-ffffffffffff.record"));
        fs::rename(written, &last).expect("it is there");
        let host = start(host);
        eventually("the last record is gone", || !last.exists());
        assert!(!directory.exists());
        host
    }
}

#[track_caller]
fn start(host: Host) -> LiveHost {
    let mut host = host.start(["spilled", "runtime", "/bin/sh", "-c", SPILLS]);
    host.wait_for("ready");
    host
}

/// More than the window; then it says so and stays.
const SPILLS: &str = "yes | head -c 50000; echo ready; exec sleep 300";

fn directory_fact(path: &Path) -> String {
    format!("directory {}", path.display())
}

fn make_private(path: &Path) {
    fs::create_dir(path).expect("it is new");
    set_mode(path, 0o700);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)
        .expect("it is there")
        .map(|entry| entry.expect("it is readable").path())
        .collect();
    entries.sort();
    entries
}

/// Twelve digits, never the same.
fn random() -> String {
    let bytes = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("/proc is there");
    bytes.replace('-', "")[20..].trim_end().to_owned()
}

/// Ends a host as nothing else does.
fn kill_host(host: &LiveHost) {
    let signal = |pid: u32, signal| kill(Pid::from_raw(pid.cast_signed()), signal).expect("it runs");
    // A host that is stopped starts no other warden.
    signal(host.pid(), Signal::SIGSTOP);
    for warden in wardens::of(host.pid()) {
        signal(warden, Signal::SIGKILL);
    }
    signal(host.pid(), Signal::SIGKILL);
    await_death(host);
}

/// Waits until a host that was killed is dead for those who come after it.
#[track_caller]
pub(crate) fn await_death(host: &LiveHost) {
    // Its descriptors are closed by the last of its threads, which may outlive the first.
    let threads = format!("/proc/{}/task", host.pid());
    eventually("the host is dead", || {
        !alive(host.pid()) && fs::read_dir(&threads).map_or(0, Iterator::count) <= 1
    });
}

on_each_tier! {
    o14_the_next_start_removes_what_a_killed_host_had,
    o14_nothing_of_a_live_host_is_touched,
    o14_a_kept_file_outlives_its_host,
    issue_3_what_a_host_that_dropped_its_runtime_and_exited_left_is_removed,
    issue_3_a_host_that_disposes_leaves_no_record,
}

/// Killed with a stream half-written: the file, its directory and the record go.
fn o14_the_next_start_removes_what_a_killed_host_had(tier: Tier) {
    let ground = Ground::new();
    let (dead, file) = ground.start(tier);
    let directory = file.parent().expect("it is in a directory");
    let records = ground.recorded();
    assert_eq!(records.len(), 1, "{records:?}");
    kill_host(&dead);
    let (_next, another) = ground.start(tier);
    eventually("all of it is gone", || {
        !directory.exists() && !records[0].exists()
    });
    assert!(another.exists());
}

/// Two hosts at once: the second start finds the first's record, and leaves everything as it is.
fn o14_nothing_of_a_live_host_is_touched(tier: Tier) {
    let ground = Ground::new();
    let (first, file) = ground.start(tier);
    let records = ground.recorded();
    let _second = ground.sweep(ground.host(tier));
    assert!(file.exists() && records[0].exists());
    assert!(first.living().len() > 1, "its tree lives");
}

/// It is where no cleaner looks from the start, with a name that says it is not complete.
fn o14_a_kept_file_outlives_its_host(tier: Tier) {
    let ground = Ground::new();
    let mut dead = ground
        .host(tier)
        .start(["spilled", "keep", "/bin/sh", "-c", SPILLS]);
    dead.wait_for("ready");
    let place = ground.kept.path().join("dsh-subprocess/spills");
    eventually("the file is there", || {
        place.exists() && !entries(&place).is_empty()
    });
    kill_host(&dead);
    let _next = ground.sweep(ground.host(tier));
    let kept = entries(&place);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(
        kept[0].to_string_lossy().ends_with("-stdout.log.partial"),
        "{kept:?}"
    );
    let text = fs::read(&kept[0]).expect("it is ours");
    assert!(text.starts_with(b"y\ny\n"), "{} bytes", text.len());
}

/// It exits while its thread is still at it.
fn issue_3_what_a_host_that_dropped_its_runtime_and_exited_left_is_removed(tier: Tier) {
    let ground = Ground::new();
    for _ in 0..5 {
        let mut host = ground
            .host(tier)
            .start(["abandon", "runtime", "/bin/sh", "-c", SPILLS]);
        host.wait_for("ready");
        host.end();
    }
    let _next = ground.start(tier);
    eventually("only the next one's own is left", || {
        ground.recorded().len() == 1 && entries(ground.spills.path()).len() == 1
    });
}

fn issue_3_a_host_that_disposes_leaves_no_record(tier: Tier) {
    let ground = Ground::new();
    let report = ground.host(tier).report(["run", "/bin/true"]);
    assert_eq!(report.get("disposed"), "true");
    assert_eq!(ground.recorded(), Vec::<PathBuf>::new());
}

/// A number that is taken again, by this process, is no sign of life.
#[test]
fn issue_3_a_reused_pid_is_not_the_owner() {
    let ground = Ground::new();
    let (record, directory) = ground.left_by(&Owner {
        start_time: LONG_AGO,
        ..Owner::this_process()
    });
    let _host = ground.sweep(ground.host(Tier::ProcessGroup));
    assert!(!record.exists() && !directory.exists());
}

#[test]
fn issue_3_an_owner_of_another_boot_is_dead() {
    let ground = Ground::new();
    let (record, directory) = ground.left_by(&Owner {
        boot: OTHER_BOOT.to_owned(),
        ..Owner::this_process()
    });
    let _host = ground.sweep(ground.host(Tier::ProcessGroup));
    assert!(!record.exists() && !directory.exists());
}

/// Its numbers mean nothing here; that its record is not locked is enough.
#[test]
fn issue_3_an_owner_of_another_pid_namespace_is_dead_when_its_lock_is_free() {
    let ground = Ground::new();
    let (record, directory) = ground.left_by(&Owner {
        namespace: 1,
        ..Owner::this_process()
    });
    let _host = ground.sweep(ground.host(Tier::ProcessGroup));
    assert!(!record.exists() && !directory.exists());
}

/// As that of a host that has executed another program: it has lost the lock, and is the same process.
#[test]
fn issue_3_a_free_lock_alone_does_not_make_a_live_process_dead() {
    let ground = Ground::new();
    let (record, directory) = ground.left_by(&Owner::this_process());
    let _host = ground.sweep(ground.host(Tier::ProcessGroup));
    assert!(record.exists() && directory.exists());
}

/// Whoever holds the lock, a warden say, cleans up by itself.
#[test]
fn issue_3_a_dead_owners_record_that_is_locked_is_not_touched() {
    let ground = Ground::new();
    let (record, directory) = ground.left_by(&Owner {
        pid: 1,
        start_time: LONG_AGO,
        boot: OTHER_BOOT.to_owned(),
        namespace: 1,
    });
    let file = fs::File::open(&record).expect("it is there");
    file.lock().expect("nobody has it");
    let _host = ground.sweep(ground.host(Tier::ProcessGroup));
    assert!(record.exists() && directory.exists());
}

#[test]
fn issue_3_malformed_records_are_left_alone() {
    let ground = Ground::new();
    let directory = ground.left(NOBODY);
    let text =
        fs::read_to_string(ground.write(&Owner::dead(), &[directory_fact(&directory)])).expect("it is ours");
    for record in ground.recorded() {
        fs::remove_file(record).expect("it is ours");
    }
    let other_name = |name: &str| ground.records().join(name);
    let mut malformed = Vec::new();
    for (number, text) in [
        text.replace("record 1", "record 2"),
        text.replace("owner", "author"),
        text.replace("directory /", "directory ./"),
        format!("{text}and more\n"),
        format!("{text}{}", "directory /x\n".repeat(10_000)),
        text.replace(&NOBODY.to_string(), "1"),
        "\0".repeat(500),
    ]
    .into_iter()
    .enumerate()
    {
        let path = other_name(&format!("{NOBODY}-{number:012}.record"));
        fs::write(&path, text).expect("it is writable");
        malformed.push(path);
    }
    // Names that are no record's, whatever is in them.
    for name in [
        "1.record",
        "1-0123456789AB.record",
        "notes",
        "1-0123456789ab.record~",
    ] {
        fs::write(other_name(name), &text).expect("it is writable");
        malformed.push(other_name(name));
    }
    let path = other_name("2-0123456789ab.record");
    make_private(&path);
    malformed.push(path);
    let path = other_name("3-0123456789ab.record");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("it is new");
    malformed.push(path);
    let path = other_name("4-0123456789ab.record");
    fs::write(ground.spills.path().join("target"), &text).expect("it is writable");
    symlink(ground.spills.path().join("target"), &path).expect("it is new");
    malformed.push(path);
    let _host = ground.sweep(ground.host(Tier::ProcessGroup));
    for path in malformed {
        assert!(path.symlink_metadata().is_ok(), "{}", path.display());
    }
    assert!(directory.exists());
}

/// A host that died as it made its record, and one that died as it wrote down something that it was about to make.
#[test]
fn issue_3_half_written_records_are_harmless() {
    let ground = Ground::new();
    let empty = ground.records().join(format!("{NOBODY}-0123456789ab.record"));
    fs::write(&empty, "").expect("it is writable");
    let (torn, directory) = ground.left_by(&Owner::dead());
    let stays = ground.left(NOBODY);
    let text = fs::read_to_string(&torn).expect("it is ours") + &directory_fact(&stays);
    fs::write(&torn, text).expect("it is ours");
    let _host = ground.sweep(ground.host(Tier::ProcessGroup));
    assert!(!empty.exists() && !torn.exists() && !directory.exists());
    assert!(stays.exists(), "its line has no end");
}

/// What a record names is removed only if a runtime of its owner can have made it. The record stays then.
#[test]
fn issue_3_what_is_not_the_owners_own_is_not_removed() {
    let ground = Ground::new();
    let foreign_name = ground.left(NOBODY - 1);
    let plain = ground.spills.path().join("plain");
    make_private(&plain);
    let open = ground.left(NOBODY);
    set_mode(&open, 0o755);
    let link = ground
        .spills
        .path()
        .join(format!("dsh-subprocess-{NOBODY}-{}", random()));
    symlink(&plain, &link).expect("it is new");
    let mut stays = vec![foreign_name, plain, open, link];
    let records: Vec<PathBuf> = stays
        .iter()
        .map(|path| ground.write(&Owner::dead(), &[directory_fact(path)]))
        .collect();
    // A group is none where no control group is, whatever its name.
    let no_group = ground.left(NOBODY);
    stays.push(ground.write(&Owner::dead(), &[format!("group {}", no_group.display())]));
    stays.push(no_group);
    let _host = ground.sweep(ground.host(Tier::ProcessGroup));
    for path in stays.iter().chain(&records) {
        assert!(path.symlink_metadata().is_ok(), "{}", path.display());
    }
}

#[test]
fn issue_3_a_link_in_a_left_directory_goes_and_what_it_leads_to_stays() {
    let ground = Ground::new();
    let (record, directory) = ground.left_by(&Owner::dead());
    let outside = ground.kept.path().join("outside");
    fs::write(&outside, "").expect("it is writable");
    fs::create_dir_all(directory.join("a/b")).expect("it is ours");
    symlink(ground.kept.path(), directory.join("a/b/link")).expect("it is ours");
    let _host = ground.sweep(ground.host(Tier::ProcessGroup));
    assert!(!record.exists() && !directory.exists());
    assert!(outside.exists());
}

/// Where files cannot be locked nothing is proven, and nothing recorded.
#[test]
fn issue_3_without_locks_nothing_is_removed() {
    let ground = Ground::new();
    let (record, directory) = ground.left_by(&Owner::dead());
    let host = ground.host(Tier::ProcessGroup).peculiar("--enosys=flock");
    let mut host = host.start(["spilled", "runtime", "/bin/sh", "-c", SPILLS]);
    host.wait_for("ready");
    assert_eq!(
        ground.recorded(),
        std::slice::from_ref(&record),
        "it keeps none of its own"
    );
    host.end();
    assert!(record.exists() && directory.exists());
    let report = ground
        .host(Tier::ProcessGroup)
        .peculiar("--enosys=flock")
        .report(["records"]);
    assert_eq!(report.get("works"), "false");
    assert!(report.get("finding").contains("cannot be locked"), "{report:?}");
}

/// A place that others may enter, or that is a link: nothing is written or removed through it.
#[test]
fn issue_3_a_directory_of_records_that_is_not_private_is_refused() {
    for spoil in [
        |ground: &Ground| set_mode(&ground.records(), 0o770),
        |ground: &Ground| {
            let moved = ground.kept.path().join("moved");
            fs::rename(ground.records(), &moved).expect("it is ours");
            symlink(moved, ground.records()).expect("it is ours");
        },
    ] {
        let ground = Ground::new();
        let (record, directory) = ground.left_by(&Owner::dead());
        spoil(&ground);
        assert_refused(&ground, &record, &directory);
    }
}

#[test]
fn as_root_issue_3_a_directory_of_records_that_somebody_else_made_is_refused() {
    let ground = Ground::new();
    let (record, directory) = ground.left_by(&Owner::dead());
    std::os::unix::fs::chown(ground.records(), Some(65_534), Some(65_534)).expect("this is root");
    assert_refused(&ground, &record, &directory);
}

#[track_caller]
fn assert_refused(ground: &Ground, record: &Path, directory: &Path) {
    let mut host = ground
        .host(Tier::ProcessGroup)
        .start(["spilled", "runtime", "/bin/sh", "-c", SPILLS]);
    host.wait_for("ready");
    assert_eq!(ground.recorded(), [record], "it keeps none of its own");
    host.end();
    assert!(record.exists() && directory.exists());
    let report = ground.host(Tier::ProcessGroup).report(["records"]);
    assert_eq!(report.get("works"), "false");
    assert!(
        report.get("finding").contains("is not a private directory"),
        "{report:?}"
    );
}

/// A directory that its owner gave away is not the owner's any more.
#[test]
fn as_root_issue_3_a_left_directory_of_another_user_stays() {
    let ground = Ground::new();
    let (record, directory) = ground.left_by(&Owner::dead());
    std::os::unix::fs::chown(&directory, Some(65_534), None).expect("this is root");
    let _host = ground.sweep(ground.host(Tier::ProcessGroup));
    assert!(record.exists() && directory.exists());
}

/// As for a user without a session: the place is made, private, when it is first needed.
#[test]
fn issue_3_records_are_found_where_there_is_no_session() {
    let report = Host::new(Tier::ProcessGroup)
        .variable("XDG_RUNTIME_DIR", "")
        .report(["records"]);
    assert_eq!(report.get("works"), "true", "{report:?}");
    let user = nix::unistd::geteuid();
    assert_eq!(report.get("finding"), format!("in /tmp/dsh-subprocess-{user}"));
}

#[test]
fn issue_3_many_starts_at_once_remove_each_thing_once() {
    let ground = Ground::new();
    let left: Vec<_> = (0..50).map(|_| ground.left_by(&Owner::dead())).collect();
    let hosts: Vec<LiveHost> = (0..4)
        .map(|_| {
            ground
                .host(Tier::ProcessGroup)
                .start(["spilled", "runtime", "/bin/sh", "-c", SPILLS])
        })
        .collect();
    eventually("all of it is gone", || {
        left.iter()
            .all(|(record, directory)| !record.exists() && !directory.exists())
    });
    for mut host in hosts {
        host.wait_for("ready");
        host.end();
    }
}

/// A control group that a dead host left, with this script running in a group inside it.
struct LeftGroup {
    path: PathBuf,
    members: Vec<std::process::Child>,
}

impl LeftGroup {
    fn new(scripts: &[&str]) -> Self {
        let path = group_of(std::process::id()).join(format!("dsh-subprocess-{NOBODY}-{}", random()));
        let leaf = path.join("t0");
        fs::create_dir_all(leaf.join("made-by-a-member")).expect("this is root");
        let members = scripts.iter().map(|script| {
            let enter = format!("echo $$ > {}/cgroup.procs && {script}", leaf.display());
            Command::new("/bin/bash")
                .args(["-c", &enter])
                .spawn()
                .expect("bash is there")
        });
        let group = Self {
            path: path.clone(),
            members: members.collect(),
        };
        eventually("the members are in the group", || {
            let listed = fs::read_to_string(leaf.join("cgroup.procs")).expect("it is there");
            let is_listed = |pid: u32| listed.lines().any(|line| line == pid.to_string());
            group.members.iter().all(|member| is_listed(member.id()))
        });
        group
    }

    fn fact(&self) -> String {
        format!("group {}", self.path.display())
    }
}

impl Drop for LeftGroup {
    fn drop(&mut self) {
        for member in &mut self.members {
            drop(member.kill());
            drop(member.wait());
        }
        for group in ["t0/made-by-a-member", "t0", ""] {
            drop(fs::remove_dir(self.path.join(group)));
        }
    }
}

/// Members get SIGTERM and some time; one that ignores it is killed; then all groups go.
#[test]
fn as_root_issue_3_what_runs_in_a_left_control_group_is_ended_and_the_group_removed() {
    let ground = Ground::new();
    let said = ground.kept.path().join("said");
    let polite = format!(
        "trap 'echo asked > {}; exit' TERM; echo > {0}-ready; while :; do read -t 300 < <(:) || sleep 0.05; done",
        said.display()
    );
    let mut group = LeftGroup::new(&[
        &polite,
        "trap '' TERM; exec sleep 300",
        "kill -STOP $$; exec sleep 300",
    ]);
    eventually("the trap is set", || {
        ground.kept.path().join("said-ready").exists()
    });
    let record = ground.write(&Owner::dead(), &[group.fact()]);
    let _host = start(ground.host(Tier::ProcessGroup));
    eventually("the group is gone", || !group.path.exists());
    eventually("its record, too", || !record.exists());
    assert_eq!(fs::read_to_string(&said).expect("SIGTERM came"), "asked\n");
    for member in &mut group.members {
        assert!(!member.wait().expect("it is a child").success() || said.exists());
    }
}

/// A start that ended before the grace did has asked already.
#[test]
fn as_root_issue_3_a_left_group_that_was_asked_long_ago_is_killed_at_once() {
    let ground = Ground::new();
    let said = ground.kept.path().join("said");
    let polite = format!(
        "trap 'echo asked > {}' TERM; echo > {0}-ready; while :; do sleep 0.05; done",
        said.display()
    );
    let group = LeftGroup::new(&[&polite]);
    eventually("the trap is set", || {
        ground.kept.path().join("said-ready").exists()
    });
    let before = SystemTime::now() - Duration::from_secs(3600);
    let millis = before
        .duration_since(UNIX_EPOCH)
        .expect("it is past 1970")
        .as_millis();
    let record = ground.write(&Owner::dead(), &[group.fact(), format!("asked {millis}")]);
    let _host = start(ground.host(Tier::ProcessGroup));
    eventually("the group is gone", || !group.path.exists());
    eventually("its record, too", || !record.exists());
    assert!(!said.exists(), "it was asked again");
}

/// A member of a dead host's tree may start a host of its own. That one does not end itself.
#[test]
fn as_root_issue_3_a_host_inside_a_left_group_leaves_it_to_others() {
    let ground = Ground::new();
    let group = LeftGroup::new(&[]);
    let record = ground.write(&Owner::dead(), &[group.fact()]);
    let enter = format!(
        "echo $$ > {}/t0/cgroup.procs && exec \"$@\"",
        group.path.display()
    );
    let inside = ground.sweep(ground.host(Tier::ProcessGroup).under(["sh", "-c", &enter, "sh"]));
    assert!(record.exists() && group.path.exists());
    // And others see to it.
    let _outside = start(ground.host(Tier::ProcessGroup));
    eventually("the group is gone", || !group.path.exists());
    assert!(!alive(inside.pid()));
}

/// Killed on the cgroup tier: its trees end at the next start at the latest.
#[test]
fn as_root_o10_the_next_start_ends_the_trees_of_a_killed_host() {
    let ground = Ground::new();
    let mut dead = ground
        .host(Tier::Cgroup)
        .start(["nested", env!("CARGO_BIN_EXE_probe"), "ignore-term"]);
    dead.wait_for("ready");
    kill_host(&dead);
    let _next = start(ground.host(Tier::Cgroup));
    eventually("its tree is gone", || dead.living().is_empty());
    eventually("its record is gone", || ground.recorded().len() == 1);
}
