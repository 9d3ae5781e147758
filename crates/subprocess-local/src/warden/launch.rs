//! A spec on its way to a running child by way of a tree warden.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_subprocess::{Error, MayHaveStarted};
use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::spawn::{Launch, Program, StartError};

use super::{Launched, RuntimeWarden};
use crate::failure::{self, Asked};
use crate::owner::{Owner, ReaperOwner};
use crate::tree::Tree;

/// Tree wardens that are tried when one was killed before it could hear of its target.
const ATTEMPTS: u32 = 8;

/// Has a tree warden start a tree's target.
pub(crate) fn launch(
    tree: &Arc<Tree>,
    wardens: &Arc<RuntimeWarden>,
    (program, asked): (Program, Asked),
    order: Launch<'_>,
    grace: Duration,
    bound: Duration,
) -> Result<(), Error> {
    // One for all attempts: the caller waits for as long as it would for a single one.
    let deadline = Instant::now() + bound;
    for _ in 0..ATTEMPTS {
        let mut warden = wardens.tree().map_err(|refused| failure::no_warden(&refused))?;
        let launched = warden
            .launch(&program, order, grace, deadline)
            .map_err(|error| failure::unlaunched(&error))?;
        match launched {
            Launched::Running { pid, session_error } => {
                let token = tree.machine.reactor.token();
                let owner = ReaperOwner::new(warden, wardens.reserve(), token, session_error.is_none());
                tree.cloned(Owner::Reaper(owner), pid);
                tree.runs(pid);
                tree.listen();
                wardens.prepare();
                return Ok(());
            }
            Launched::Pending { pid } => {
                let token = tree.machine.reactor.token();
                tree.cloned(
                    Owner::Reaper(ReaperOwner::new(warden, wardens.reserve(), token, true)),
                    pid,
                );
                tree.on_its_way(program, asked);
                tree.listen();
                wardens.prepare();
                return Ok(());
            }
            Launched::Failed(exec) => {
                wardens.give_back(warden);
                return Err(failure::exec(&exec, &program, &asked));
            }
            Launched::NoChild(error) => {
                wardens.give_back(warden);
                return Err(match error {
                    // More than a warden takes is more than any exec does.
                    StartError::Clone(Errno::TOOBIG) => failure::too_big(&asked, Errno::TOOBIG),
                    error => failure::start(&error),
                });
            }
            Launched::Deaf => {}
            Launched::Lost => {
                return Err(match wardens.refusal() {
                    Some(errno) => failure::no_child("a warden for the tree", errno),
                    None => failure::lost_warden("ended", MayHaveStarted::Unknown),
                });
            }
            Launched::Silent { told } => {
                let started = if told {
                    MayHaveStarted::Unknown
                } else {
                    MayHaveStarted::No
                };
                return Err(failure::lost_warden("does not answer", started));
            }
        }
    }
    Err(failure::lost_warden(
        "was killed, time after time, before it heard of it",
        MayHaveStarted::No,
    ))
}
