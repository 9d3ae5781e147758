//! The target is cloned by this process: into a leaf of its own where the runtime has leaves, else into a session.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_subprocess::Error;
use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::pidfd::Pid;
use dsh_subprocess_sys::signal;
use dsh_subprocess_sys::spawn::{self, FailedStep, Launch, Pending, StartError, Started};
use dsh_subprocess_sys::steps::{Step, step};
use dsh_subprocess_sys::table;

use super::HANDSHAKE;
use super::ends::ChildEnds;
use super::start::program;
use crate::failure::{self, Asked};
use crate::machine::Machine;
use crate::owner::{Entrance, Leaf, Owner, SessionOwner};
use crate::tree::Tree;

/// Clones the target of a tree, unless its end was asked for before.
pub(super) fn start(tree: &Arc<Tree>, asked: Asked, ends: ChildEnds, grace: Duration) -> Result<(), Error> {
    let machine = &tree.machine;
    let Some(Cloned { started, leaf, born }) = clone(tree, &asked, &ends, grace)? else {
        return Ok(());
    };
    // The child has its copies now; ours would keep the streams from ending.
    drop(ends);
    match started {
        Err(error) => {
            give_back(leaf);
            Err(failure::start(&error))
        }
        Ok(Started::Failed(exec, program)) => {
            give_back(leaf);
            Err(failure::exec(&exec, &program, &asked))
        }
        Ok(Started::Running(child)) => {
            let owner = owner(machine, leaf, child.pid, child.session_error, born);
            tree.cloned(owner, child.pid);
            tree.running(child.pid, child.pidfd);
            Ok(())
        }
        Ok(Started::Pending(pending)) => {
            let pid = pending.pid();
            // Whether it has a session of its own was decided long ago, but is told only with the rest.
            let session_error = (table::session_of(pid) != Some(pid)).then_some(Errno::PERM);
            tree.cloned(owner(machine, leaf, pid, session_error, born), pid);
            follow(tree, pending, asked);
            Ok(())
        }
    }
}

/// What became of a clone.
struct Cloned {
    started: Result<Started, StartError>,
    /// Where the child is, or would have been.
    leaf: Option<Leaf>,
    born: Instant,
}

/// Clones the child into a leaf of its own, where the runtime has leaves. `None` where the tree's end came first.
fn clone(
    tree: &Arc<Tree>,
    asked: &Asked,
    ends: &ChildEnds,
    grace: Duration,
) -> Result<Option<Cloned>, Error> {
    let machine = &*tree.machine;
    let group = |errno: Errno| failure::no_child("the cgroup of the tree", errno);
    loop {
        let mut leaf = machine
            .leaves
            .as_ref()
            .map(|leaves| leaves.take(grace).map_err(group))
            .transpose()?;
        step(Step::LeafTaken);
        let entrance = match leaf.as_mut().map(Leaf::entrance).transpose() {
            Ok(entrance) => entrance,
            Err(errno) => {
                give_back(leaf);
                return Err(group(errno));
            }
        };
        let (cgroup, join_cgroup) = match &entrance {
            Some(Entrance::Directory(directory)) => (Some(directory.as_fd()), None),
            Some(Entrance::Join(procs)) => (None, Some(procs.as_fd())),
            None => (None, None),
        };
        let launch = Launch {
            stdio: ends.stdio(&machine.null),
            control: ends.control(),
            session: ends.session(machine),
            cgroup,
            join_cgroup,
        };
        let born = Instant::now();
        let Some(started) = child(tree, asked, launch) else {
            give_back(leaf);
            return Ok(None);
        };
        // An earlier tenant may have changed the leaf so that nobody can enter it (made it a threaded one).
        let refused = match &started {
            Err(StartError::Clone(errno)) => matches!(*errno, Errno::OPNOTSUPP | Errno::BUSY | Errno::NODEV),
            Ok(Started::Failed(failure, _)) => failure.step == FailedStep::JoinCgroup,
            _ => false,
        };
        match leaf {
            Some(leaf) if refused && leaf.is_reused() => leaf.discard(),
            leaf => return Ok(Some(Cloned { started, leaf, born })),
        }
    }
}

/// Makes the child, and waits until it runs its program: a caller for at most the handshake, a launcher for as long as it takes,
/// since another launcher takes its place. `None` where the tree's end came first.
fn child(tree: &Arc<Tree>, asked: &Asked, launch: Launch<'_>) -> Option<Result<Started, StartError>> {
    let machine = &*tree.machine;
    let program = program(asked);
    if machine.launchers.is_none() {
        return Some(spawn::start(program, launch, machine.kernel, HANDSHAKE));
    }
    // The clone itself waits for nothing, so that it can be made under the tree's lock: whoever kills the tree finds no child
    // or the whole child.
    let started = tree.bear(|| spawn::start(program, launch, machine.kernel, Duration::ZERO))?;
    Some(started.map(|started| match started {
        Started::Pending(pending) => pending.wait(),
        started => started,
    }))
}

/// Waits, on a thread of its own, for a child whose exec hangs. The thread lasts as long as the exec does.
fn follow(tree: &Arc<Tree>, pending: Pending, asked: Asked) {
    let waiting = Arc::clone(tree);
    let pid = pending.pid();
    let copy = pending.pidfd().try_clone();
    let _mask = signal::block_for_new_thread();
    let followed = std::thread::Builder::new()
        .name("dsh-slow-exec".to_owned())
        .spawn(move || match pending.wait() {
            Started::Running(child) => waiting.running(child.pid, child.pidfd),
            Started::Failed(exec, program) => waiting.failed(&failure::exec(&exec, &program, &asked)),
            Started::Pending(_) => unreachable!("a wait without a bound ends with an answer"),
        });
    if let Err(error) = followed {
        tree.unobserved(pid, copy, &failure::unobserved(error));
    }
}

fn owner(
    machine: &Machine,
    leaf: Option<Leaf>,
    pid: Pid,
    session_error: Option<Errno>,
    born: Instant,
) -> Owner {
    if let Some(errno) = session_error {
        tracing::warn!(%errno, "the child has no session of its own");
    }
    match leaf {
        Some(leaf) => Owner::Cgroup(leaf),
        None => Owner::Session(SessionOwner::new(
            pid,
            session_error.is_none(),
            born,
            machine.reserve(),
        )),
    }
}

fn give_back(leaf: Option<Leaf>) {
    if let Some(leaf) = leaf {
        let total = leaf.total();
        leaf.release(total);
    }
}
