//! The Node.js package: what is built of it is what is tested, and what is packed.
//!
//! The specs run on each version of Node.js that the package is for, and once more as `nobody`. The versions are installed by npm,
//! from a lockfile of their own, so that neither the system's version nor an install script has a say.

mod consumer;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::nobody::{self, Scratch};
use crate::workspace::Workspace;
use crate::{command, node};

/// The major versions.
const VERSIONS: &[&str] = &["20", "22", "24"];

/// The one that `nobody` runs the specs on.
const OF_NOBODY: &str = "22";

/// How long the specs may take on one version, in seconds. They take a few minutes; a test that blocks its own process cannot be
/// ended from within.
const BOUND: &str = "900";

/// Runs the specs of the package in whose directory Node.js is started. The configuration is loaded as it is: any other loader
/// writes a file beside it, where not everybody may.
pub(super) const VITEST: [&str; 3] = ["node_modules/vitest/vitest.mjs", "run", "--configLoader=native"];

/// Builds the package and everything that proves it.
pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let package = node::directory(workspace)?;
    node::build(workspace, &node::BuildOptions::default())?;
    for configuration in ["tsconfig.json", "tests/tsconfig.json"] {
        let mut check = node::typescript(&package);
        command::run(check.current_dir(&package).args(["--project", configuration]))?;
    }

    let versions = versions(workspace)?;
    for version in VERSIONS {
        println!("\n--> the specs on Node.js {version}");
        let mut specs = Command::new("timeout");
        specs
            .current_dir(&package)
            .args(specs_of(&program(&versions, version)?));
        command::run(&mut specs)?;
    }
    if nobody::is_root() {
        println!("\n--> the specs as nobody on Node.js {OF_NOBODY}");
        run_as_nobody(workspace, &package)?;
    }

    println!("\n--> a project that has installed the tarballs");
    let programs: Vec<PathBuf> = VERSIONS
        .iter()
        .map(|version| program(&versions, version))
        .collect::<Result<_>>()?;
    consumer::run(workspace, &package, &programs)
}

/// Installs the versions, and returns where they are.
pub(super) fn versions(workspace: &Workspace) -> Result<PathBuf> {
    let versions = node::directory(workspace)?.join("node-versions");
    node::install(&versions)?;
    Ok(versions)
}

/// The program of that version for this machine.
pub(super) fn program(versions: &Path, version: &str) -> Result<PathBuf> {
    let architecture = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        "x86_64" => "x64",
        other => bail!("no version of Node.js is installed for {other}"),
    };
    Ok(versions.join(format!("node_modules/node-{version}-{architecture}/bin/node")))
}

/// What `timeout` is to run: the specs, by that program, from the package's directory.
fn specs_of(program: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["--kill-after=30", BOUND].map(Into::into).into();
    arguments.push(program.into());
    arguments.extend(VITEST.map(Into::into));
    arguments
}

/// Runs the specs as `nobody`: in the checkout where `nobody` can read it, elsewhere in a copy.
fn run_as_nobody(workspace: &Workspace, package: &Path) -> Result<()> {
    let scratch = Scratch::new()?;
    let mut place = package.to_owned();
    if !nobody::can_read(&package.join("package.json")) {
        let copy = scratch.path().join("checkout");
        println!(
            "nobody cannot read {}: copying it to {}",
            package.display(),
            copy.display()
        );
        // Where it lies in the checkout counts: specs look into the documentation.
        for part in [Path::new("docs"), package.strip_prefix(workspace.root())?] {
            let from = workspace.root().join(part);
            let to = copy.join(part);
            let parent = to.parent().context("a part is below the checkout")?;
            fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
            command::run(Command::new("cp").arg("-R").arg(&from).arg(&to))?;
        }
        command::run(Command::new("chmod").args(["-R", "a+rX"]).arg(&copy))?;
        place = copy.join(package.strip_prefix(workspace.root())?);
    }
    let program = program(&place.join("node-versions"), OF_NOBODY)?;
    let mut specs = scratch.command_of_nobody(Path::new("timeout"));
    specs.current_dir(&place).args(specs_of(&program));
    command::run(&mut specs)
}
