//! Calls that leave something dead where a reader of the process table may take it for alive, or the other way round.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, setsid};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use crate::{Answer, announce, forever, number};

/// `main-thread-exits`: the first thread ends, and a second one says `ready PID` and stays.
pub(crate) fn main_thread_exits() -> Answer {
    thread::spawn(|| {
        let own = format!("/proc/self/task/{}/stat", std::process::id());
        // The end of a thread that nobody joins is told to nobody.
        while !std::fs::read_to_string(&own).is_ok_and(|stat| stat.contains(") Z ")) {
            thread::sleep(Duration::from_millis(1));
        }
        announce(format!("ready {}", std::process::id())).expect("the output can be written");
        forever()
    });
    // A filter of one thread's own system calls is what ends this thread and no other without unsafe code.
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_sched_yield, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::KillThread,
        TargetArch::try_from(std::env::consts::ARCH)?,
    )?;
    seccompiler::apply_filter(&BpfProgram::try_from(filter)?)?;
    thread::yield_now();
    Err("the first thread lived on".into())
}

/// `zombie-behind`: leaves a zombie in the session it was started in, makes its own session, says `zombie PID` and lets go
/// of the streams. It never takes the zombie's status.
pub(crate) fn zombie_behind() -> Answer {
    let child = Command::new("/proc/self/exe")
        .args(["exit", "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
    setsid()?;
    announce(format!("zombie {pid} {}", std::process::id()))?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    forever()
}

/// `hold-dead PID`: traces a process, says `ready`, and takes no notice of what becomes of it until the end of its input.
/// Until then nobody else can take the status of the process.
pub(crate) fn hold_dead(args: &[String]) -> Answer {
    let pid = Pid::from_raw(number(args, 0, "the pid")?);
    ptrace::seize(pid, ptrace::Options::empty())?;
    announce("ready")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(ExitCode::SUCCESS)
}
