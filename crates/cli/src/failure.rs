//! What went wrong, in the words that a person and a program get.

use dsh_subprocess::{Error, ErrorKind};

use crate::exit_status;

/// Why there is nothing better to report: one line for people, one word for programs, and the exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// One word in snake case: the seam's kind of error, or one of this program's own.
    pub(crate) kind: String,
    /// The input and the cause, as a lower-case fragment. It may hold anything the input held: see
    /// [`one_line`](crate::quantity::one_line).
    pub(crate) message: String,
    /// What to exit with.
    pub(crate) status: u8,
}

impl Failure {
    /// States a failure of this program's own.
    pub(crate) fn new(kind: &str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            message: message.into(),
            status: exit_status::OWN_FAILURE,
        }
    }

    /// States that the command line cannot be carried out.
    pub(crate) fn bad_option(message: impl Into<String>) -> Self {
        Self::new("bad_option", message)
    }

    /// States that a command has ended in a way that nobody can tell.
    pub(crate) fn status_unknown() -> Self {
        Self::new(
            "status_unknown",
            "the command ended, and its exit status is not known: somebody else took it",
        )
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let kind = error.kind();
        Self {
            kind: snake_case(kind),
            message: error.to_string(),
            status: exit_status::of_error(kind),
        }
    }
}

/// Names a kind as JSON does. It goes by the variant's own name, so that a kind which is new tomorrow has a word, too.
fn snake_case(kind: ErrorKind) -> String {
    let mut word = String::new();
    for character in format!("{kind:?}").chars() {
        if character.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(character.to_ascii_lowercase());
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_for_a_kind_is_its_name_in_snake_case() {
        assert_eq!(snake_case(ErrorKind::ProgramNotFound), "program_not_found");
        assert_eq!(snake_case(ErrorKind::CwdNotDirectory), "cwd_not_directory");
        assert_eq!(snake_case(ErrorKind::Os), "os");
    }
}
