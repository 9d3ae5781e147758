//! Which mechanism owns the trees of a runtime: the strongest whose probe succeeds, or the one that was asked for.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use dsh_subprocess::{Error, ErrorKind, Mechanism};
use dsh_subprocess_sys::kernel::Kernel;
use dsh_subprocess_sys::orphans;
use dsh_subprocess_sys::spawn::Session;

use crate::builder::OwnershipChoice;
use crate::failure;
use crate::janitor::Record;
use crate::owner::Leaves;
use crate::probe;
use crate::warden::RuntimeWarden;

/// A mechanism that works here, with what it takes.
pub(crate) struct Chosen {
    pub(crate) mechanism: Mechanism,
    pub(crate) leaves: Option<Arc<Leaves>>,
    /// Who goes on when this process has ended.
    pub(crate) warden: Option<Arc<RuntimeWarden>>,
    /// What of the kernel's features works here.
    pub(crate) kernel: Kernel,
}

/// The mechanisms that own a whole tree, strongest first. An orphan of a tree that the control group owns comes to the
/// nearest subreaper: where that is this process, it would be left with zombies, so the reaper is the first there.
pub(crate) fn order() -> [Mechanism; 2] {
    if orphans::come_here() {
        [Mechanism::Reaper, Mechanism::Cgroup]
    } else {
        [Mechanism::Cgroup, Mechanism::Reaper]
    }
}

/// Chooses. What the mechanism has in file systems is written into the record.
pub(crate) fn choose(
    asked: OwnershipChoice,
    kernel: Kernel,
    session: Session,
    null: &OwnedFd,
    record: Option<&Arc<Record>>,
) -> Result<Chosen, Error> {
    let attempt = |mechanism: &Mechanism| match mechanism {
        Mechanism::Reaper => reaper(kernel, session, null),
        _ => cgroup(kernel, session, null, record),
    };
    let forced = |mechanism: Mechanism| {
        let name = mechanism.to_string();
        attempt(&mechanism)
            .map_err(|why| unavailable(format!("the {name} mechanism does not work here: {why}")))
    };
    match asked {
        OwnershipChoice::Cgroup => forced(Mechanism::Cgroup),
        OwnershipChoice::Reaper => forced(Mechanism::Reaper),
        OwnershipChoice::ProcessGroup => process_group(kernel, session),
        OwnershipChoice::Auto => {
            let mut refused = Vec::new();
            for mechanism in order() {
                match attempt(&mechanism) {
                    Ok(chosen) => return Ok(chosen),
                    Err(why) => refused.push(format!("{mechanism}: {why}")),
                }
            }
            tracing::debug!(?refused, "the process group owns the trees");
            process_group(kernel, session)
                .map_err(|error| unavailable(format!("{error} ({})", refused.join("; "))))
        }
    }
}

fn reaper(kernel: Kernel, session: Session, null: &OwnedFd) -> Result<Chosen, String> {
    Ok(Chosen {
        mechanism: Mechanism::Reaper,
        leaves: None,
        warden: Some(probe::reaper(kernel, session, null)?),
        kernel,
    })
}

fn cgroup(
    kernel: Kernel,
    session: Session,
    null: &OwnedFd,
    record: Option<&Arc<Record>>,
) -> Result<Chosen, String> {
    let (leaves, kernel) = probe::cgroup(kernel, null, record)?;
    let warden = RuntimeWarden::start(kernel, session)
        .map_err(|error| failure::chain(&error))
        .and_then(|warden| {
            leaves
                .entrust(&warden)
                .map(|()| warden)
                .map_err(|errno| format!("the runtime's group could not be handed over: {errno}"))
        });
    if let Err(why) = &warden {
        if session != Session::Own {
            // Children on the host's terminal are there for a launcher that promises their end with its own.
            let _ = leaves.remove();
            return Err(why.clone());
        }
        tracing::warn!(why, "no warden: if this host is killed, its trees run on");
    }
    Ok(Chosen {
        mechanism: Mechanism::Cgroup,
        leaves: Some(leaves),
        warden: warden.ok(),
        kernel,
    })
}

fn process_group(kernel: Kernel, session: Session) -> Result<Chosen, Error> {
    if session != Session::Own {
        return Err(unavailable(
            "a process group cannot own children that stay in the host's session".to_owned(),
        ));
    }
    Ok(Chosen {
        mechanism: Mechanism::ProcessGroup,
        leaves: None,
        warden: None,
        kernel,
    })
}

fn unavailable(message: String) -> Error {
    Error::new(ErrorKind::OwnershipUnavailable, "build", message)
}
