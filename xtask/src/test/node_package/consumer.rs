//! A project that has installed the tarballs, and nothing else of this checkout.
//!
//! It is written in TypeScript twice: a module that imports the package, and one that requires it. Both are checked with each way
//! of finding types that is common, compiled, and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::workspace::Workspace;
use crate::{command, node};

/// The project's programs, by their names.
const PROGRAMS: &[(&str, &str)] = &[
    ("module.mts", include_str!("consumer/module.mts")),
    ("commonjs.cts", include_str!("consumer/commonjs.cts")),
];

/// Makes the project, and runs its programs with each of these versions of Node.js.
pub(super) fn run(workspace: &Workspace, package: &Path, versions: &[PathBuf]) -> Result<()> {
    let tarballs = node::Tarballs::new(workspace, &[])?;
    let project = tempfile::tempdir().context("cannot make a directory for a project")?;
    let write = |name: &str, text: &str| {
        let path = project.path().join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    write("package.json", r#"{ "private": true }"#)?;
    for (name, text) in PROGRAMS {
        write(name, text)?;
    }
    // Offline: whatever the package asks for besides is in the other tarball, or it is missing.
    let mut install = Command::new("npm");
    install.current_dir(project.path()).args([
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]);
    command::run(install.args(tarballs.paths()))?;

    for types in [
        ["node16", "node16", "true"],
        ["preserve", "bundler", "true"],
        // The last one emits what is run.
        ["node16", "node16", "false"],
    ] {
        let [module, resolution, no_emit] = types;
        let mut check = node::typescript(package);
        check
            .current_dir(project.path())
            .args(["--strict", "--target", "es2022", "--types", "node", "--typeRoots"])
            .arg(package.join("node_modules/@types"))
            .args([
                "--module",
                module,
                "--moduleResolution",
                resolution,
                "--noEmit",
                no_emit,
            ]);
        command::run(check.args(PROGRAMS.iter().map(|(name, _)| name)))?;
    }
    for version in versions {
        for program in ["module.mjs", "commonjs.cjs"] {
            let mut run = Command::new("timeout");
            run.current_dir(project.path())
                .arg("120")
                .arg(version)
                .arg(program);
            command::run(&mut run)?;
        }
    }
    println!(
        "the tarballs are imported and required by {} versions of Node.js",
        versions.len()
    );
    Ok(())
}
