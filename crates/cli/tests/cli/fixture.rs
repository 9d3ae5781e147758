//! What the tests stand on: one case's directory and mark, the binary, and bounded waits.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use serde_json::Value;
use tempfile::TempDir;

/// The most that anything here takes on a machine that is busy with something else.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_dsh-subprocess");

/// The variable that marks every process of a case. It passes the scrub, and children keep it wherever they go.
const MARK: &str = "CLI_TEST_CASE";

/// One test's directory and mark.
pub(crate) struct Case {
    directory: TempDir,
    mark: String,
}

/// How a call of the binary ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Case {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let directory = tempfile::tempdir().expect("a directory can be made");
        // The directory's name is nobody else's.
        let name = directory
            .path()
            .file_name()
            .expect("it has a name")
            .to_string_lossy();
        let mark = format!("{name}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        Self { directory, mark }
    }

    /// A path in the case's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file in the case's directory.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("the file can be written");
        path
    }

    /// A FIFO for one announcement of a process.
    pub(crate) fn gate(&self, name: &str) -> Gate {
        let path = self.path(name);
        mkfifo(&path, Mode::from_bits_truncate(0o600)).expect("a FIFO can be made");
        Gate { path }
    }

    /// The binary, called with these words. Its directory, and the places where it may leave files, are the case's.
    pub(crate) fn command(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(BINARY);
        command.args(words);
        self.dress(command)
    }

    /// The binary, called by a shell with a script that goes on with the binary and the words.
    pub(crate) fn command_after(
        &self,
        script: &str,
        words: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Command {
        self.command_in(&format!("{script} \"$0\" \"$@\""), words)
    }

    /// A shell with a script, in which `"$0" "$@"` calls the binary with these words.
    pub(crate) fn command_in(
        &self,
        script: &str,
        words: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, BINARY]).args(words);
        self.dress(command)
    }

    /// Gives a program what the binary gets.
    pub(crate) fn dress(&self, mut command: Command) -> Command {
        command
            .current_dir(self.directory.path())
            .env(MARK, &self.mark)
            // Ours may name directories that this user may not search.
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.directory.path())
            .env("TMPDIR", self.directory.path())
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CACHE_HOME")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Calls the binary and waits for its end.
    #[track_caller]
    pub(crate) fn call(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
        finish(start(&mut self.command(words)))
    }

    /// Runs a command with these options.
    #[track_caller]
    pub(crate) fn run(&self, options: &[&str], command: &[&str]) -> Finished {
        self.call(run_words(options, command))
    }

    /// Runs a script with these options.
    #[track_caller]
    pub(crate) fn sh(&self, options: &[&str], script: &str) -> Finished {
        self.run(options, &["/bin/sh", "-c", script])
    }

    /// Starts a script with these options.
    pub(crate) fn start_sh(&self, options: &[&str], script: &str) -> Child {
        start(&mut self.command(run_words(options, &["/bin/sh", "-c", script])))
    }

    /// Runs a script with --json and these options, and returns the object.
    #[track_caller]
    pub(crate) fn json(&self, options: &[&str], script: &str) -> Value {
        self.sh(&[&["--json"], options].concat(), script).object()
    }

    /// The tree check: nothing that carries this case's mark is alive.
    #[track_caller]
    pub(crate) fn assert_nothing_lives(&self) {
        assert_eq!(self.living(), [0; 0], "processes of the case are alive");
    }

    /// Lists the processes of this case that can run, however far they went.
    pub(crate) fn living(&self) -> Vec<i32> {
        let mark = format!("{MARK}={}", self.mark);
        let table = std::fs::read_dir("/proc").expect("/proc is there");
        table
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| {
                let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment
                    .split(|&byte| byte == 0)
                    .any(|variable| variable == mark.as_bytes())
            })
            .filter(|&pid| state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X')))
            .collect()
    }
}

impl Drop for Case {
    /// Leaves nothing behind, whatever the test found.
    fn drop(&mut self) {
        for pid in self.living() {
            // It may have ended by itself.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Reads a process's state, as in `R` and `S`. `None` where there is no such process.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn run_words<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["run"], options, &["--"], command].concat()
}

/// A FIFO through which a process says that it has come so far.
pub(crate) struct Gate {
    path: PathBuf,
}

impl Gate {
    /// The path, for the process: `echo ready > PATH`.
    pub(crate) fn path(&self) -> String {
        self.path
            .to_str()
            .expect("the directory's name is text")
            .to_owned()
    }

    /// Waits for the line, and returns it without its end.
    #[track_caller]
    pub(crate) fn wait(&self) -> String {
        let path = self.path.clone();
        within("a line through the gate", move || {
            let mut line = String::new();
            BufReader::new(File::open(path).expect("the gate is there"))
                .read_line(&mut line)
                .expect("it is text");
            line.trim_end().to_owned()
        })
    }
}

impl Finished {
    /// The exit code. A signal is a failed test.
    #[track_caller]
    pub(crate) fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| panic!("ended by signal {:?}", self.status.signal()))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("stdout is text")
    }

    /// The one line on stderr, without its end and our name.
    #[track_caller]
    pub(crate) fn line(&self) -> &str {
        let line = self
            .stderr
            .strip_suffix('\n')
            .unwrap_or_else(|| panic!("no line: {:?}", self.stderr));
        assert!(!line.contains('\n'), "more than one line: {:?}", self.stderr);
        line.strip_prefix("dsh-subprocess: ")
            .unwrap_or_else(|| panic!("not our line: {line}"))
    }

    /// The one object on stdout. It must be what `docs/run.schema.json` says, with no property that is not there.
    #[track_caller]
    pub(crate) fn object(&self) -> Value {
        self.object_of(&RUN_SCHEMA)
    }

    /// The same for `docs/sh.schema.json`.
    #[track_caller]
    pub(crate) fn sh_object(&self) -> Value {
        self.object_of(&SH_SCHEMA)
    }

    #[track_caller]
    fn object_of(&self, schema: &jsonschema::Validator) -> Value {
        let mut objects = serde_json::Deserializer::from_slice(&self.stdout).into_iter::<Value>();
        let object = objects.next().expect("there is an object").expect("it is JSON");
        assert!(
            objects.next().is_none(),
            "there is more than one object: {}",
            self.text()
        );
        assert!(self.stdout.ends_with(b"}\n"));
        let faults: Vec<_> = schema
            .iter_errors(&object)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert_eq!(faults, [""; 0], "{object:#}");
        assert_eq!(object["exit_status"], self.code());
        object
    }
}

static RUN_SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| schema("run.schema.json"));
static SH_SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| schema("sh.schema.json"));

/// Reads a schema and closes it: a property that is missing in the document is a fault of the document.
fn schema(name: &str) -> jsonschema::Validator {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(path).expect("the schema is there");
    let mut schema: Value = serde_json::from_slice(&text).expect("the schema is JSON");
    close(&mut schema);
    jsonschema::draft202012::new(&schema).expect("the schema is one")
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(close);
            if map.get("properties").is_some_and(Value::is_object) {
                map.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

/// Starts the binary.
pub(crate) fn start(command: &mut Command) -> Child {
    command.spawn().expect("the binary starts")
}

/// Waits for a call's end, reading whatever of its output was not taken.
#[track_caller]
pub(crate) fn finish(child: Child) -> Finished {
    let pid = Pid::from_raw(child.id().cast_signed());
    let (sender, result) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let output = result.recv_timeout(BOUND).unwrap_or_else(|_| {
        let _ = kill(pid, Signal::SIGKILL);
        panic!("the call did not end");
    });
    let output = output.expect("its output can be read");
    let stderr = String::from_utf8(output.stderr).expect("stderr is text");
    assert!(!stderr.contains("panicked"), "{stderr}");
    Finished {
        status: output.status,
        stdout: output.stdout,
        stderr,
    }
}

/// Sends a signal to a call.
pub(crate) fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("the call lives");
}

/// Waits until there is something to read, and leaves it there.
#[track_caller]
pub(crate) fn readable(pipe: &impl AsFd) {
    let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    let bound = PollTimeout::try_from(BOUND).expect("poll can wait so long");
    let count = poll(&mut polled, bound).expect("the pipe can be polled");
    assert_eq!(count, 1, "waited in vain for output");
}

/// Reads one line of a live call's stdout.
#[track_caller]
pub(crate) fn stdout_line(child: &mut Child) -> String {
    let mut stdout = child.stdout.take().expect("stdout was not taken yet");
    let (line, stdout) = within("a line of output", move || {
        let mut line = Vec::new();
        let mut byte = [0];
        // Byte by byte: what follows belongs to whoever reads on.
        while stdout.read(&mut byte).expect("stdout can be read") == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        (String::from_utf8(line).expect("the line is text"), stdout)
    });
    child.stdout = Some(stdout);
    line
}

/// Does something that blocks, on a thread of its own, within the bound.
#[track_caller]
pub(crate) fn within<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, result) = mpsc::channel();
    thread::spawn(move || sender.send(act()));
    result
        .recv_timeout(BOUND)
        .unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// Waits until something that only a look can tell has happened.
#[track_caller]
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + BOUND;
    while !happened() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
