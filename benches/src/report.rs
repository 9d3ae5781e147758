//! What is printed.

use std::io::{self, Write as _};

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::budget::missed;
use crate::finding::{Field, Finding};

/// Prints one JSON object a line. Fields that every object has are null where there is nothing to say.
pub(crate) fn objects(findings: &[Finding]) -> Result<()> {
    let mut out = io::stdout().lock();
    for finding in findings {
        writeln!(out, "{}", object(finding))?;
    }
    Ok(out.flush()?)
}

fn object(finding: &Finding) -> Value {
    let mut object = Map::new();
    object.insert("row".to_owned(), json!(finding.row.name()));
    object.insert("impl".to_owned(), json!(finding.name.implementation));
    object.insert("tier".to_owned(), json!(finding.name.tier));
    for always in [Field::MedianMicros, Field::P95Micros, Field::FloorRatio] {
        object.insert(always.name().to_owned(), Value::Null);
    }
    for &(field, number) in &finding.numbers {
        object.insert(field.name().to_owned(), json!(rounded(number)));
    }
    object.insert("within_budget".to_owned(), json!(finding.within_budget));
    Value::Object(object)
}

/// Three decimals are more than any of these measurements has.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// Prints an aligned table.
pub(crate) fn table(findings: &[Finding]) -> Result<()> {
    let header = ["row", "what", "median", "p95", "× floor", "besides", "budget"].map(str::to_owned);
    let lines: Vec<[String; 7]> = std::iter::once(header).chain(findings.iter().map(line)).collect();
    let mut out = io::stdout().lock();
    for line in &lines {
        let mut text = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = lines
                .iter()
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0);
            let pad = " ".repeat(width - cell.chars().count());
            let is_a_number = (2..=4).contains(&column);
            let cells = if is_a_number { [&pad, cell] } else { [cell, &pad] };
            text.extend(cells.into_iter().map(String::as_str).chain(["  "]));
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(out.flush()?)
}

fn line(finding: &Finding) -> [String; 7] {
    let number = |field, unit: &str, decimals: usize| {
        finding
            .number(field)
            .map(|number| format!("{number:.decimals$}{unit}"))
    };
    let median = number(Field::MedianMicros, " µs", 0)
        .or_else(|| number(Field::MebibytesPerSecond, " MiB/s", 0))
        .or_else(|| number(Field::PerSecond, " /s", 0));
    let besides = [
        number(Field::TokioSetsidRatio, " × faster than tokio::process+setsid", 2),
        number(Field::SmallHostRatio, " × in a small host", 2),
        number(Field::MemoryGrowthKib, " KiB more memory", 0),
        number(Field::WakeUps, " wake-ups", 0),
        number(Field::KibPerChild, " KiB a child", 1),
        number(Field::DescriptorsPerChild, " descriptors a child", 2),
        number(Field::Threads, " threads", 0),
        number(Field::BeyondCgroupMicros, " µs more than with a cgroup", 0),
        number(Field::WardenKib, " KiB a warden", 1),
    ];
    [
        finding.row.name().to_owned(),
        finding.name.to_string(),
        median.unwrap_or_default(),
        number(Field::P95Micros, " µs", 0).unwrap_or_default(),
        number(Field::FloorRatio, "", 2).unwrap_or_default(),
        besides.into_iter().flatten().collect::<Vec<_>>().join(", "),
        finding
            .within_budget
            .map_or("", |within| if within { "kept" } else { "MISSED" })
            .to_owned(),
    ]
}

/// Names every budget that is missed on standard error, and tells whether there is one.
pub(crate) fn misses(findings: &[Finding]) -> bool {
    let mut any = false;
    for finding in findings
        .iter()
        .filter(|finding| finding.within_budget == Some(false))
    {
        for budget in missed(finding) {
            any = true;
            eprintln!(
                "budget missed: {} {}: {}",
                finding.row,
                finding.name,
                budget.verdict(finding)
            );
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Name;
    use crate::options::Row;

    #[test]
    fn an_object_has_the_promised_fields() {
        let mut finding = Finding::new(
            Row::Spawn,
            Name::project("cgroup"),
            vec![
                (Field::MedianMicros, 512.34567),
                (Field::P95Micros, 600.0),
                (Field::FloorRatio, 1.1),
            ],
        );
        finding.within_budget = Some(true);
        let expected = json!({
            "row": "spawn", "impl": "dsh-subprocess", "tier": "cgroup", "median_us": 512.346, "p95_us": 600.0,
            "floor_ratio": 1.1, "within_budget": true
        });
        assert_eq!(object(&finding), expected);
    }

    #[test]
    fn a_peer_s_throughput_has_no_tier_no_times_and_no_budget() {
        let finding = Finding::new(
            Row::Collect,
            Name::peer("std::process"),
            vec![(Field::MebibytesPerSecond, 2.0)],
        );
        let expected = json!({
            "row": "collect", "impl": "std::process", "tier": null, "median_us": null, "p95_us": null,
            "floor_ratio": null, "mib_s": 2.0, "within_budget": null
        });
        assert_eq!(object(&finding), expected);
    }

    #[test]
    fn a_missed_budget_is_told() {
        let mut found = vec![Finding::new(
            Row::Linger,
            Name::project("cgroup"),
            vec![(Field::MedianMicros, 1001.0)],
        )];
        crate::budget::judge(&mut found);
        assert!(misses(&found));
        found[0].numbers[0].1 = 999.0;
        crate::budget::judge(&mut found);
        assert!(!misses(&found));
    }
}
