//! The Node.js package in `bindings/node`: building it, packing it, and what that takes.
//!
//! The package is loadable in place once three things are there: the addon beside its `package.json`, what npm installs, and
//! `dist`, which the TypeScript compiler makes. Each is left alone where it is up to date already.

mod addon;
mod dist;
mod installed;
mod platform;
mod tarballs;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::Args;

pub(crate) use self::installed::install;
use self::platform::Platform;
pub(crate) use self::tarballs::Tarballs;
use crate::workspace::Workspace;

/// The cargo package of the addon, in the same directory as the Node.js package.
const ADDON_PACKAGE: &str = "dsh-subprocess-node";

/// Makes bindings/node loadable in place: the addon, and what is written in TypeScript
#[derive(Args, Default)]
pub(crate) struct BuildOptions {
    /// Build the addon for this target of Rust's [default: this machine's]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
}

/// Makes the tarballs to publish: of the package, and of the addon for each target
#[derive(Args)]
pub(crate) struct PackOptions {
    /// Pack the addons for these targets of Rust's [default: this machine's]
    #[arg(long, value_name = "TRIPLE,…", value_delimiter = ',')]
    target: Vec<String>,
}

/// Builds the package in place.
pub(crate) fn build(workspace: &Workspace, options: &BuildOptions) -> Result<()> {
    let directory = directory(workspace)?;
    let addon = addon::build(workspace, &Platform::of(options.target.as_deref())?)?;
    install(&directory)?;
    dist::build(&directory)?;
    println!("{} is loadable, with {}", directory.display(), addon.display());
    Ok(())
}

/// Builds the package, and packs it.
pub(crate) fn pack(workspace: &Workspace, options: &PackOptions) -> Result<()> {
    let tarballs = Tarballs::new(workspace, &options.target)?;
    for path in tarballs.paths() {
        println!("packed {}", path.display());
    }
    Ok(())
}

/// The package's directory.
pub(crate) fn directory(workspace: &Workspace) -> Result<PathBuf> {
    let package = workspace
        .packages()
        .iter()
        .find(|package| package.name.as_str() == ADDON_PACKAGE)
        .with_context(|| format!("there is no package {ADDON_PACKAGE}"))?;
    let directory = package
        .manifest_path
        .parent()
        .context("a manifest is in a directory")?;
    Ok(directory.as_std_path().to_owned())
}

/// The TypeScript compiler that is installed for the package.
pub(crate) fn typescript(package: &Path) -> Command {
    Command::new(package.join("node_modules/.bin/tsc"))
}
