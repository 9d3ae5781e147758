//! The command has the caller's terminal as if nobody stood between.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use super::OWNERS;
use crate::fixture::{BINARY, Case, eventually, finish, start};

/// A terminal that a shell was started on, in a session of its own.
struct Terminal {
    call: Child,
    keyboard: ChildStdin,
    screen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// `line` is what the shell carries out. `$BINARY` in it is the binary.
    fn new(case: &Case, line: &str) -> Self {
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", line, "/dev/null"]);
        let mut command = case.dress(command);
        command
            .env("BINARY", BINARY)
            .env("SHELL", "/bin/sh")
            .env("TERM", "dumb")
            .stdin(Stdio::piped());
        let mut call = start(&mut command);
        let keyboard = call.stdin.take().expect("it is a pipe");
        let mut output = call.stdout.take().expect("it is a pipe");
        let screen = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&screen);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                written.lock().unwrap().extend_from_slice(&bytes[..read]);
            }
        });
        Self {
            call,
            keyboard,
            screen,
        }
    }

    fn types(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("the terminal takes keys");
    }

    /// Everything that was shown.
    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).replace('\r', "")
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        eventually(text, || self.shown().contains(text));
    }

    /// Waits for the end of the shell, and returns its status.
    #[track_caller]
    fn end(self) -> i32 {
        // The keyboard stays: its end would be typed as one.
        finish(self.call).code()
    }
}

#[test]
fn the_command_is_in_the_foreground_and_leaves_the_terminal_as_it_was() {
    for owner in OWNERS {
        let case = Case::new();
        let command = case.file(
            "command.sh",
            "echo group $(cut -d' ' -f5,8 /proc/self/stat)\necho by name > /dev/tty\nread line < /dev/tty\necho read $line\n",
        );
        let line = format!(
            "stty -g > before; $BINARY exec --ownership {owner} -- sh '{}'; echo status $?; stty -g > after",
            command.display()
        );
        let mut terminal = Terminal::new(&case, &line);
        terminal.wait_for("by name");
        terminal.types("typed\n");
        terminal.wait_for("read typed");
        terminal.wait_for("status 0");
        let shown = terminal.shown();
        assert_eq!(terminal.end(), 0);
        let group = shown
            .lines()
            .find_map(|line| line.strip_prefix("group "))
            .expect("it was shown");
        let (own, foreground) = group.split_once(' ').expect("there are two");
        assert_eq!(own, foreground, "{owner}");
        let settings = |name| std::fs::read_to_string(case.path(name)).expect("stty wrote it");
        assert_eq!(settings("before"), settings("after"), "{owner}");
    }
}

#[test]
fn what_is_typed_to_interrupt_reaches_the_command_once() {
    for owner in OWNERS {
        let case = Case::new();
        let command = case.file(
            "command.sh",
            "trap 'echo interrupted' INT\necho prepared\nuntil read line && [ \"$line\" ]; do :; done\necho read $line\nexit 9\n",
        );
        // As the leader of the session, and as a child of it.
        for [before, after] in [["exec", ""], ["trap : INT;", "; exit $?"]] {
            let line = format!(
                "{before} $BINARY exec --ownership {owner} -- sh '{}'{after}",
                command.display()
            );
            let mut terminal = Terminal::new(&case, &line);
            terminal.wait_for("prepared");
            terminal.types("\x03");
            terminal.wait_for("interrupted");
            terminal.types("typed\n");
            terminal.wait_for("read typed");
            let shown = terminal.shown();
            assert_eq!(shown.matches("interrupted").count(), 1, "{owner}: {shown}");
            assert_eq!(terminal.end(), 9);
        }
    }
}

#[test]
fn what_is_typed_to_interrupt_ends_a_command_that_lets_it() {
    for owner in OWNERS {
        let case = Case::new();
        let line =
            format!("$BINARY exec --ownership {owner} -- sh -c 'echo pre\"\"pared; exec sleep 300'; exit $?");
        let mut terminal = Terminal::new(&case, &line);
        terminal.wait_for("prepared");
        terminal.types("\x03");
        assert_eq!(terminal.end(), 130, "{owner}");
        case.wait_for_nothing();
    }
}

#[test]
fn the_terminals_end_is_the_commands() {
    for owner in OWNERS {
        for prefix in ["exec", ":;"] {
            let case = Case::new();
            let line = format!(
                "{prefix} $BINARY exec --ownership {owner} --grace 200ms -- sh '{}' command",
                case.member()
            );
            let terminal = Terminal::new(&case, &line);
            case.wait_for_log("command ready");
            let Terminal { mut call, .. } = terminal;
            call.kill().expect("it lives");
            call.wait().expect("it is our child");
            case.wait_for_nothing();
            assert!(case.log().contains(&"command HUP".to_owned()), "{owner} {prefix}");
        }
    }
}

#[test]
fn a_shell_stops_and_continues_it_as_a_job() {
    for owner in OWNERS {
        let case = Case::new();
        let (ready, status) = (case.gate("ready"), case.gate("status"));
        let command = case.file(
            "command.sh",
            format!("echo $$ > '{}'\nexec sleep 300\n", ready.path()),
        );
        let mut terminal = Terminal::new(&case, "exec bash --norc --noprofile --noediting -i");
        terminal.types(&format!(
            "$BINARY exec --ownership {owner} -- sh '{}'\n",
            command.display()
        ));
        let pid: i32 = ready.wait().parse().expect("it is a number");
        terminal.types("\x1a");
        terminal.wait_for("Stopped");
        // The shell knows of us alone.
        eventually("the command's stop", || crate::fixture::state(pid) == Some('T'));
        terminal.types("fg\n");
        eventually("the command to go on", || crate::fixture::state(pid) == Some('S'));
        terminal.types("\x03");
        terminal.types(&format!("echo $? > '{}'\n", status.path()));
        assert_eq!(status.wait(), "130", "{owner}");
        terminal.types("exit 0\n");
        assert_eq!(terminal.end(), 0);
        case.wait_for_nothing();
    }
}
