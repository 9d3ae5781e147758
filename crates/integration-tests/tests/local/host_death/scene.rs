//! A host with trees that are hard to end, a place for all that it makes, and what must be left of both when it is dead.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use tempfile::TempDir;

use super::delegated::Delegated;
use super::{Place, wardens};
use crate::fixture::{Host, LiveHost, Tier, alive, eventually, group_of, row};

/// Debian's number of the user `nobody`.
pub(super) const NOBODY: u32 = 65_534;
/// Milliseconds that a member has to write down that it was asked, on a loaded machine.
pub(super) const GRACE: &str = "2000";
/// A grace that no test waits out.
pub(super) const LONG: &str = "300000";
/// The members of a crowd.
const MEMBERS: [&str; 5] = ["child", "daemon", "session", "stopped", "target"];

/// Where a host's records, files and logs are.
pub(super) struct Scene {
    place: Place,
    directory: TempDir,
    delegated: Option<Delegated>,
}

/// A host that is about to die.
pub(super) struct Mortal {
    pub(super) host: LiveHost,
    /// Those that watched the host when its trees were complete.
    pub(super) wardens: Vec<u32>,
    /// The runtime's control group.
    group: Option<PathBuf>,
}

impl Scene {
    #[track_caller]
    pub(super) fn new(place: Place) -> Self {
        let scene = Self {
            place,
            directory: tempfile::tempdir().expect("a temporary directory"),
            delegated: (place.tier == Tier::Cgroup && place.as_nobody).then(Delegated::new),
        };
        for name in ["", "records", "spills", "kept"] {
            let path = scene.directory.path().join(name);
            if !name.is_empty() {
                fs::create_dir(&path).expect("it is new");
            }
            // The user's alone, or it is no place for records.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it is ours");
            if place.as_nobody && geteuid().is_root() {
                chown(&path, Some(NOBODY), Some(NOBODY)).expect("root gives it away");
            }
        }
        scene
    }

    /// Returns a path below the scene's directory, as text.
    pub(super) fn path(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        path.to_str().expect("temporary directories are text").to_owned()
    }

    /// A host of this place.
    pub(super) fn host(&self) -> Host {
        let mut host = Host::new(self.place.tier)
            .variable("XDG_RUNTIME_DIR", &self.path("records"))
            .variable("XDG_STATE_HOME", &self.path("kept"))
            .peculiar(format!("--spill-parent={}", self.path("spills")))
            // Whoever runs the tests may ignore them.
            .under(["env", "--default-signal=HUP,TERM"]);
        if let Some(group) = &self.delegated {
            let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.path().display());
            host = host.under(["sh", "-c", &enter, "sh"]);
        }
        if self.place.as_nobody {
            host = host.unprivileged();
        }
        host
    }

    /// Starts a host that is to die in this way (see the probe's scenario `mortal`), and waits until all its trees are
    /// complete.
    #[track_caller]
    pub(super) fn start(&self, death: &str, grace: &str) -> Mortal {
        self.start_under(self.host(), death, grace)
    }

    #[track_caller]
    pub(super) fn start_under(&self, host: Host, death: &str, grace: &str) -> Mortal {
        let mut host = host.start(["mortal", death, &self.path("log"), grace]);
        let target = host.wait_for("target").parse().expect("a pid");
        host.wait_for("ready");
        self.wait_for_crowd("log");
        // They are made by the host's own thread, in its own time.
        eventually("one stream is spilled, and one is kept", || {
            self.spills() == 1 && self.kept() == 1
        });
        let wardens = wardens::of(host.pid());
        assert_eq!(wardens.is_empty(), !self.place.tier.owns_all(), "{wardens:?}");
        let group = (self.place.tier == Tier::Cgroup).then(|| {
            let leaf = group_of(target);
            leaf.parent().expect("it is in the runtime's").to_owned()
        });
        Mortal { host, wardens, group }
    }

    /// Waits until every member of a crowd is there and acts on signals, but for the one that is stopped.
    #[track_caller]
    pub(super) fn wait_for_crowd(&self, log: &str) {
        eventually("the crowd is complete", || {
            self.logged(log, "ready").len() == MEMBERS.len()
        });
        let stopped = self.members(log)["stopped"];
        eventually("one member is stopped", || {
            row(stopped).is_some_and(|row| row.state == 'T')
        });
    }

    /// Returns each member of a crowd by its name.
    pub(super) fn members(&self, log: &str) -> std::collections::BTreeMap<String, u32> {
        let ready = self.lines(log).into_iter().filter(|line| line[1] == "ready");
        ready
            .map(|[name, _, pid]| (name, pid.parse().expect("a pid")))
            .collect()
    }

    /// Lists who has written a word into a log, as often as it did.
    pub(super) fn logged(&self, log: &str, word: &str) -> Vec<String> {
        let said = self.lines(log).into_iter().filter(|line| line[1] == word);
        let mut names: Vec<String> = said.map(|[name, ..]| name).collect();
        names.sort_unstable();
        names
    }

    fn lines(&self, log: &str) -> Vec<[String; 3]> {
        let text = fs::read_to_string(self.path(log)).unwrap_or_default();
        // A line that is being written has no end yet.
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        complete
            .lines()
            .map(|line| {
                let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
                words.try_into().expect("three words")
            })
            .collect()
    }

    /// Waits until every member has written down that it was asked.
    #[track_caller]
    pub(super) fn wait_until_asked(&self, log: &str) {
        eventually("every member is asked", || self.logged(log, "TERM") == MEMBERS);
    }

    /// Every member was asked before it was killed, and none twice.
    #[track_caller]
    pub(super) fn assert_asked_once(&self, log: &str) {
        assert_eq!(self.logged(log, "TERM"), MEMBERS);
    }

    /// Nothing of a dead host is left where it made things, but for what was to be kept.
    #[track_caller]
    pub(super) fn assert_removed(&self) {
        eventually("the private directory is gone", || {
            entries(Path::new(&self.path("spills"))).is_empty()
        });
        eventually("the record is gone", || {
            entries(Path::new(&self.path("records/dsh-subprocess"))).is_empty()
        });
    }

    /// Returns the record of a host, and the private directory that it has made by the time a stream is spilled.
    #[track_caller]
    pub(super) fn made(&self) -> Vec<PathBuf> {
        eventually("a stream is spilled", || self.spills() == 1);
        ["records/dsh-subprocess", "spills"]
            .iter()
            .flat_map(|place| entries(Path::new(&self.path(place))))
            .map(|path| path.canonicalize().expect("it is there"))
            .collect()
    }

    /// Counts files in private directories.
    fn spills(&self) -> usize {
        let directories = entries(Path::new(&self.path("spills")));
        directories.iter().map(|directory| entries(directory).len()).sum()
    }

    /// Counts streams that were to be kept.
    pub(super) fn kept(&self) -> usize {
        entries(Path::new(&self.path("kept/dsh-subprocess/spills"))).len()
    }
}

impl Mortal {
    /// Sends the host a signal.
    #[track_caller]
    pub(super) fn signal(&self, signal: Signal) {
        signal_to(self.host.pid(), signal);
    }

    /// The host is dead: every member was asked once and is gone, and so are its wardens and all it made. `survivors` are
    /// no members.
    #[track_caller]
    pub(super) fn assert_ended(&self, scene: &Scene, survivors: &[u32]) {
        self.assert_gone(survivors);
        scene.assert_asked_once("log");
        scene.assert_removed();
        assert_eq!(scene.kept(), 1);
        self.assert_no_warden();
        if let Some(group) = &self.group {
            assert!(!group.exists(), "{}", group.display());
        }
    }

    /// No member is left.
    #[track_caller]
    pub(super) fn assert_gone(&self, survivors: &[u32]) {
        eventually("every member is gone", || {
            self.host.living().iter().all(|pid| survivors.contains(pid))
        });
    }

    /// No warden is left. The last to end is the runtime's, when it has removed everything.
    #[track_caller]
    pub(super) fn assert_no_warden(&self) {
        eventually("the wardens have ended", || {
            !self.wardens.iter().any(|&warden| alive(warden))
        });
    }
}

#[track_caller]
pub(super) fn signal_to(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).expect("it is there, and ours");
}

/// Lists a directory; one that is not there is empty.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}
