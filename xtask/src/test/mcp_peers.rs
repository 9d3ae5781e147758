//! The MCP server as clients see it that nobody here wrote: the protocol's official clients for Python and TypeScript, its
//! inspector, and its conformance suite.
//!
//! They are installed from their registries, by lockfiles that name versions and hashes and no registry. What they do with the
//! server is in `crates/mcp/tests/peers`, in their own languages.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow};
use cargo_metadata::Message;

use super::node_package;
use crate::prerequisites::SYSTEM_PATH;
use crate::workspace::Workspace;
use crate::{command, node};

/// The oldest version of Node.js that all of the packages run on.
const NODE: &str = "22";

/// How long the tests of one language may take, in seconds. They take a minute or less; one whose server hangs may hang itself.
const BOUND: &str = "300";

/// What tells the tests which program they are about.
const PROGRAM: &str = "DSH_SUBPROCESS_PROGRAM";

/// Builds the server, installs the clients and runs what they have to say.
pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let server = server(workspace)?;
    let peers = workspace.root().join("crates/mcp/tests/peers");

    println!("\n--> the client for Python");
    let python = virtual_environment(workspace, &peers.join("python"))?;
    let mut tests = bounded(&python);
    tests
        .current_dir(peers.join("python"))
        .env(PROGRAM, &server)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command::run(tests.args(["-m", "unittest"]))?;

    println!("\n--> the client for TypeScript, the inspector and the conformance suite");
    let package = peers.join("node");
    node::install(&package)?;
    command::run(node::typescript(&package).current_dir(&package))?;
    let versions = node_package::versions(workspace)?;
    let mut specs = bounded(&node_package::program(&versions, NODE)?);
    specs.current_dir(&package).env(PROGRAM, &server);
    command::run(specs.args(node_package::VITEST))
}

/// Builds the command as the tests of the workspace have it, so that nothing is built a second time after them.
fn server(workspace: &Workspace) -> Result<PathBuf> {
    let mut build = workspace.cargo();
    build.args(["test", "--workspace", "--no-run", "--message-format"]);
    let messages = command::output(build.arg("json-render-diagnostics"))?;
    for message in Message::parse_stream(&*messages) {
        let Message::CompilerArtifact(artifact) = message.context("cannot read what cargo tells")? else {
            continue;
        };
        if artifact.target.is_bin()
            && artifact.target.name == "dsh-subprocess"
            && !artifact.profile.test
            && let Some(program) = artifact.executable
        {
            return Ok(program.into_std_path_buf());
        }
    }
    Err(anyhow!(
        "the workspace's tests are built without the program dsh-subprocess"
    ))
}

/// Installs exactly what the requirements name, unless that is what is there, and returns the interpreter that sees it.
fn virtual_environment(workspace: &Workspace, peer: &Path) -> Result<PathBuf> {
    let place = workspace.target_directory().join("mcp-peers/python");
    let interpreter = place.join("bin/python");
    let requirements = peer.join("requirements.txt");
    let wanted =
        fs::read(&requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    // The last thing that is written: an installation that was cut short is made anew.
    let stamp = place.join(".installed");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted)
        && command::succeeds(Command::new(&interpreter).arg("--version"))
    {
        return Ok(interpreter);
    }
    let mut make = Command::new("python3");
    // The one that Debian's package of the module belongs to.
    make.env("PATH", SYSTEM_PATH).args(["-m", "venv", "--clear"]);
    command::run(make.arg(&place))?;
    let mut install = Command::new(&interpreter);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    // No program of a package runs while it is installed.
    install.args(["--require-hashes", "--only-binary=:all:", "--requirement"]);
    command::run(install.arg(&requirements))?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(interpreter)
}

/// The program, ended when its time is over.
fn bounded(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=30", BOUND].map(OsString::from))
        .arg(program);
    command
}
