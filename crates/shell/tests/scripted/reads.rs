//! Whatever the moments of the reads, together they are the whole.

use std::time::Duration;

use dsh_shell::ShellRequest;
use dsh_subprocess_testkit::scripted::Script;
use proptest::prelude::*;
use tokio::time::sleep;

use crate::stage::Stage;

/// The time between two pieces.
const BETWEEN: Duration = Duration::from_millis(20);

/// A stream's text in pieces that are cut anywhere, inside characters too.
fn pieces(letters: &'static [&'static str]) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let text =
        prop::collection::vec(prop::sample::select(letters), 0..40).prop_map(|letters| letters.concat());
    (text, prop::collection::vec(any::<prop::sample::Index>(), 0..8)).prop_map(|(text, cuts)| {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.windows(2)
            .map(|cut| text.as_bytes()[cut[0]..cut[1]].to_vec())
            .collect()
    })
}

/// Plays two streams piece by piece, in turns, with a read after each of these pauses and one after the end. Returns all
/// that was read, and the number of bytes that were lost.
fn read(stdout: &[Vec<u8>], stderr: &[Vec<u8>], pauses: &[u64], room: usize) -> (String, u64) {
    let mut script = Script::new();
    for turn in 0..stdout.len().max(stderr.len()) {
        script = script.waits(BETWEEN);
        if let Some(piece) = stdout.get(turn) {
            script = script.stdout(piece.clone());
        }
        if let Some(piece) = stderr.get(turn) {
            script = script.stderr(piece.clone());
        }
    }
    let stage = Stage::with(script.exits(0), |config| config.max_output_bytes = room);
    stage.play(async {
        let spec = stage
            .shell
            .resolve(ShellRequest::new("work"))
            .expect("it is valid");
        let execution = stage.shell.start(spec).expect("it starts");
        let (mut text, mut lost) = (String::new(), 0);
        for &pause in pauses {
            sleep(Duration::from_millis(pause)).await;
            let read = execution.read_output();
            text.push_str(&read.delta);
            lost += read.lost;
        }
        execution.done().await;
        let read = execution.read_output();
        (text + &read.delta, lost + read.lost)
    })
}

/// What is left of a text when only these letters stay.
fn only(text: &str, letters: &[&str]) -> String {
    text.chars()
        .filter(|character| letters.concat().contains(*character))
        .collect()
}

/// The two streams have no letter in common, nor one with what stands between them.
const OUT: [&str; 4] = ["a", "b", "\u{2014}", "\u{1d11e}"];
const ERR: [&str; 3] = ["X", "Y", "\u{e9}"];

proptest! {
    #[test]
    fn reads_at_any_moments_are_together_the_whole(
        stdout in pieces(&OUT),
        stderr in pieces(&ERR),
        pauses in prop::collection::vec(0_u64..60, 0..10),
    ) {
        let (text, lost) = read(&stdout, &stderr, &pauses, 64_000);
        prop_assert_eq!(lost, 0);
        // The name of the second stream is in small letters, and none of them is of the first.
        let text = text.replace("[stderr]", "");
        prop_assert_eq!(only(&text, &OUT).into_bytes(), stdout.concat());
        prop_assert_eq!(only(&text, &ERR).into_bytes(), stderr.concat());
    }

    #[test]
    fn what_was_not_read_in_time_is_counted_to_the_byte(
        stdout in pieces(&["a", "b"]),
        pauses in prop::collection::vec(0_u64..60, 0..10),
        room in 1_usize..20,
    ) {
        let (text, lost) = read(&stdout, &[], &pauses, room);
        prop_assert_eq!(text.len() as u64 + lost, stdout.concat().len() as u64);
    }
}
