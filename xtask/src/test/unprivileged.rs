//! The tests again as `nobody`.
//!
//! Root builds, `nobody` runs: the runner gets the list of test binaries that root has built, so it needs neither cargo
//! nor a toolchain, which often lie in a home that only root can enter. When the checkout itself lies in such a place,
//! a copy of it is built in the scratch directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use walkdir::WalkDir;

use super::nobody::{self, Scratch, is_root};
use crate::command;
use crate::prerequisites::NEXTEST;
use crate::workspace::Workspace;

/// Runs every test but root's own as `nobody`; nothing where the run is not root's, since the step of all tests was
/// this very run then.
pub(super) fn run(workspace: &Workspace) -> Result<()> {
    if !is_root() {
        println!("the run is not root's: the tests have run as an ordinary user already");
        return Ok(());
    }

    let scratch = Scratch::new()?;
    let runner = scratch.path().join("cargo-nextest");
    fs::copy(NEXTEST.provide(workspace)?, &runner).context("cannot copy the test runner")?;
    let build = Build::new(workspace, &scratch)?;
    let binaries = scratch.write("binaries.json", &build.binaries(&runner)?)?;
    let packages = scratch.write("packages.json", &build.packages(workspace)?)?;
    if build.is_copy {
        command::run(Command::new("chmod").args(["-R", "a+rX"]).arg(&build.checkout))?;
    }

    let mut nextest = scratch.command_of_nobody(&runner);
    nextest
        .current_dir(&build.checkout)
        .args(["nextest", "run", "--profile", "user", "--binaries-metadata"]);
    nextest.arg(binaries).arg("--cargo-metadata").arg(packages);
    command::run(&mut nextest)
}

/// The checkout whose tests `nobody` can run, and where it is built.
struct Build {
    checkout: PathBuf,
    target: PathBuf,
    is_copy: bool,
}

impl Build {
    /// The workspace itself where `nobody` can read it and what is built of it; a copy of its sources elsewhere.
    fn new(workspace: &Workspace, scratch: &Scratch) -> Result<Self> {
        let (checkout, target) = (
            workspace.root().to_owned(),
            workspace.target_directory().to_owned(),
        );
        if nobody::can_read(&checkout.join("Cargo.toml")) && nobody::can_read(&target) {
            return Ok(Self {
                checkout,
                target,
                is_copy: false,
            });
        }
        let copy = scratch.path().join("checkout");
        println!(
            "nobody cannot read {}: building a copy in {}",
            checkout.display(),
            copy.display()
        );
        copy_sources(&checkout, &target, &copy).context("cannot copy the sources")?;
        Ok(Self {
            target: copy.join("target"),
            checkout: copy,
            is_copy: true,
        })
    }

    /// Builds the tests and returns the runner's list of them.
    fn binaries(&self, runner: &Path) -> Result<Vec<u8>> {
        let mut list = Command::new(runner);
        list.current_dir(&self.checkout)
            .env("CARGO_TARGET_DIR", &self.target)
            .args(["nextest", "list", "--workspace"]);
        command::output(list.args(["--list-type", "binaries-only", "--message-format", "json"]))
    }

    fn packages(&self, workspace: &Workspace) -> Result<Vec<u8>> {
        let mut metadata = workspace.cargo();
        metadata
            .current_dir(&self.checkout)
            .env("CARGO_TARGET_DIR", &self.target);
        command::output(metadata.args(["metadata", "--format-version", "1"]))
    }
}

/// Copies the checkout without its history and without what is built or installed.
fn copy_sources(from: &Path, target: &Path, to: &Path) -> io::Result<()> {
    let entries = WalkDir::new(from).into_iter().filter_entry(|entry| {
        let name = entry.file_name();
        let left_out = [".git", "node_modules", "target"];
        entry.depth() == 0 || (entry.path() != target && !left_out.iter().any(|left_out| name == *left_out))
    });
    for entry in entries {
        let entry = entry?;
        let Ok(below) = entry.path().strip_prefix(from) else {
            continue;
        };
        if entry.file_type().is_dir() {
            fs::create_dir(to.join(below))?;
        } else {
            fs::copy(entry.path(), to.join(below))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_sources_has_neither_history_nor_builds() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let from = scratch.path().join("from");
        for directory in [
            ".git",
            "target/debug",
            "fuzz/target",
            "built",
            "a/node_modules/b",
            "crates/a/src",
        ] {
            fs::create_dir_all(from.join(directory)).expect("a new directory");
            fs::write(from.join(directory).join("file"), directory).expect("a new file");
        }
        let to = scratch.path().join("to");
        copy_sources(&from, &from.join("built"), &to).expect("the copy succeeds");

        assert_eq!(
            fs::read_to_string(to.join("crates/a/src/file")).expect("it is copied"),
            "crates/a/src"
        );
        let names = |directory: &Path| {
            let mut names: Vec<_> = fs::read_dir(directory)
                .expect("a directory")
                .map(|entry| entry.expect("an entry").file_name())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names(&to), ["a", "crates", "fuzz"]);
        assert!(names(&to.join("fuzz")).is_empty());
        assert!(names(&to.join("a")).is_empty());
    }
}
