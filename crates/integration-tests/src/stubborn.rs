//! Calls that do not simply end on a signal.

use std::io::{self, Read};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Uid, getuid, setresuid};
use signal_hook::iterator::Signals;

use crate::{Answer, announce, forever, number};

/// `ignore-term`: says `ready PID` and stays; only `SIGKILL` ends it.
pub(crate) fn ignore_term() -> Answer {
    SigSet::from_iter([Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT]).thread_block()?;
    announce(format!("ready {}", std::process::id()))?;
    forever()
}

/// `trap-term TEXT MS`: says `ready PID`; on `SIGTERM` writes TEXT, takes that long to clean up, and exits 0.
pub(crate) fn trap_term(args: &[String]) -> Answer {
    let text = args.first().ok_or("the text is missing")?;
    let cleaning = Duration::from_millis(number(args, 1, "the milliseconds")?);
    let mut signals = Signals::new([libc::SIGTERM])?;
    announce(format!("ready {}", std::process::id()))?;
    signals.forever().next().ok_or("the signals ended")?;
    announce(text)?;
    thread::sleep(cleaning);
    Ok(ExitCode::SUCCESS)
}

/// `become-root [--and-back]`: for a copy of this program that is setuid root. Says `ready PID` once an ordinary user may
/// signal it no more, and stays until the end of its input; with `--and-back` it then becomes its caller's again, says
/// `back`, and only `SIGKILL` ends it.
pub(crate) fn become_root(args: &[String]) -> Answer {
    let root = Uid::from_raw(0);
    let caller = getuid();
    setresuid(root, root, root)?;
    announce(format!("ready {}", std::process::id()))?;
    io::stdin().read_to_end(&mut Vec::new())?;
    if args.first().is_some_and(|argument| argument == "--and-back") {
        SigSet::from_iter([Signal::SIGTERM]).thread_block()?;
        setresuid(caller, caller, caller)?;
        announce("back")?;
        forever()
    }
    Ok(ExitCode::SUCCESS)
}
