//! The lints, by clippy: on every target of cargo's, and on the one program that cargo does not know.
//!
//! The warden's program is compiled by the build script of its package, so that the library can embed it. It is linted here
//! with the levels of the workspace, which cargo would pass by itself if it were a target.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use toml::{Table, Value};

use crate::command;
use crate::workspace::Workspace;

/// The package whose build script compiles the program.
const WARDEN: &str = "dsh-subprocess-warden";

/// Lints everything, and fails at the first warning.
pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let mut clippy = workspace.cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    command::run(&mut clippy)?;
    lint_warden(workspace)
}

fn lint_warden(workspace: &Workspace) -> Result<()> {
    let package = workspace
        .packages()
        .iter()
        .find(|package| package.name.as_str() == WARDEN)
        .with_context(|| format!("there is no package {WARDEN}"))?;
    let directory = package
        .manifest_path
        .parent()
        .context("a manifest is in a directory")?;
    let manifest = workspace.root().join("Cargo.toml");
    let levels = fs::read_to_string(&manifest)
        .map_err(anyhow::Error::from)
        .and_then(|text| levels(&text))
        .with_context(|| format!("cannot read the lints of {}", manifest.display()))?;
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    let mut clippy = Command::new("clippy-driver");
    clippy
        .current_dir(directory)
        .env("CLIPPY_CONF_DIR", workspace.root())
        .args([
            "src/program/main.rs",
            "--crate-name",
            "dsh_warden",
            "--crate-type",
            "bin",
        ])
        .args([
            "--edition",
            package.edition.as_str(),
            "-C",
            "panic=abort",
            "--emit=metadata",
            "-o",
        ])
        .arg(scratch.path().join("dsh-warden.rmeta"))
        .args(levels)
        // What the program shares with the library is public there.
        .args(["--allow=unreachable_pub", "--deny=warnings"]);
    command::run(&mut clippy)
}

/// Returns the levels of `[workspace.lints]` as options of the compiler. The last option that names a lint wins, so groups,
/// which have a lower priority, come first.
fn levels(manifest: &str) -> Result<Vec<String>> {
    let manifest: Table = manifest.parse()?;
    let tools = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("lints")?.as_table())
        .context("there is no table [workspace.lints]")?;
    let mut options = Vec::new();
    for (tool, lints) in tools {
        let lints = lints.as_table().with_context(|| format!("{tool} is no table"))?;
        for (lint, setting) in lints {
            let level = setting.get("level").unwrap_or(setting);
            let Some(level @ ("allow" | "warn" | "deny" | "forbid")) = level.as_str() else {
                bail!("{lint} has no level that is known: {level:?}");
            };
            let priority = setting.get("priority").and_then(Value::as_integer).unwrap_or(0);
            let tool = if tool == "rust" {
                String::new()
            } else {
                format!("{tool}::")
            };
            options.push((priority, format!("--{level}={tool}{lint}")));
        }
    }
    options.sort_by_key(|(priority, _)| *priority);
    Ok(options.into_iter().map(|(_, option)| option).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lint_comes_after_the_group_it_is_in() {
        let manifest = r#"
            [workspace.lints.clippy]
            module_name_repetitions = "allow"
            pedantic = { level = "warn", priority = -1 }
            [workspace.lints.rust]
            missing_docs = { level = "deny" }
        "#;
        assert_eq!(
            levels(manifest).expect("it is a manifest"),
            [
                "--warn=clippy::pedantic",
                "--allow=clippy::module_name_repetitions",
                "--deny=missing_docs"
            ]
        );
    }

    #[test]
    fn a_level_that_does_not_exist_is_refused() {
        let error = levels("[workspace.lints.rust]\nmissing_docs = \"most\"").expect_err("it is no level");
        assert!(error.to_string().contains("missing_docs"), "{error}");
    }
}
