//! What Node.js and npm call the targets of Rust's.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::command;

/// A system that the addon can be built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Platform {
    /// What Rust calls it.
    pub(super) target: &'static str,
    /// What the addon's file and its package are named after: system, architecture, C library.
    pub(super) name: &'static str,
    /// Whether it is the system of this machine.
    pub(super) is_host: bool,
}

/// Names as napi-rs forms them, so that other tools know them.
const NAMES: &[(&str, &str)] = &[
    ("aarch64-apple-darwin", "darwin-arm64"),
    ("aarch64-unknown-linux-gnu", "linux-arm64-gnu"),
    ("aarch64-unknown-linux-musl", "linux-arm64-musl"),
    ("x86_64-apple-darwin", "darwin-x64"),
    ("x86_64-pc-windows-msvc", "win32-x64-msvc"),
    ("x86_64-unknown-linux-gnu", "linux-x64-gnu"),
    ("x86_64-unknown-linux-musl", "linux-x64-musl"),
];

impl Platform {
    /// The platform of a target, or of this machine. Fails where the target has no name or the toolchain does not have it.
    pub(super) fn of(target: Option<&str>) -> Result<Self> {
        let host = told(&["--print", "host-tuple"])?;
        let wanted = target.unwrap_or(&host);
        let Some(&(target, name)) = NAMES.iter().find(|(target, _)| *target == wanted) else {
            let known: Vec<&str> = NAMES.iter().map(|(target, _)| *target).collect();
            bail!(
                "there is no package for the target {wanted}; these have one: {}",
                known.join(", ")
            );
        };
        if !Path::new(&told(&["--print", "target-libdir", "--target", target])?).is_dir() {
            bail!(
                "the Rust toolchain lacks the target {target}; add it and start again:\n  rustup target add {target}"
            );
        }
        Ok(Self {
            target,
            name,
            is_host: target == host,
        })
    }

    /// The name of the addon's file.
    pub(super) fn file_name(&self) -> String {
        format!("dsh-subprocess.{}.node", self.name)
    }

    /// The name of the package that holds the addon.
    pub(super) fn package(&self) -> String {
        format!("dsh-subprocess-{}", self.name)
    }
}

/// Asks the compiler.
fn told(arguments: &[&str]) -> Result<String> {
    let stdout = command::output(Command::new("rustc").args(arguments))?;
    let line = String::from_utf8(stdout).context("rustc answers in UTF-8")?;
    Ok(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_the_platform_where_no_target_is_named() {
        let platform = Platform::of(None).expect("this machine has a name");
        assert!(platform.is_host);
        let named = Platform::of(Some(platform.target)).expect("its own target is installed");
        assert_eq!(named, platform);
    }

    #[test]
    fn a_target_without_a_package_is_refused_by_name() {
        let error = Platform::of(Some("wasm32-unknown-unknown")).expect_err("it has no name");
        let shown = error.to_string();
        assert!(
            shown.starts_with("there is no package for the target wasm32-unknown-unknown;"),
            "{shown}"
        );
    }

    #[test]
    fn file_and_package_are_named_after_the_platform() {
        let platform = Platform {
            target: "x86_64-unknown-linux-musl",
            name: "linux-x64-musl",
            is_host: false,
        };
        assert_eq!(platform.file_name(), "dsh-subprocess.linux-x64-musl.node");
        assert_eq!(platform.package(), "dsh-subprocess-linux-x64-musl");
    }
}
