//! The command line.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use clap::{Parser, ValueEnum};

/// Measures the budgets, each beside its floor; exits 1 when one is missed
#[derive(Debug, Parser)]
#[command(name = "dsh-subprocess-benches")]
pub(crate) struct Options {
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure every row this many times, however long it takes [default: a number per row, within a time per row]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<NonZeroUsize>,
    /// The rows to measure [default: all of them]
    #[arg(value_name = "ROW")]
    rows: Vec<Row>,
}

impl Options {
    /// Returns the rows that were asked for, in the order of the table, each once.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> {
        Row::value_variants()
            .iter()
            .copied()
            .filter(|row| self.rows.is_empty() || self.rows.contains(row))
    }
}

/// A line of the budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Row {
    Spawn,
    #[value(name = "spawn-4g")]
    Spawn4g,
    SpawnC16,
    SpawnC64,
    #[value(name = "terminate-1")]
    Terminate1,
    #[value(name = "terminate-100")]
    Terminate100,
    #[value(name = "terminate-1000")]
    Terminate1000,
    Linger,
    Collect,
    CollectSpill,
    #[value(name = "idle-1000")]
    Idle1000,
    HostDeath,
    PtySpawn,
    PtyEcho,
    PtyBulkCooked,
    PtyBulkRaw,
    #[value(name = "pty-idle-200")]
    PtyIdle200,
    PtyInspect,
    ShellCall,
    McpCall,
    #[value(name = "shell-c64")]
    ShellC64,
}

impl Row {
    /// Returns its name, as it is asked for and printed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Spawn4g => "spawn-4g",
            Self::SpawnC16 => "spawn-c16",
            Self::SpawnC64 => "spawn-c64",
            Self::Terminate1 => "terminate-1",
            Self::Terminate100 => "terminate-100",
            Self::Terminate1000 => "terminate-1000",
            Self::Linger => "linger",
            Self::Collect => "collect",
            Self::CollectSpill => "collect-spill",
            Self::Idle1000 => "idle-1000",
            Self::HostDeath => "host-death",
            Self::PtySpawn => "pty-spawn",
            Self::PtyEcho => "pty-echo",
            Self::PtyBulkCooked => "pty-bulk-cooked",
            Self::PtyBulkRaw => "pty-bulk-raw",
            Self::PtyIdle200 => "pty-idle-200",
            Self::PtyInspect => "pty-inspect",
            Self::ShellCall => "shell-call",
            Self::McpCall => "mcp-call",
            Self::ShellC64 => "shell-c64",
        }
    }
}

impl FromStr for Row {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        <Self as ValueEnum>::from_str(name, false)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_asked_for_by_the_name_it_is_printed_with() {
        for row in Row::value_variants() {
            let asked = row.to_possible_value().expect("no row is hidden");
            assert_eq!(asked.get_name(), row.name());
        }
    }

    #[test]
    fn rows_are_measured_once_each_in_the_order_of_the_table() {
        let options = Options::parse_from(["benches", "linger", "spawn", "linger"]);
        assert_eq!(options.rows().collect::<Vec<_>>(), [Row::Spawn, Row::Linger]);
        assert_eq!(
            Options::parse_from(["benches"]).rows().count(),
            Row::value_variants().len()
        );
    }
}
