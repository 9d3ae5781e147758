//! Calls that grow trees, and let parts of them leave.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio, exit};
use std::thread;
use std::time::Duration;

use fork::Fork;
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, setsid};

use crate::{Answer, announce, forever, number};

/// Another call of this program, with standard streams inherited.
fn again(args: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(args);
    command
}

/// `sleep`: says `ready PID` and stays until a signal ends it.
pub(crate) fn sleep() -> Answer {
    announce(format!("ready {}", std::process::id()))?;
    forever()
}

/// `tree N [--depth D]`: starts N chains of D processes each, says `ready PID…` with the pids of all of them, and stays.
///
/// No member but the leader holds the leader's streams.
pub(crate) fn tree(args: &[String]) -> Answer {
    let width: usize = number(args, 0, "the number of chains")?;
    let depth = match args.get(1).map(String::as_str) {
        Some("--depth") => number(args, 2, "the depth")?,
        _ => 1,
    };
    let mut branches = Vec::new();
    for _ in 0..width {
        branches.push(branch(depth)?);
    }
    let pids: Vec<&str> = branches.iter().map(|branch| branch.pids.as_str()).collect();
    announce(format!("ready {}", pids.join(" ")))?;
    forever()
}

/// `tree-node D`: one process of a chain, with D - 1 below it. Writes all their pids on one line.
pub(crate) fn node(args: &[String]) -> Answer {
    let depth: usize = number(args, 0, "the depth")?;
    let below = if depth > 1 { Some(branch(depth - 1)?) } else { None };
    let pids = below.as_ref().map_or("", |branch| &branch.pids);
    announce(format!("{} {pids}", std::process::id()).trim_end())?;
    forever()
}

/// A chain of live processes: the pipe stays open as long as this value, so that no member gets `SIGPIPE`.
struct Branch {
    pids: String,
    _child: Child,
    _pipe: BufReader<ChildStdout>,
}

fn branch(depth: usize) -> Result<Branch, Box<dyn Error>> {
    let mut child = again(&["tree-node", &depth.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut pipe = BufReader::new(child.stdout.take().ok_or("no pipe to the chain")?);
    let mut pids = String::new();
    pipe.read_line(&mut pids)?;
    Ok(Branch {
        pids: pids.trim_end().to_owned(),
        _child: child,
        _pipe: pipe,
    })
}

/// `hold-stdout [CALL…]`: a background child (another call; `sleep` where none is named) keeps the streams, the leader
/// exits at once.
pub(crate) fn hold_stdout(args: &[String]) -> Answer {
    let call: Vec<&str> = if args.is_empty() {
        vec!["sleep"]
    } else {
        args.iter().map(String::as_str).collect()
    };
    again(&call).spawn()?;
    Ok(ExitCode::SUCCESS)
}

/// `setsid-escape [--close] [--leave]`: a daemon leaves by a double fork into a session of its own and says
/// `ready PID`; with `--close` it then lets go of the streams. The leader stays, or exits with `--leave`.
pub(crate) fn escape(args: &[String]) -> Answer {
    let close = args.iter().any(|argument| argument == "--close");
    let step = if close {
        again(&["escape-step", "--close"])
    } else {
        again(&["escape-step"])
    }
    .status()?;
    if !step.success() {
        return Err(format!("the step out of the session ended with {step}").into());
    }
    if args.iter().any(|argument| argument == "--leave") {
        return Ok(ExitCode::SUCCESS);
    }
    forever()
}

/// `escape-step [--close]`: the first child of the double fork.
pub(crate) fn escape_step(args: &[String]) -> Answer {
    setsid()?;
    let mut daemon = vec!["escaped"];
    daemon.extend(args.iter().map(String::as_str));
    again(&daemon).spawn()?;
    Ok(ExitCode::SUCCESS)
}

/// `escaped [--close]`: the daemon itself.
pub(crate) fn escaped(args: &[String]) -> Answer {
    announce(format!("ready {}", std::process::id()))?;
    if args.first().is_some_and(|argument| argument == "--close") {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&null)?;
        dup2_stdout(&null)?;
        dup2_stderr(&null)?;
    }
    forever()
}

/// `new-group`: a child in a process group of its own, in the same session (as a job of `set -m` is), says `ready PID`;
/// the leader stays.
pub(crate) fn new_group() -> Answer {
    use std::os::unix::process::CommandExt;
    again(&["sleep"]).process_group(0).spawn()?;
    forever()
}

/// `stop-member`: says `stopped PID` once a child of it has stopped itself, and stays.
pub(crate) fn stop_member() -> Answer {
    let child = again(&["stop-self"]).spawn()?;
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    match waitpid(pid, Some(WaitPidFlag::WUNTRACED))? {
        WaitStatus::Stopped(_, Signal::SIGSTOP) => announce(format!("stopped {pid}"))?,
        other => return Err(format!("the member did not stop: {other:?}").into()),
    }
    forever()
}

/// `stop-self`: stops, and stays once it is continued.
pub(crate) fn stop_self() -> Answer {
    raise(Signal::SIGSTOP)?;
    forever()
}

/// `threads N`: says `ready PID` with N threads beside the first one, and stays.
pub(crate) fn threads(args: &[String]) -> Answer {
    let count: usize = number(args, 0, "the number of threads")?;
    for _ in 0..count {
        thread::spawn(|| forever());
    }
    announce(format!("ready {}", std::process::id()))?;
    forever()
}

/// `linger MS`: the leader exits at once; one member, which holds no stream, outlives it by that long.
pub(crate) fn linger(args: &[String]) -> Answer {
    let millis: u64 = number(args, 0, "the milliseconds")?;
    again(&["nap", &millis.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(ExitCode::SUCCESS)
}

/// `nap MS`: exits after that long.
pub(crate) fn nap(args: &[String]) -> Answer {
    thread::sleep(Duration::from_millis(number(args, 0, "the milliseconds")?));
    Ok(ExitCode::SUCCESS)
}

/// `refork [--setsid]`: says `ready`, then one member hands over to a child of its own every 2 ms, for ever; with
/// `--setsid` each of them leads a session of its own. The leader stays.
pub(crate) fn refork(args: &[String]) -> Answer {
    let new_session = args.first().is_some_and(|argument| argument == "--setsid");
    announce("ready")?;
    if let Fork::Parent(_) = fork::fork()? {
        forever()
    }
    loop {
        if let Fork::Parent(_) = fork::fork()? {
            return Ok(ExitCode::SUCCESS);
        }
        if new_session {
            setsid()?;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// `chains N`: starts N chains, in each of which every process makes the next one, in a session of its own, and ends at once;
/// says `ready` when all have begun, and stays until the end of its input. They ignore `SIGTERM`.
pub(crate) fn chains(args: &[String]) -> Answer {
    let count: usize = number(args, 0, "the number of chains")?;
    SigSet::from_iter([Signal::SIGTERM, Signal::SIGHUP]).thread_block()?;
    for _ in 0..count {
        if fork::fork()? == Fork::Child {
            chain()?;
        }
    }
    announce("ready")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(ExitCode::SUCCESS)
}

/// Goes on for ever, each time as another process.
fn chain() -> nix::Result<()> {
    loop {
        match fork::fork() {
            Ok(Fork::Parent(_)) => exit(0),
            Ok(Fork::Child) => drop(setsid()?),
            // No process is to be had now.
            Err(_) => thread::yield_now(),
        }
    }
}
