//! A terminal that somebody sits at: a pane of a tmux of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::fixture::{BINARY, BOUND, Case, eventually};

/// A pane, and the server that has nothing else.
pub(super) struct Pane<'a> {
    case: &'a Case,
    socket: PathBuf,
    /// The pane's terminal, as in `/dev/pts/7`.
    device: String,
}

impl<'a> Pane<'a> {
    /// `line` is what a shell carries out in the pane, 24 lines of 80 columns. `$BINARY` in it is the binary. The pane stays
    /// when the shell has ended.
    pub(super) fn new(case: &'a Case, line: &str) -> Self {
        let line = format!("{line}\nexec sleep 300\n");
        Self::running(case, &["/bin/sh", "-c", &line])
    }

    /// The same with somebody's shell, that has line editing and jobs.
    pub(super) fn interactive(case: &'a Case) -> Self {
        let pane = Self::running(case, &["bash", "--norc", "--noprofile", "-i"]);
        pane.wait_for("$");
        pane
    }

    fn running(case: &'a Case, shell: &[&str]) -> Self {
        let mut pane = Self {
            case,
            socket: case.path("tmux"),
            device: String::new(),
        };
        let words = ["new-session", "-d", "-x", "80", "-y", "24", "-n", "pane"];
        let mut start = pane.command();
        start.args(words).args(shell).env("PS1", "$ ");
        let started = start.output().expect("tmux can be run");
        assert!(started.status.success(), "tmux: {started:?}");
        pane.device = pane.ask(&["display-message", "-p", "#{pane_tty}"]);
        assert!(pane.device.starts_with("/dev/"), "{}", pane.device);
        pane
    }

    fn command(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.args(["-u", "-f", "/dev/null", "-S"]).arg(&self.socket);
        let mut tmux = self.case.dress(tmux);
        tmux.env("BINARY", BINARY)
            .env("SHELL", "/bin/sh")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "screen")
            .env_remove("TMUX")
            .env_remove("LESS")
            .stdin(Stdio::null());
        tmux
    }

    #[track_caller]
    fn ask(&self, words: &[&str]) -> String {
        let done = self.command().args(words).output().expect("tmux can be run");
        assert!(done.status.success(), "tmux {words:?}: {done:?}");
        let text = String::from_utf8(done.stdout).expect("it is text");
        text.trim_end().to_owned()
    }

    /// Presses keys, by their names: `Enter`, `C-c`, `Escape`.
    #[track_caller]
    pub(super) fn press(&self, keys: &[&str]) {
        self.ask(&[&["send-keys", "-t", "pane"], keys].concat());
    }

    /// Types a text.
    #[track_caller]
    pub(super) fn types(&self, text: &str) {
        self.press(&["-l", text]);
    }

    /// Types a line.
    #[track_caller]
    pub(super) fn enters(&self, line: &str) {
        self.types(line);
        self.press(&["Enter"]);
    }

    /// What is on the screen, without spaces at the ends of lines.
    pub(super) fn shown(&self) -> String {
        self.ask(&["capture-pane", "-p", "-t", "pane"]) + "\n"
    }

    #[track_caller]
    pub(super) fn wait_for(&self, text: &str) {
        self.wait_until(text, |shown| shown.contains(text));
    }

    /// Waits until the shell edits a line: from then on it shows what is typed, and the terminal does not.
    #[track_caller]
    pub(super) fn wait_for_prompt(&self) {
        self.wait_until("a prompt", |shown| shown.trim_end().ends_with("\n$"));
    }

    #[track_caller]
    fn wait_until(&self, what: &str, is_there: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + BOUND;
        loop {
            let shown = self.shown();
            if is_there(&shown) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "waited in vain for {what:?}; there is:\n{shown}"
            );
            // Nothing tells of a change of the screen; a look at it starts a process.
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(super) fn resize(&self, cols: u16, rows: u16) {
        let (cols, rows) = (cols.to_string(), rows.to_string());
        self.ask(&["resize-window", "-t", "pane", "-x", &cols, "-y", &rows]);
    }

    /// The pane's terminal.
    pub(super) fn device(&self) -> &str {
        &self.device
    }

    /// The settings of the pane's terminal.
    pub(super) fn settings(&self) -> String {
        self.stty("-g")
    }

    /// Tells whether it is raw.
    pub(super) fn is_raw(&self) -> bool {
        self.stty("-a").contains("-icanon")
    }

    fn stty(&self, option: &str) -> String {
        let mut stty = Command::new("stty");
        stty.args(["-F", &self.device, option]);
        let done = self.case.dress(stty).output().expect("stty can be run");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).expect("it is text")
    }

    #[track_caller]
    pub(super) fn wait_until_raw(&self) {
        eventually("the terminal to be raw", || self.is_raw());
    }

    #[track_caller]
    pub(super) fn wait_for_settings(&self, settings: &str) {
        eventually("the settings to be as they were", || self.settings() == settings);
    }

    /// Closes the pane's terminal, as somebody does who closes a window.
    pub(super) fn close(self) {
        self.ask(&["kill-pane", "-t", "pane"]);
    }
}

impl Drop for Pane<'_> {
    fn drop(&mut self) {
        // It has ended by itself where the pane is closed.
        let _ = self.command().arg("kill-server").output();
    }
}

impl Case {
    /// Starts a pane with a session in it, attached, and waits until it is.
    #[track_caller]
    pub(super) fn session(&self, options: &str, command: &str) -> (Pane<'_>, Attached) {
        let gate = self.gate("begin");
        let pane = Pane::new(
            self,
            // The settings are those before anything of ours runs.
            &format!(
                "stty -g > before; read go < '{}'; $BINARY term {options} -- {command}; echo \"status $?\"",
                gate.path()
            ),
        );
        let before = || std::fs::read_to_string(self.path("before")).unwrap_or_default();
        eventually("the settings to be written down", || before().ends_with('\n'));
        std::fs::write(gate.path(), "go\n").expect("the shell reads it");
        pane.wait_until_raw();
        let session = Attached {
            pid: self.only("term"),
            before: before(),
        };
        (pane, session)
    }

    /// Finds the one process of the binary whose second word is this.
    #[track_caller]
    pub(super) fn only(&self, word: &str) -> i32 {
        let found = self.called(|words| words.get(1).is_some_and(|second| *second == word));
        assert_eq!(found.len(), 1, "{word}: {found:?}");
        found[0]
    }

    /// Finds the processes that put settings back.
    pub(super) fn watchers(&self) -> Vec<i32> {
        self.called(|words| {
            words
                .first()
                .is_some_and(|name| name.ends_with("terminal-settings"))
        })
    }

    fn called(&self, is_it: impl Fn(&[&str]) -> bool) -> Vec<i32> {
        let mut living = self.living();
        living.retain(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            let is_ours = std::fs::read_link(format!("/proc/{pid}/exe"));
            is_ours.is_ok_and(|file| file.as_os_str() == BINARY)
                && is_it(&line.split('\0').collect::<Vec<_>>())
        });
        living
    }
}

/// A session that is attached to a pane.
pub(super) struct Attached {
    /// Our own process.
    pub(super) pid: i32,
    /// The settings of the pane before it.
    pub(super) before: String,
}
