//! What is published: a tarball of the package, which is the same everywhere, and one of the addon for each platform.
//!
//! The package depends on those of the addons, as far as they fit the machine that it is installed on. The manifest in the checkout
//! does not say so: a dependency is added for each addon that is packed beside it, so the package never names one that was not
//! made, and whose name anybody could take.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::platform::Platform;
use super::{addon, directory, dist, install};
use crate::command;
use crate::workspace::Workspace;

/// The tarballs, in `npm` of the target directory.
pub(crate) struct Tarballs {
    paths: Vec<PathBuf>,
}

impl Tarballs {
    /// Builds and packs the package and the addons for these targets, or for this machine where there are none.
    pub(crate) fn new(workspace: &Workspace, targets: &[String]) -> Result<Self> {
        let platforms: Vec<Platform> = if targets.is_empty() {
            vec![Platform::of(None)?]
        } else {
            let named = targets.iter().map(|target| Platform::of(Some(target)));
            named.collect::<Result<_>>()?
        };
        let package = directory(workspace)?;
        let version = env!("CARGO_PKG_VERSION");
        let room = Room::new(workspace)?;

        let mut paths = Vec::new();
        for platform in &platforms {
            let addon = addon::build(workspace, platform)?;
            let stage = room.stage(&platform.package(), &package.join("npm").join(platform.name))?;
            copy(&addon, &stage.join(platform.file_name()))?;
            paths.push(room.pack(&stage, &platform.package(), version)?);
        }

        install(&package)?;
        dist::build(&package)?;
        let stage = room.stage("dsh-subprocess", &package)?;
        copy(&package.join("README.md"), &stage.join("README.md"))?;
        command::run(Command::new("cp").arg("-R").arg(package.join("dist")).arg(&stage))?;
        let addons = platforms
            .iter()
            .map(|platform| format!("optionalDependencies.{}={version}", platform.package()));
        npm(&stage, &["pkg", "delete", "devDependencies", "scripts"])?;
        command::run(
            Command::new("npm")
                .current_dir(&stage)
                .args(["pkg", "set"])
                .args(addons),
        )?;
        paths.push(room.pack(&stage, "dsh-subprocess", version)?);
        Ok(Self { paths })
    }

    /// Where they are.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

/// The directory that the tarballs come to, and where each is prepared.
struct Room<'a> {
    directory: PathBuf,
    stages: tempfile::TempDir,
    workspace: &'a Workspace,
}

impl<'a> Room<'a> {
    /// An empty one.
    fn new(workspace: &'a Workspace) -> Result<Self> {
        let directory = workspace.target_directory().join("npm");
        if directory.exists() {
            fs::remove_dir_all(&directory)
                .with_context(|| format!("cannot empty {}", directory.display()))?;
        }
        fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(Self {
            directory,
            stages: tempfile::tempdir().context("cannot make a temporary directory")?,
            workspace,
        })
    }

    /// Begins a package: a directory with the manifest and the licence.
    fn stage(&self, name: &str, manifest_in: &Path) -> Result<PathBuf> {
        let stage = self.stages.path().join(name);
        fs::create_dir(&stage).with_context(|| format!("cannot make {}", stage.display()))?;
        copy(&manifest_in.join("package.json"), &stage.join("package.json"))?;
        copy(&self.workspace.root().join("LICENSE"), &stage.join("LICENSE"))?;
        Ok(stage)
    }

    /// Packs it, and returns the tarball. Fails where the manifest has another name or version.
    fn pack(&self, stage: &Path, name: &str, version: &str) -> Result<PathBuf> {
        let mut pack = Command::new("npm");
        pack.current_dir(stage)
            .args(["pack", "--loglevel=error", "--pack-destination"]);
        command::output(pack.arg(&self.directory))?;
        let tarball = self.directory.join(format!("{name}-{version}.tgz"));
        ensure!(
            tarball.is_file(),
            "the manifest of {name} has another name, or a version that is not {version}"
        );
        Ok(tarball)
    }
}

fn npm(package: &Path, arguments: &[&str]) -> Result<()> {
    command::run(Command::new("npm").current_dir(package).args(arguments))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}
