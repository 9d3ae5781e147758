//! The target is started: by a warden, or by a clone of this process's own.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{Error, Mechanism, WorldString};
use dsh_subprocess_sys::spawn::{Launch, Program};

use super::ends::ChildEnds;
use super::{HANDSHAKE, clone};
use crate::failure::Asked;
use crate::lookup;
use crate::tree::Tree;
use crate::warden;

/// How long a launcher waits for the word of a tree's warden, which tells after 900 ms that an exec hangs. Nobody waits for the
/// launcher, so a machine that is too busy to be on time is no reason to give a tree up.
const SILENCE: Duration = Duration::from_secs(10);

/// Starts the target of a tree, unless its end was asked for before.
pub(super) fn start(tree: &Arc<Tree>, asked: Asked, ends: ChildEnds, grace: Duration) -> Result<(), Error> {
    let machine = &tree.machine;
    if machine.mechanism == Mechanism::Reaper
        && let Some(wardens) = &machine.warden
    {
        if !tree.set_off() {
            return Ok(());
        }
        let order = Launch {
            stdio: ends.stdio(&machine.null),
            control: ends.control(),
            session: ends.session(machine),
            cgroup: None,
            join_cgroup: None,
        };
        let bound = match machine.launchers {
            Some(_) => SILENCE,
            None => HANDSHAKE,
        };
        let program = program_for_warden(&asked);
        return warden::launch(tree, wardens, (program, asked), order, grace, bound);
    }
    if let Some(warden) = &machine.warden {
        warden.keep_up();
    }
    clone::start(tree, asked, ends, grace)
}

pub(super) fn program(asked: &Asked) -> Program {
    laid_out(asked, |path| Cow::Borrowed(path))
}

/// As [`program`], for a child of a warden, to which `/proc/self` would be the warden's.
fn program_for_warden(asked: &Asked) -> Program {
    let host = format!("/proc/{}/", std::process::id());
    laid_out(asked, |path| match path.strip_prefix(b"/proc/self/") {
        Some(rest) => Cow::Owned([host.as_bytes(), rest].concat()),
        None => Cow::Borrowed(path),
    })
}

fn laid_out(asked: &Asked, seen: impl Fn(&[u8]) -> Cow<'_, [u8]>) -> Program {
    let candidates = lookup::candidates(asked.argv[0].as_bytes(), asked.path());
    let candidates: Vec<_> = candidates.iter().map(|candidate| seen(candidate)).collect();
    Program::new(
        asked.argv.iter().map(WorldString::as_bytes),
        asked
            .environment
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes())),
        candidates.iter().map(AsRef::as_ref),
        &seen(asked.cwd.as_bytes()),
    )
}
