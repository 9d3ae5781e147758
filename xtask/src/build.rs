//! `cargo xtask build` and `cargo xtask pack`: what cargo alone does not make.

use anyhow::Result;
use clap::Subcommand;

use crate::node;
use crate::workspace::Workspace;

/// Builds what cargo alone does not, in place
#[derive(Subcommand)]
pub(crate) enum Build {
    Node(node::BuildOptions),
}

/// Makes what is published elsewhere than with cargo, in the target directory
#[derive(Subcommand)]
pub(crate) enum Pack {
    Node(node::PackOptions),
}

impl Build {
    /// Builds it.
    pub(crate) fn run(&self, workspace: &Workspace) -> Result<()> {
        let Self::Node(options) = self;
        node::build(workspace, options)
    }
}

impl Pack {
    /// Builds and packs it.
    pub(crate) fn run(&self, workspace: &Workspace) -> Result<()> {
        let Self::Node(options) = self;
        node::pack(workspace, options)
    }
}
