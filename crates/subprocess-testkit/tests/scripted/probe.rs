//! The probe program, as a script.

use std::time::Duration;

use bytes::Bytes;
use dsh_subprocess::{SpawnSpec, StreamName, TerminalSignal};
use dsh_subprocess_testkit::scripted::{Reaction, Script, ScriptedMember};

/// The first id of a member; the target has none.
const FIRST: u32 = 1001;

pub(crate) fn probe(spec: &SpawnSpec) -> Script {
    let words: Vec<String> = spec
        .argv
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[1..] {
        ["exit", code] => Script::new().exits(number(code)),
        ["argv", ..] => {
            let written = words.iter().enumerate().filter(|&(index, _)| index != 1);
            let bytes: Vec<u8> = written
                .flat_map(|(_, word)| [word.as_bytes(), b"\0"].concat())
                .collect();
            Script::new().stdout(bytes).exits(0)
        }
        ["env"] => Script::new().prints_environment().exits(0),
        ["echo", ..] => Script::new().stdout(words[2..].join(" ") + "\n").exits(0),
        ["cat"] => Script::new().echoes().exits(0),
        ["flood", length] => Script::new().stdout(numbered(number(length))).exits(0),
        ["flood", length, "--stderr"] => Script::new().stderr(numbered(number(length))).exits(0),
        ["chunks", length] => numbered(number(length))
            .chunks(1)
            .fold(Script::new(), |script, byte| script.stdout(byte.to_vec()))
            .exits(0),
        ["pieces", ref pieces @ ..] => pieces
            .iter()
            .fold(Script::new(), |script, piece| {
                script.reads(1).stdout(unhex(piece))
            })
            .exits(0),
        ["hold-stdout", ref call @ ..] => held(call),
        ["tree", width, ref depth @ ..] => {
            let chains: u32 = number(width);
            let depth = depth.last().map_or(1, |depth| number(depth));
            let members = FIRST..FIRST + chains * depth;
            let ids: Vec<_> = members.clone().map(|pid| pid.to_string()).collect();
            members
                .fold(Script::new(), |script, pid| {
                    script.bears(ScriptedMember::new(pid, "tree-node"))
                })
                .stdout(format!("ready {}\n", ids.join(" ")))
        }
        ["new-group" | "setsid-escape"] => Script::new().bears(holder()).stdout(format!("ready {FIRST}\n")),
        ["stop-member"] => Script::new().bears(holder()).stdout(format!("stopped {FIRST}\n")),
        ["sleep"] => Script::new().stdout("ready somebody\n"),
        ["ignore-term"] => Script::new()
            .stdout("ready somebody\n")
            .on_term(Reaction::Ignores),
        ["trap-term", text, millis] => Script::new()
            .stdout("ready somebody\n")
            .on_term(Reaction::Ignores)
            .until_terminated()
            .stdout(format!("{text}\n"))
            .waits(Duration::from_millis(number(millis)))
            .exits(0),
        ["terminal", ref call @ ..] => on_terminal(call),
        _ => panic!("the probe has no call {words:?}"),
    }
}

/// Calls that need a terminal, which here is always raw and never echoes.
fn on_terminal(call: &[&str]) -> Script {
    let ready = Script::new().stdout("ready\n");
    match *call {
        ["facts"] => Script::new()
            .stdout("terminals session foreground controlling signals\n")
            .exits(0),
        ["size"] => Script::new().prints_size().exits(0),
        ["watch-size"] => (0..4).fold(Script::new().prints_size(), |script, _| {
            script.until_signal(TerminalSignal::WindowChange).prints_size()
        }),
        ["signals"] => TerminalSignal::ALL
            .into_iter()
            .filter(|signal| *signal != TerminalSignal::Kill)
            .fold(ready.on_term(Reaction::Ignores), |script, signal| {
                script
                    .on_signal(signal, Reaction::Ignores)
                    .until_signal(signal)
                    .stdout(format!("got {}\n", signal.name().as_str()))
            }),
        ["lines"] => ready.collects_lines(true).echoes(),
        ["raw", "cat"] => ready.echoes(),
        ["raw", "cat-after-resize"] => ready.until_signal(TerminalSignal::WindowChange).echoes(),
        ["raw", "sleep"] => ready,
        ["raw", "pieces", ref pieces @ ..] => pieces
            .iter()
            .fold(ready, |script, piece| script.reads(1).stdout(unhex(piece)))
            .exits(0),
        _ => panic!("the probe does not do {call:?} on a terminal"),
    }
}

/// The leader exits at once, and another call goes on with its streams.
fn held(call: &[&str]) -> Script {
    let ready = format!("ready {FIRST}\n");
    let leaving = |member| Script::new().bears(member).stdout(ready).exits(0);
    match *call {
        [] | ["sleep"] => leaving(holder()),
        ["ignore-term"] => leaving(holder().ignoring_term()),
        ["pieces", ref pieces @ ..] => pieces
            .iter()
            .fold(
                Script::new().bears(holder().reading()).exits(0),
                |script, piece| script.reads(1).stdout(unhex(piece)),
            )
            .member_ends(FIRST),
        ["trap-term", text, millis] => leaving(holder().ignoring_term())
            .until_terminated()
            .stdout(format!("{text}\n"))
            .waits(Duration::from_millis(number(millis)))
            .member_ends(FIRST),
        _ => panic!("nobody holds streams as {call:?}"),
    }
}

fn holder() -> ScriptedMember {
    ScriptedMember::new(FIRST, "holder")
        .holding(StreamName::Stdout)
        .holding(StreamName::Stderr)
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|_| panic!("`{text}` is not a number"))
}

fn numbered(length: usize) -> Bytes {
    (0..)
        .flat_map(|record: u64| format!("{record:015}\n").into_bytes())
        .take(length)
        .collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
        .collect()
}
