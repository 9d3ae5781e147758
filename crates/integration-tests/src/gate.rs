//! A stand-in for a dead file system: a file whose execution hangs.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::ExitCode;

use nix::fcntl::AT_FDCWD;
use nix::sys::fanotify::{
    EventFFlags, Fanotify, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response,
};

use crate::{Answer, announce};

/// `gate PATH [--deny]`: says `ready`; from then on whoever executes the file hangs in the kernel. Says `held PID` at the
/// first one (the id of the thread that executes), and lets all of them go on at the end of its input, or with `--deny`
/// fails them. For root only.
pub(crate) fn gate(args: &[String]) -> Answer {
    let path = args.first().ok_or("the path is missing")?;
    let group = Fanotify::init(
        InitFlags::FAN_CLASS_CONTENT,
        EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC,
    )?;
    group.mark(
        MarkFlags::FAN_MARK_ADD,
        MaskFlags::FAN_OPEN_EXEC_PERM,
        AT_FDCWD,
        Some(path.as_str()),
    )?;
    announce("ready")?;
    let answer = if args.get(1).is_some_and(|argument| argument == "--deny") {
        Response::FAN_DENY
    } else {
        Response::FAN_ALLOW
    };
    let held = group.read_events()?;
    let first = held.first().ok_or("an empty batch of events")?.pid();
    announce(format!("held {first}"))?;
    io::stdin().read_to_end(&mut Vec::new())?;
    for event in &held {
        let fd = event.fd().ok_or("an event of an overflowed queue")?;
        group.write_response(FanotifyResponse::new(fd.as_fd(), answer))?;
    }
    // Whoever comes later finds no gate: closing the group removes its mark and lets waiting ones through.
    Ok(ExitCode::SUCCESS)
}
