//! Whether a mechanism really works here: not whether it should.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_subprocess_sys::kernel::Kernel;
use dsh_subprocess_sys::pidfd;
use dsh_subprocess_sys::spawn::{Descriptor, FailedStep, Launch, Program, Session, Started, start};
use dsh_subprocess_sys::table;

use crate::failure;
use crate::janitor::Record;
use crate::owner::{Entrance, Leaves};
use crate::warden::{Launched, RuntimeWarden};

/// Makes the runtime's group, which the record names, and has a child born in a leaf of it. Returns the kernel features that
/// this takes here.
///
/// The child executes nothing: its only candidate is a device, so it fails at the last step, and that it came so far is
/// the proof.
pub(crate) fn cgroup(
    mut kernel: Kernel,
    null: &OwnedFd,
    record: Option<&Arc<Record>>,
) -> Result<(Arc<Leaves>, Kernel), String> {
    match with_kernel(kernel, null, record) {
        // Some kernels kill the newborn when the host's own group was killed before: see `Leaf::release`. A child that
        // moves itself is not compared.
        Err(_) if kernel.clone_into_cgroup => {
            kernel.clone_into_cgroup = false;
            with_kernel(kernel, null, record)
        }
        result => result,
    }
}

fn with_kernel(
    kernel: Kernel,
    null: &OwnedFd,
    record: Option<&Arc<Record>>,
) -> Result<(Arc<Leaves>, Kernel), String> {
    let leaves = Leaves::create(kernel, record.cloned()).map_err(|error| failure::chain(&error))?;
    let tried = try_leaf(&leaves, kernel, null);
    if tried.is_err() {
        let _ = leaves.remove();
    }
    tried.map(|()| (leaves, kernel))
}

fn try_leaf(leaves: &Arc<Leaves>, kernel: Kernel, null: &OwnedFd) -> Result<(), String> {
    let mut leaf = leaves.take(Duration::ZERO).map_err(|errno| {
        format!(
            "a group cannot be made below {}: {errno}",
            leaves.path().display()
        )
    })?;
    let entrance = leaf.entrance().map_err(|errno| {
        format!(
            "a group below {} cannot be opened: {errno}",
            leaves.path().display()
        )
    })?;
    let (cgroup, join_cgroup) = match &entrance {
        Entrance::Directory(directory) => (Some(directory.as_fd()), None),
        Entrance::Join(procs) => (None, Some(procs.as_fd())),
    };
    let stdio = [Descriptor::From(null.as_fd()); 3];
    let program = Program::new([b"probe".as_slice()], [], [b"/dev/null".as_slice()], b"/");
    let started = start(
        program,
        Launch {
            stdio,
            control: None,
            session: Session::Own,
            cgroup,
            join_cgroup,
        },
        kernel,
        Duration::from_secs(5),
    );
    let result = match started {
        Ok(Started::Failed(failure, _)) if failure.step == FailedStep::Exec => Ok(()),
        Ok(Started::Failed(failure, _)) => Err(format!(
            "a child cannot enter a group below {}: {}",
            leaves.path().display(),
            std::io::Error::from_raw_os_error(failure.errno)
        )),
        Ok(Started::Running(child)) => {
            let end = pidfd::wait(&child.pidfd, pidfd::Wait::Block);
            Err(format!(
                "a child that was born in a group below {} was ended there: {end:?}",
                leaves.path().display()
            ))
        }
        Ok(Started::Pending(_)) => Err("a child did not reach its program in 5 s".to_owned()),
        Err(error) => {
            let cause = std::error::Error::source(&error)
                .map(ToString::to_string)
                .unwrap_or_default();
            Err(format!(
                "a child cannot be born in a group below {}: {error}: {cause}",
                leaves.path().display()
            ))
        }
    };
    let killable = leaf.check_kill();
    leaf.release(None);
    result?;
    killable.map_err(|errno| {
        format!(
            "a group below {} cannot be killed: {errno}",
            leaves.path().display()
        )
    })
}

/// Starts the runtime's warden and has a tree warden start a child, which executes nothing: see [`cgroup`].
pub(crate) fn reaper(kernel: Kernel, session: Session, null: &OwnedFd) -> Result<Arc<RuntimeWarden>, String> {
    if !table::is_ours() {
        return Err(
            "/proc is not there, or shows another pid namespace, so members could not be found".to_owned(),
        );
    }
    if !table::lists_descendants() {
        return Err(
            "the kernel does not list the children of a thread in /proc (CONFIG_PROC_CHILDREN)".to_owned(),
        );
    }
    let wardens = RuntimeWarden::start(kernel, session).map_err(|error| {
        format!(
            "the runtime's warden could not be started: {}",
            failure::chain(&error)
        )
    })?;
    let mut warden = wardens
        .tree()
        .map_err(|error| format!("no warden for a tree could be made: {}", failure::chain(&error)))?;
    let program = Program::new([b"probe".as_slice()], [], [b"/dev/null".as_slice()], b"/");
    let stdio = [Descriptor::From(null.as_fd()); 3];
    let order = Launch {
        stdio,
        control: None,
        session,
        cgroup: None,
        join_cgroup: None,
    };
    match warden.launch(
        &program,
        order,
        Duration::ZERO,
        Instant::now() + Duration::from_secs(5),
    ) {
        Ok(Launched::Failed(failure)) if failure.step == FailedStep::Exec => {
            wardens.give_back(warden);
            Ok(wardens)
        }
        Ok(Launched::Failed(failure)) => Err(format!(
            "a warden's child failed: {:?}: {}",
            failure.step,
            std::io::Error::from_raw_os_error(failure.errno)
        )),
        Ok(Launched::NoChild(error)) => Err(format!(
            "a warden cannot clone a child: {}",
            failure::chain(&error)
        )),
        Ok(other) => Err(format!("a warden did not do as it was told: {other:?}")),
        Err(error) => Err(format!(
            "a warden could not be told what to start: {}",
            failure::chain(&error)
        )),
    }
}
