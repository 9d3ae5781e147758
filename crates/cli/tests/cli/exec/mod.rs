//! One command in the binary's place.

mod end;
mod environment;
mod guardian;
mod host_death;
mod signals;
mod streams;
mod terminal;

use std::process::Command;

use crate::fixture::{Case, Finished, eventually, finish, start};

/// The owners that every promise is checked with: the strongest there is, and the one that everybody has.
const OWNERS: [&str; 2] = ["auto", "reaper"];

impl Case {
    /// A command in the binary's place, with these options.
    fn exec(&self, options: &[&str], command: &[&str]) -> Command {
        self.command(exec_words(options, command))
    }

    /// The same, to its end.
    #[track_caller]
    fn exec_to_end(&self, options: &[&str], command: &[&str]) -> Finished {
        finish(start(&mut self.exec(options, command)))
    }

    /// A script whose process says in the case's log when it is `ready` and which signals it got, in lines that begin with
    /// its one argument. It ends only by force, or by `SIGUSR2`.
    fn member(&self) -> String {
        let script = "\
            for signal in HUP TERM USR1 WINCH; do trap \"echo $1 $signal >> log\" $signal; done\n\
            trap 'kill -9 $!; exit 3' USR2\n\
            sleep 300 > /dev/null 2>&1 & echo $1 ready >> log\n\
            while :; do wait $!; kill -0 $! 2> /dev/null || sleep 300 > /dev/null 2>&1 & done\n";
        let path = self.file("member.sh", script);
        path.to_str().expect("the directory's name is text").to_owned()
    }

    /// The lines of the log, in the order in which they were written.
    fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Waits until the log holds a line.
    #[track_caller]
    fn wait_for_log(&self, line: &str) {
        eventually(line, || self.log().iter().any(|logged| logged == line));
    }

    /// Waits until nothing of the case lives.
    #[track_caller]
    fn wait_for_nothing(&self) {
        eventually("the end of the tree", || self.living().is_empty());
    }
}

fn exec_words<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["exec"], options, &["--"], command].concat()
}
