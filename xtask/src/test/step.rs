//! The steps of the test run: what each needs and what it does.

use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;

use super::{fresh_project, lints, mcp_peers, nobody, node_package, other_targets, unprivileged};
use crate::prerequisites::{DENY, NEXTEST, NPM, Prerequisite, SETPRIV, TEST_PROGRAMS, VENV};
use crate::workspace::Workspace;
use crate::{check, command, docs};

/// One step of the test run; the order is the order in which they run, cheap ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// The formatting, by rustfmt
    Fmt,
    /// The rules between the crates: `cargo xtask check`
    Rooms,
    /// Licences, duplicates and sources of the dependencies, by cargo-deny
    Deny,
    /// The lints, by clippy, on every target and on the warden's program
    Clippy,
    /// Every test, by nextest; one that leaves a process behind has failed
    Nextest,
    /// The tests again as `nobody`, where the run is root's
    Unprivileged,
    /// A project that only did `cargo add` builds offline, and its trees end with it
    Fresh,
    /// The Node.js package: its types, its tests on each version, and its tarballs in a project of their own
    Node,
    /// The MCP server, by clients that others wrote: two SDKs, the inspector and the conformance suite
    Mcp,
    /// The manual pages and completions in docs/cli: `cargo xtask docs --check`
    Pages,
    /// The examples in the documentation
    Doctest,
    /// The documentation builds without a warning
    Rustdoc,
    /// Every published crate type-checks for aarch64 and for musl
    Targets,
}

impl Step {
    /// The name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// What the step is about, in one line.
    pub(super) fn title(self) -> String {
        let help = self
            .to_possible_value()
            .and_then(|value| value.get_help().map(ToString::to_string));
        help.unwrap_or_default()
    }

    /// What the step cannot do without.
    pub(super) fn prerequisites(self, workspace: &Workspace) -> Vec<Prerequisite> {
        let test_programs = || TEST_PROGRAMS.iter().map(Prerequisite::Program);
        match self {
            Self::Fmt => vec![Prerequisite::Component("rustfmt")],
            Self::Clippy => vec![Prerequisite::Component("clippy")],
            Self::Deny => vec![Prerequisite::Extension(&DENY)],
            Self::Nextest => test_programs()
                .chain([Prerequisite::Extension(&NEXTEST)])
                .collect(),
            Self::Unprivileged if !nobody::is_root() => Vec::new(),
            Self::Unprivileged => {
                let own = [Prerequisite::Extension(&NEXTEST), Prerequisite::Program(&SETPRIV)];
                test_programs().chain(own).collect()
            }
            Self::Fresh => test_programs().collect(),
            Self::Node => {
                let own = [Prerequisite::Program(&NPM), Prerequisite::Program(&SETPRIV)];
                test_programs().chain(own).collect()
            }
            Self::Mcp => {
                let own = [Prerequisite::Program(&NPM), Prerequisite::Packages(VENV)];
                test_programs().chain(own).collect()
            }
            Self::Targets => other_targets::prerequisites(workspace),
            Self::Rooms | Self::Pages | Self::Doctest | Self::Rustdoc => Vec::new(),
        }
    }

    /// Runs the step with its output passed through.
    pub(super) fn run(self, workspace: &Workspace) -> Result<()> {
        let cargo = |arguments: &[&str]| {
            let mut cargo = workspace.cargo();
            cargo.args(arguments);
            cargo
        };
        match self {
            Self::Fmt => {
                command::run(&mut cargo(&["fmt", "--all", "--check"]))?;
                command::run(&mut cargo(&[
                    "fmt",
                    "--manifest-path",
                    "fuzz/Cargo.toml",
                    "--check",
                ]))
            }
            Self::Rooms => check::run(workspace),
            Self::Deny => {
                let mut deny = Command::new(DENY.provide(workspace)?);
                deny.current_dir(workspace.root());
                command::run(deny.args(["--workspace", "check", "licenses", "bans", "sources"]))
            }
            Self::Clippy => lints::run(workspace),
            Self::Nextest => {
                let profile = if nobody::is_root() { "root" } else { "user" };
                let mut nextest = Command::new(NEXTEST.provide(workspace)?);
                nextest.current_dir(workspace.root());
                command::run(nextest.args(["nextest", "run", "--workspace", "--profile", profile]))
            }
            Self::Unprivileged => unprivileged::run(workspace),
            Self::Fresh => fresh_project::run(workspace),
            Self::Node => node_package::run(workspace),
            Self::Mcp => mcp_peers::run(workspace),
            Self::Pages => docs::check(workspace),
            Self::Doctest => command::run(&mut cargo(&["test", "--workspace", "--doc"])),
            // The command and the seam have one name for rustdoc: the seam's pages come second, and stay.
            Self::Rustdoc => ["--bins", "--lib"].iter().try_for_each(|targets| {
                let mut rustdoc = cargo(&["doc", "--workspace", "--no-deps", targets]);
                command::run(rustdoc.env("RUSTDOCFLAGS", "-D warnings"))
            }),
            Self::Targets => other_targets::run(workspace),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_name_and_a_title() {
        for step in Step::value_variants() {
            assert!(!step.name().is_empty() && !step.title().is_empty(), "{step:?}");
        }
    }
}
