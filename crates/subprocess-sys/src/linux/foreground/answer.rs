//! What a look comes to, and how the looks at several things come to one.

use std::fmt;

use rustix::io::Errno;

/// Whether a group waits for input from its terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputWaiting {
    /// A thread of it was seen blocked in a call that ends when there is input.
    Proven,
    /// Every thread was seen, and none was.
    NotWaiting,
    /// None was seen, and not everything could be seen.
    Unknown(Unseen),
}

/// Why it cannot be told whether something waits for input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unseen {
    /// `/proc` is not mounted, or shows another pid namespace.
    OtherTable,
    /// The process is hidden from this user (`hidepid`, `proc(5)`).
    Hidden,
    /// The process may not be looked into: it is another user's, not dumpable, or out of the ptrace scope (`ptrace(2)`, "Ptrace
    /// access mode checking").
    Forbidden,
    /// The kernel does not tell which system call a thread is in.
    NoCalls,
    /// The caller is no 64-bit program, and its system calls have other numbers.
    OtherCalls,
    /// It waits for an `io_uring`, which may be reading the terminal.
    IoUring,
    /// It copies from the terminal to another file, and may be waiting for that one.
    Copying,
    /// It was stopped and continued in a call of which it cannot be told which one it is.
    Restarted,
    /// It waits for an epoll set with a file in it that it has no descriptor of any more.
    Closed,
    /// There is more to look at than is looked at.
    TooMuch,
    /// What it waits for is in memory that cannot be read.
    Memory,
    /// The kernel's words are in a form that is not known here.
    Form,
    /// The look failed: for want of a descriptor, say.
    Failed(Errno),
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherTable => "/proc is not mounted or shows another pid namespace",
            Self::Hidden => "a member of the group is hidden from this user",
            Self::Forbidden => "a member of the group may not be looked into",
            Self::NoCalls => "the kernel does not tell which system call a thread is in",
            Self::OtherCalls => "a member of the group is no 64-bit program",
            Self::IoUring => "a member of the group waits for an io_uring",
            Self::Copying => {
                "a member of the group copies from the terminal, and may wait for the other side"
            }
            Self::Restarted => "a member of the group was continued in a call that cannot be told",
            Self::Closed => "a member of the group waits for a file that it has no descriptor of",
            Self::TooMuch => "the group has or waits for more than is looked at",
            Self::Memory => "the memory of a member of the group cannot be read",
            Self::Form => "/proc has a form that is not known",
            Self::Failed(errno) => return write!(f, "a look at the group failed: {errno}"),
        })
    }
}

/// Why a look gave no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Missed {
    /// What was to be looked at has ended, or is closed: it does not wait.
    Gone,
    /// It is there.
    Unseen(Unseen),
}

impl From<Unseen> for Missed {
    fn from(unseen: Unseen) -> Self {
        Self::Unseen(unseen)
    }
}

impl From<Errno> for Missed {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::SRCH => Self::Gone,
            Errno::ACCESS | Errno::PERM => Unseen::Forbidden.into(),
            errno => Unseen::Failed(errno).into(),
        }
    }
}

impl From<Result<bool, Missed>> for InputWaiting {
    fn from(waits: Result<bool, Missed>) -> Self {
        match waits {
            Ok(true) => Self::Proven,
            Ok(false) | Err(Missed::Gone) => Self::NotWaiting,
            Err(Missed::Unseen(why)) => Self::Unknown(why),
        }
    }
}

/// Whether any of several things waits. They are looked at until one does; else the first that could not be seen decides.
pub(super) fn any(looks: impl IntoIterator<Item = Result<bool, Missed>>) -> Result<bool, Missed> {
    let mut answer = Ok(false);
    for look in looks {
        match look {
            Ok(true) => return look,
            Err(Missed::Unseen(_)) if answer.is_ok() => answer = look,
            Ok(false) | Err(_) => {}
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO: Result<bool, Missed> = Ok(false);
    const YES: Result<bool, Missed> = Ok(true);
    const GONE: Result<bool, Missed> = Err(Missed::Gone);
    const FORBIDDEN: Result<bool, Missed> = Err(Missed::Unseen(Unseen::Forbidden));
    const MEMORY: Result<bool, Missed> = Err(Missed::Unseen(Unseen::Memory));

    #[test]
    fn one_proof_outweighs_everything_unseen() {
        assert_eq!(any([NO, FORBIDDEN, GONE, YES]), YES);
    }

    #[test]
    fn nothing_is_looked_at_after_a_proof() {
        let looks = [YES, NO].into_iter().inspect(|look| assert_eq!(*look, YES));
        assert_eq!(any(looks), YES);
    }

    #[test]
    fn the_first_reason_is_told() {
        assert_eq!(any([NO, GONE, MEMORY, NO, FORBIDDEN]), MEMORY);
    }

    #[test]
    fn what_is_gone_does_not_wait() {
        assert_eq!(any([]), NO);
        assert_eq!(any([GONE, NO, GONE]), NO);
        assert_eq!(InputWaiting::from(GONE), InputWaiting::NotWaiting);
    }

    #[test]
    fn a_reason_is_a_fragment_of_a_sentence() {
        let words = Unseen::Failed(Errno::MFILE).to_string();
        assert!(words.starts_with("a look at the group failed: "), "{words}");
    }
}
