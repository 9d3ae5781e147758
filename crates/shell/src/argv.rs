//! The command line of the shell.

use std::fmt::Write as _;

use dsh_subprocess::WorldString;

/// The longest argument, without the NUL at its end: 32 pages of 4 KiB on Linux (`MAX_ARG_STRLEN`, `execve(2)`).
const LONGEST: usize = 32 * 4096 - 1;

/// Returns `PROGRAM -c COMMAND`, or the same in pieces where the text is longer than one argument may be.
///
/// The pieces are positional parameters, joined in double quotes and read by `eval`. The text that `eval` reads begins with a
/// `shift` that takes them away again, so that the command sees what it would have seen in one piece: no parameter, no
/// variable, and the same `$0`.
pub(crate) fn argv(program: &[WorldString], command: &WorldString) -> Vec<WorldString> {
    let mut argv = program.to_vec();
    argv.push("-c".into());
    if command.as_bytes().len() <= LONGEST {
        argv.push(command.clone());
        return argv;
    }
    let pieces = pieces(command.as_bytes());
    let mut script = format!("eval \"shift {};", pieces.len());
    for number in 1..=pieces.len() {
        write!(script, "${{{number}}}").expect("a string takes everything");
    }
    script.push('"');
    argv.push(script.into());
    argv.push(program[0].clone());
    argv.extend(pieces);
    argv
}

/// Cuts a text into arguments, between characters: some shells decode each.
fn pieces(mut text: &[u8]) -> Vec<WorldString> {
    let mut pieces = Vec::with_capacity(text.len() / LONGEST + 1);
    while text.len() > LONGEST {
        let continues = |at: usize| text[at] & 0b1100_0000 == 0b1000_0000;
        let at = (LONGEST - 3..=LONGEST)
            .rev()
            .find(|&at| !continues(at))
            .unwrap_or(LONGEST);
        let (piece, rest) = text.split_at(at);
        pieces.push(piece.into());
        text = rest;
    }
    pieces.push(text.into());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_that_fits_is_one_argument() {
        let command = WorldString::from("x".repeat(LONGEST));
        assert_eq!(
            argv(&["bash".into()], &command),
            ["bash".into(), "-c".into(), command]
        );
    }

    #[test]
    fn a_text_one_byte_longer_is_in_two() {
        let command = WorldString::from("x".repeat(LONGEST + 1));
        let argv = argv(&["bash".into(), "-u".into()], &command);
        assert_eq!(argv[..3], ["bash".into(), "-u".into(), "-c".into()]);
        assert_eq!(argv[3], "eval \"shift 2;${1}${2}\"".into());
        assert_eq!(argv[4], "bash".into());
        assert_eq!((argv[5].as_bytes().len(), argv[6].as_bytes().len()), (LONGEST, 1));
    }

    #[test]
    fn no_character_is_cut() {
        let text = "—".repeat(LONGEST);
        for piece in pieces(text.as_bytes()) {
            assert!(str::from_utf8(piece.as_bytes()).is_ok());
        }
    }

    proptest! {
        #[test]
        fn the_pieces_are_the_text(length in 0..4 * LONGEST, byte in any::<u8>(), at in any::<prop::sample::Index>()) {
            let mut text = vec![byte; length];
            if length > 0 {
                text[at.index(length)] = b'x';
            }
            let pieces = pieces(&text);
            prop_assert!(pieces.iter().all(|piece| piece.as_bytes().len() <= LONGEST));
            let joined: Vec<u8> = pieces.iter().flat_map(|piece| piece.as_bytes().to_vec()).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
