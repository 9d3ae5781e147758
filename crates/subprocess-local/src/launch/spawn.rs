//! From a spec to the handle: what is done before anything is started.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{
    CONTROL_VARIABLE, Environment, Error, ErrorKind, Process, ProcessStreams, SpawnSpec, WorldPath,
    WorldString,
};
use dsh_subprocess_sys::steps::{Step, step};

use super::ends::ChildEnds;
use super::start::start;
use crate::driver::LocalProcess;
use crate::environment::Ambient;
use crate::failure::{self, Asked};
use crate::machine::Machine;
use crate::tree::Tree;

/// The number of a child's control descriptor, which the clone puts right after the standard ones.
const CONTROL_DESCRIPTOR: &str = "3";

/// Starts a tree. An error is something known without asking the world; every other failure is in the handle.
pub(crate) fn spawn(machine: &Arc<Machine>, ambient: &Ambient, spec: SpawnSpec) -> Result<Process, Error> {
    machine.check_usable("spawn")?;
    spec.validate()?;
    absolute(&spec.cwd)?;
    let tree = machine.new_tree(&spec.env, spec.grace, spec.drain, &spec.cancel)?;
    let mut streams = ProcessStreams::default();
    let result = ChildEnds::make(&tree, ambient, &spec, &mut streams).and_then(|ends| {
        let environment = environment(machine, ambient, &spec);
        let asked = Asked {
            argv: spec.argv,
            cwd: spec.cwd,
            environment,
        };
        begin(&tree, ends, asked, spec.grace)
    });
    if let Err(error) = result {
        tree.failed(&error);
    }
    Ok(Process::new(Arc::new(LocalProcess(tree)), streams))
}

/// Refuses a working directory that would depend on where the host is.
pub(crate) fn absolute(cwd: &WorldPath) -> Result<(), Error> {
    if cwd.as_bytes().starts_with(b"/") {
        return Ok(());
    }
    let message = format!(
        "the working directory {} is relative: it must be absolute",
        failure::shown(cwd.as_bytes())
    );
    Err(Error::new(ErrorKind::InvalidSpec, "spawn", message))
}

/// Has the target of a tree started whose descriptors are there, here or by a launcher. An error is for the caller to tell
/// the tree.
pub(crate) fn begin(tree: &Arc<Tree>, ends: ChildEnds, asked: Asked, grace: Duration) -> Result<(), Error> {
    step(Step::PipesMade);
    let machine = &tree.machine;
    let Some(launchers) = &machine.launchers else {
        return start(tree, asked, ends, grace);
    };
    if !tree.await_launch() {
        return Ok(());
    }
    let launched = Arc::clone(tree);
    let launch = move || match catch_unwind(AssertUnwindSafe(|| start(&launched, asked, ends, grace))) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => launched.failed(&error),
        // Nobody else would end the wait of those who wait for the tree.
        Err(_) => launched.lost(),
    };
    launchers.submit(launch).map_err(failure::no_launcher)?;
    tree.started.wait(machine.handshake);
    Ok(())
}

/// The scrubbed environment with the caller's entries, and `PWD` naming the working directory unless the caller says
/// otherwise: shells believe it.
fn environment(machine: &Machine, ambient: &Ambient, spec: &SpawnSpec) -> Environment {
    let mut environment = machine.environment.child(ambient, &spec.env);
    if !spec.env.contains_key(&WorldString::from("PWD")) {
        environment.insert("PWD", spec.cwd.as_world_string().clone());
    }
    if spec.control {
        environment.insert(CONTROL_VARIABLE, CONTROL_DESCRIPTOR);
    }
    environment
}
