//! Whether a mechanism really works here: not whether it should.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess_sys::kernel::Kernel;
use dsh_subprocess_sys::pidfd;
use dsh_subprocess_sys::spawn::{Descriptor, FailedStep, Launch, Program, Started, start};

use crate::owner::{Entrance, Leaves};

/// Makes the runtime's group and has a child born in a leaf of it. Returns the kernel features that this takes here.
///
/// The child executes nothing: its only candidate is a device, so it fails at the last step, and that it came so far is
/// the proof.
pub(crate) fn cgroup(mut kernel: Kernel, null: &OwnedFd) -> Result<(Arc<Leaves>, Kernel), String> {
    match with_kernel(kernel, null) {
        // Some kernels kill the newborn when the host's own group was killed before: see `Leaf::release`. A child that
        // moves itself is not compared.
        Err(_) if kernel.clone_into_cgroup => {
            kernel.clone_into_cgroup = false;
            with_kernel(kernel, null)
        }
        result => result,
    }
}

fn with_kernel(kernel: Kernel, null: &OwnedFd) -> Result<(Arc<Leaves>, Kernel), String> {
    let leaves = Leaves::create(kernel).map_err(|error| {
        let cause = std::error::Error::source(&error)
            .map(|source| format!(": {source}"))
            .unwrap_or_default();
        format!("{error}{cause}")
    })?;
    let tried = try_leaf(&leaves, kernel, null);
    if tried.is_err() {
        let _ = leaves.remove();
    }
    tried.map(|()| (leaves, kernel))
}

fn try_leaf(leaves: &Arc<Leaves>, kernel: Kernel, null: &OwnedFd) -> Result<(), String> {
    let mut leaf = leaves.take().map_err(|errno| {
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
