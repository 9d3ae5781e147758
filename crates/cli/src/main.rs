//! The `dsh-subprocess` command: run any command as an owned process tree.
//!
//! This file chooses the world, which is this machine; everything else is written against the seam.
#![forbid(unsafe_code)]

mod assets;
mod attendance;
mod command_line;
mod doctor;
mod exec;
mod exit_status;
mod failure;
mod json;
mod mcp;
mod options;
mod own_stream;
mod publish;
mod quantity;
mod report;
mod request;
mod run;
mod sh;
mod signals;
mod stop;
mod stream;
mod supervision;
mod term;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{Error, Scrub};
use dsh_subprocess_local::{LocalRuntime, LocalRuntimeBuilder, OwnershipChoice, SessionChoice, diagnose};

use command_line::{Instead, Refused};
use exec::Launcher;
use failure::Failure;
use options::{Cli, Command, OwnershipOption};
use publish::Form;
use report::Report;
use run::World;
use sh::ShReport;

fn main() {
    signals::prepare();
    let words: Vec<OsString> = std::env::args_os().collect();
    if term::watcher::is_meant(&words) {
        term::watcher::watch();
        return;
    }
    let status = match command_line::parse(&words) {
        Ok(Cli { command }) => carry_out(command),
        Err(Instead::Text(text)) => publish::to_stdout(text.as_bytes()),
        Err(Instead::Usage(text)) => publish::usage(&text),
        Err(Instead::Refusal(failure)) => match command_line::refused_json_run(&words) {
            Some(Refused::Run(subject)) => {
                publish::run(&Report::refused(subject, failure), Form::REFUSED_JSON)
            }
            Some(Refused::Sh(subject)) => {
                publish::sh(&ShReport::refused(subject, failure), Form::REFUSED_JSON)
            }
            None => publish::refusal(&failure),
        },
    };
    // Not by returning: a thread may wait for our own input or output for ever.
    std::process::exit(status.into());
}

fn carry_out(command: Command) -> u8 {
    match command {
        Command::Run(options) => {
            let form = Form::of(&options);
            publish::run(&run::run(*options, local_world), form)
        }
        Command::Sh(options) => {
            let form = Form::of_sh(&options);
            publish::sh(&sh::sh(*options, local_world), form)
        }
        Command::Mcp(options) => match mcp::mcp(*options, served_world) {
            Ok(status) => status,
            Err(failure) => publish::refusal(&failure),
        },
        Command::Term(options) => {
            let form = Form::of_term(&options);
            publish::run(&term::term(*options, local_world), form)
        }
        Command::Exec(options) => match exec::exec(*options, local_launcher) {
            Ok(outcome) => exec::mirror(&outcome),
            Err(failure) => publish::refusal(&failure),
        },
        Command::Doctor(options) => {
            let diagnosis = diagnose();
            if options.json {
                publish::to_stdout(format!("{}\n", doctor::object(&diagnosis)).as_bytes())
            } else {
                publish::to_stdout(doctor::text(&diagnosis).as_bytes())
            }
        }
        Command::Completions { shell } => publish::to_stdout(&assets::completions(shell)),
        Command::Man { page } => match assets::manual(page) {
            Ok(text) => publish::to_stdout(&text),
            Err(error) => publish::refusal(&Failure::new("output", format!("the manual page: {error}"))),
        },
    }
}

fn local_world(ownership: OwnershipOption) -> Result<World, Error> {
    world(LocalRuntime::builder(), ownership)
}

/// The world of a server: a command whose exec hangs holds up none of the others, so no spawn waits for its exec.
fn served_world(ownership: OwnershipOption, scrub: Scrub) -> Result<World, Error> {
    let builder = LocalRuntime::builder().scrub(scrub).handshake(Duration::ZERO);
    world(builder, ownership)
}

fn world(builder: LocalRuntimeBuilder, ownership: OwnershipOption) -> Result<World, Error> {
    let runtime = builder.ownership(choice(ownership)).reap_orphans(true).build()?;
    let kill_now = runtime.clone();
    Ok(World {
        runtime: Arc::new(runtime),
        kill_now: Box::new(move || kill_now.kill_all()),
    })
}

fn local_launcher(ownership: OwnershipOption, scrub: Scrub) -> Result<Launcher, Error> {
    let runtime = LocalRuntime::builder()
        .ownership(choice(ownership))
        .session(SessionChoice::Host)
        .reap_orphans(true)
        .scrub(scrub)
        .build()?;
    let signal = runtime.clone();
    Ok(Launcher {
        runtime: Box::new(runtime),
        signal: Box::new(move |pid, number| signal.signal(pid, number)),
    })
}

fn choice(ownership: OwnershipOption) -> OwnershipChoice {
    match ownership {
        OwnershipOption::Auto => OwnershipChoice::Auto,
        OwnershipOption::Cgroup => OwnershipChoice::Cgroup,
        OwnershipOption::Reaper => OwnershipChoice::Reaper,
        OwnershipOption::ProcessGroup => OwnershipChoice::ProcessGroup,
    }
}
