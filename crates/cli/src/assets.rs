//! Shell completions and manual pages, from the one definition of the command line.

use std::io;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

use crate::options::{Cli, Page};

/// Returns the completion script of a shell.
pub(crate) fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, &mut script);
    script
}

/// Returns a manual page.
///
/// # Errors
///
/// None that a vector can give.
pub(crate) fn manual(page: Page) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command_of(page)).render(&mut text)?;
    Ok(text)
}

/// Finds the command that a page is about.
fn command_of(page: Page) -> Command {
    let mut whole = Cli::command();
    // Gives each subcommand its full name, for the heading.
    whole.build();
    let name = match page {
        Page::Main => return whole,
        Page::Run => "run",
        Page::Sh => "sh",
        Page::Mcp => "mcp",
        Page::Term => "term",
        Page::Exec => "exec",
        Page::Doctor => "doctor",
    };
    whole
        .find_subcommand(name)
        .expect("every page but the first is about a subcommand")
        .clone()
}
