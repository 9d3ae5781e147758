//! What this machine can do, for people and for programs.

use std::fmt::Write as _;

use dsh_subprocess_local::{Diagnosis, Facility};
use serde_json::{Value, json};

/// Says it to a person.
pub(crate) fn text(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    // A String takes every write.
    let _ = writeln!(text, "ownership  {}: {}", diagnosis.mechanism, diagnosis.why);
    list(&mut text, "what it does not guarantee", &diagnosis.weaknesses);
    section(
        &mut text,
        "mechanisms, strongest first",
        diagnosis.candidates.iter().map(|candidate| {
            (
                format!("{} {}", mark(candidate.works), candidate.mechanism),
                &candidate.finding,
            )
        }),
    );
    section(
        &mut text,
        "should this host be killed",
        [("warden", &diagnosis.warden), ("records", &diagnosis.records)]
            .into_iter()
            .map(|(name, facility)| (format!("{} {name}", mark(facility.works)), &facility.finding)),
    );
    let nothing = String::new();
    section(
        &mut text,
        "kernel features",
        diagnosis.features.iter().map(|feature| {
            let fallback = if feature.present {
                &nothing
            } else {
                &feature.fallback
            };
            (format!("{} {}", mark(feature.present), feature.name), fallback)
        }),
    );
    section(
        &mut text,
        "limits",
        diagnosis
            .limits
            .iter()
            .map(|limit| (limit.name.clone(), &limit.value)),
    );
    if diagnosis.improvements.is_empty() {
        text.push_str("\nNothing would improve it.\n");
    } else {
        list(&mut text, "what would improve it", &diagnosis.improvements);
    }
    text
}

/// Says it to a program.
pub(crate) fn object(diagnosis: &Diagnosis) -> Value {
    json!({
        "mechanism": diagnosis.mechanism.to_string(),
        "why": diagnosis.why,
        "weaknesses": diagnosis.weaknesses,
        "candidates": diagnosis.candidates.iter().map(|candidate| json!({
            "mechanism": candidate.mechanism.to_string(),
            "works": candidate.works,
            "finding": candidate.finding,
        })).collect::<Vec<_>>(),
        "warden": facility(&diagnosis.warden),
        "records": facility(&diagnosis.records),
        "features": diagnosis.features.iter().map(|feature| json!({
            "name": feature.name,
            "present": feature.present,
            "fallback": feature.fallback,
        })).collect::<Vec<_>>(),
        "limits": diagnosis.limits.iter().map(|limit| json!({
            "name": limit.name,
            "value": limit.value,
        })).collect::<Vec<_>>(),
        "improvements": diagnosis.improvements,
    })
}

fn facility(facility: &Facility) -> Value {
    json!({ "works": facility.works, "finding": facility.finding })
}

fn mark(is_there: bool) -> &'static str {
    if is_there { "yes" } else { "no " }
}

/// Writes a heading and its lines, or nothing where there are none.
fn list(text: &mut String, heading: &str, lines: &[String]) {
    if !lines.is_empty() {
        let _ = writeln!(text, "\n{heading}");
    }
    for line in lines {
        let _ = writeln!(text, "  - {line}");
    }
}

/// Writes a heading and its rows, with the second column aligned, or nothing where there are none.
fn section<'a>(text: &mut String, heading: &str, rows: impl Iterator<Item = (String, &'a String)>) {
    let rows: Vec<_> = rows.collect();
    let width = rows
        .iter()
        .map(|(first, _)| first.chars().count())
        .max()
        .unwrap_or(0);
    if !rows.is_empty() {
        let _ = writeln!(text, "\n{heading}");
    }
    for (first, second) in rows {
        let row = format!("  {first:width$}  {second}");
        let _ = writeln!(text, "{}", row.trim_end());
    }
}
