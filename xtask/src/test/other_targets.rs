//! The type check for machines other than this one.
//!
//! The standard library of each target comes from the toolchain where `rustup target add` has put it. Elsewhere
//! Debian's toolchain checks the standard library's own source first, which needs a nightly option of cargo and no
//! linker.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::prerequisites::Prerequisite;
use crate::workspace::Workspace;

const TARGETS: &[&str] = &[
    "aarch64-unknown-linux-gnu",
    "aarch64-unknown-linux-musl",
    "x86_64-unknown-linux-musl",
];

/// Debian's toolchain with the source of the standard library.
const DEBIAN_PACKAGES: &[&str] = &["rustc-web", "cargo-web", "rust-web-src"];

/// What the check cannot do without: nothing, where the toolchain has the targets.
pub(super) fn prerequisites(workspace: &Workspace) -> Vec<Prerequisite> {
    if toolchain_has_targets(workspace) {
        Vec::new()
    } else {
        vec![Prerequisite::Packages(DEBIAN_PACKAGES)]
    }
}

/// Type-checks the published crates for every target.
pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let mut check = if toolchain_has_targets(workspace) {
        workspace.cargo()
    } else {
        debian_cargo(workspace)
    };
    check.arg("check");
    for target in TARGETS {
        check.args(["--target", target]);
    }
    // `publish = false` arrives as an empty list of registries.
    for package in workspace
        .packages()
        .iter()
        .filter(|package| package.publish.as_deref() != Some(&[]))
    {
        check.args(["--package", package.name.as_str()]);
    }
    if !toolchain_has_targets(workspace) {
        check.arg("-Zbuild-std=std,panic_abort");
        // The warden's program cannot be linked with a `core` that is only type-checked. Its bytes do not matter to the check.
        check.env("DSH_SUBPROCESS_WARDEN", workspace.root().join("Cargo.toml"));
    }
    command::run(&mut check)
}

fn toolchain_has_targets(workspace: &Workspace) -> bool {
    TARGETS.iter().all(|target| {
        let mut rustc = Command::new("rustc");
        rustc
            .current_dir(workspace.root())
            .args(["--print", "target-libdir", "--target", target]);
        command::output(&mut rustc)
            .is_ok_and(|directory| Path::new(String::from_utf8_lossy(&directory).trim_end()).is_dir())
    })
}

/// Debian's cargo, kept apart from the toolchain that runs this program.
fn debian_cargo(workspace: &Workspace) -> Command {
    let path = match env::var("PATH") {
        Ok(path) => format!("/usr/bin:{path}"),
        Err(_) => "/usr/bin".to_owned(),
    };
    let mut cargo = Command::new("/usr/bin/cargo");
    cargo
        .current_dir(workspace.root())
        .env("PATH", path)
        .env(
            "CARGO_TARGET_DIR",
            workspace.target_directory().join("other-targets"),
        )
        .env("RUSTC_BOOTSTRAP", "1");
    // What rustup and cargo told this program about themselves would lead Debian's rustc to another one's libraries.
    for variable in ["CARGO", "LD_LIBRARY_PATH", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        cargo.env_remove(variable);
    }
    cargo
}
