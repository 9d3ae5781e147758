//! What cargo knows of this workspace.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use cargo_metadata::{Metadata, MetadataCommand, Package};

/// The workspace, as `cargo metadata` describes it, without the packages of others.
pub(crate) struct Workspace {
    metadata: Metadata,
}

impl Workspace {
    /// Asks cargo about the workspace that this program was built from.
    pub(crate) fn load() -> Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            .no_deps()
            .exec()
            .context("cannot read the workspace's metadata")?;
        Ok(Self { metadata })
    }

    /// The directory of the workspace's manifest.
    pub(crate) fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// The directory that cargo builds into.
    pub(crate) fn target_directory(&self) -> &Path {
        self.metadata.target_directory.as_std_path()
    }

    /// The workspace's own packages.
    pub(crate) fn packages(&self) -> &[Package] {
        &self.metadata.packages
    }

    /// The cargo that runs this program, in the workspace's root.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
        command.current_dir(self.root());
        command
    }
}
