//! `cargo xtask test`: everything that must hold before a change is merged, in one command.

mod fresh_project;
mod lints;
mod mcp_peers;
mod nobody;
mod node_package;
mod other_targets;
mod step;
mod unprivileged;

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;

pub(crate) use self::step::Step;
use crate::prerequisites::{self, Prerequisite};
use crate::workspace::Workspace;

/// Installs what the tests need and lacks, then runs every check; stops at the first that fails
#[derive(Args)]
pub(crate) struct Options {
    /// Run only these steps, in their order
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STEP,…")]
    only: Vec<Step>,
}

/// Runs the chosen steps in order, each under a heading, and stops at the first that fails.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let all = <Step as clap::ValueEnum>::value_variants();
    let chosen: Vec<Step> = all
        .iter()
        .copied()
        .filter(|step| options.only.is_empty() || options.only.contains(step))
        .collect();
    let needed: Vec<Prerequisite> = chosen
        .iter()
        .flat_map(|step| step.prerequisites(workspace))
        .collect();

    let begin = Instant::now();
    let mut spent = Vec::with_capacity(chosen.len());
    println!("==> prerequisites");
    prerequisites::provide(workspace, &needed).context("the test run cannot begin")?;
    println!("<== prerequisites: there after {}", Elapsed(begin.elapsed()));

    for (index, step) in chosen.iter().enumerate() {
        println!(
            "\n==> [{}/{}] {}: {}",
            index + 1,
            chosen.len(),
            step.name(),
            step.title()
        );
        let begin = Instant::now();
        let outcome = step.run(workspace);
        let elapsed = begin.elapsed();
        if let Err(cause) = outcome {
            let name = step.name();
            eprintln!("\nerror: {cause:#}");
            bail!(
                "{name} FAILED after {}; `cargo xtask test --only {name}` runs it alone",
                Elapsed(elapsed)
            );
        }
        println!("<== {}: passed in {}", step.name(), Elapsed(elapsed));
        spent.push((step.name(), elapsed));
    }

    println!();
    for (name, elapsed) in &spent {
        println!("{name:>14}  passed in {}", Elapsed(*elapsed));
    }
    println!(
        "ok: {} of {} steps passed in {}",
        spent.len(),
        all.len(),
        Elapsed(begin.elapsed())
    );
    Ok(())
}

/// A span of time as a person reads it: `4.2 s`, `3 min 05 s`.
struct Elapsed(Duration);

impl fmt::Display for Elapsed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        if seconds < 60 {
            write!(formatter, "{}.{} s", seconds, self.0.subsec_millis() / 100)
        } else {
            write!(formatter, "{} min {:02} s", seconds / 60, seconds % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_time_reads_like_a_clock_from_a_minute_on() {
        let shown = [0, 4_290, 59_999, 60_000, 185_400]
            .map(|millis| Elapsed(Duration::from_millis(millis)).to_string());
        assert_eq!(shown, ["0.0 s", "4.2 s", "59.9 s", "1 min 00 s", "3 min 05 s"]);
    }
}
