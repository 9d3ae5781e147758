//! What the child needs, laid out by the parent so that the child allocates nothing.

use std::ffi::c_char;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::atomic::Ordering;

use dsh_subprocess_warden::protocol::SAMPLE;
pub use dsh_subprocess_warden::report::FailedStep;
use dsh_subprocess_warden::report::Report;

/// The shell that runs a script without an interpreter line, as `execvp` does (exec(3)).
const SHELL: &[u8] = b"/bin/sh";

/// A program, its arguments and its environment, as one block of NUL-terminated strings.
///
/// ```
/// use dsh_subprocess_sys::spawn::Program;
/// let program = Program::new(
///     [b"true".as_slice()],
///     [(b"PATH".as_slice(), b"/usr/bin:/bin".as_slice())],
///     [b"/usr/bin/true".as_slice(), b"/bin/true".as_slice()],
///     b"/",
/// );
/// assert_eq!(program.candidate(1), b"/bin/true");
/// ```
#[derive(Debug)]
pub struct Program {
    /// Keeps the strings that the pointers below point into.
    strings: Vec<u8>,
    /// `/bin/sh`, `argv[0]`, `argv[1]`, …, null. The child executes from the second on; for a script without an
    /// interpreter it puts the script's path in the second place and executes from the first.
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    candidates: Vec<*const c_char>,
    cwd: *const c_char,
    /// What is run instead of the candidates.
    file: Option<BorrowedFd<'static>>,
}

// SAFETY: the pointers point into `strings`, which moves with them and is never changed.
unsafe impl Send for Program {}

impl Program {
    /// Lays out a program.
    ///
    /// `candidates` are the paths to try in order, until one can be executed. No string may contain a NUL byte: it would
    /// end there.
    pub fn new<'a>(
        argv: impl IntoIterator<Item = &'a [u8]>,
        environment: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        candidates: impl IntoIterator<Item = &'a [u8]>,
        cwd: &'a [u8],
    ) -> Self {
        // Offsets first, pointers once the block has stopped growing.
        let mut strings = Vec::with_capacity(4096);
        let mut add = |parts: &[&[u8]]| {
            let offset = strings.len();
            for part in parts {
                strings.extend_from_slice(part);
            }
            strings.push(0);
            offset
        };
        let mut arguments = vec![add(&[SHELL])];
        arguments.extend(argv.into_iter().map(|argument| add(&[argument])));
        let environment: Vec<usize> = environment
            .into_iter()
            .map(|(name, value)| add(&[name, b"=", value]))
            .collect();
        let candidates: Vec<usize> = candidates
            .into_iter()
            .map(|candidate| add(&[candidate]))
            .collect();
        let cwd = add(&[cwd]);

        let base = strings.as_ptr();
        let pointer = |offset: usize| base.wrapping_add(offset).cast::<c_char>();
        let list = |offsets: Vec<usize>| offsets.into_iter().map(pointer).chain([ptr::null()]).collect();
        Self {
            arguments: list(arguments),
            environment: list(environment),
            candidates: list(candidates),
            cwd: pointer(cwd),
            file: None,
            strings,
        }
    }

    /// Has this open file run instead of the candidates.
    pub(crate) fn with_file(self, file: BorrowedFd<'static>) -> Self {
        Self {
            file: Some(file),
            ..self
        }
    }

    /// Returns the path that was tried at a place of the list.
    ///
    /// # Panics
    ///
    /// When there is no such place.
    pub fn candidate(&self, index: usize) -> &[u8] {
        assert!(index + 1 < self.candidates.len(), "there is no candidate {index}");
        let offset = self.candidates[index].addr() - self.strings.as_ptr().addr();
        let rest = &self.strings[offset..];
        let length = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        &rest[..length]
    }

    /// Returns the strings, in the order of the warden's protocol.
    pub(crate) fn strings(&self) -> Strings<'_> {
        // Each list ends with a null, and the arguments begin with the shell. That a list has more than 2^32 entries would
        // take 32 GiB of pointers.
        let count = |list: usize, others: usize| (list - others) as u32;
        Strings {
            arguments: count(self.arguments.len(), 2),
            environment: count(self.environment.len(), 1),
            candidates: count(self.candidates.len(), 1),
            block: &self.strings,
        }
    }

    pub(super) fn arguments(&mut self) -> *mut *const c_char {
        self.arguments.as_mut_ptr()
    }

    pub(super) fn environment(&self) -> *const *const c_char {
        self.environment.as_ptr()
    }

    pub(super) fn candidates(&self) -> *const *const c_char {
        self.candidates.as_ptr()
    }

    pub(super) fn file(&self) -> Option<BorrowedFd<'static>> {
        self.file
    }

    pub(super) fn cwd(&self) -> *const c_char {
        self.cwd
    }
}

/// The strings of a [`Program`]: the shell, the arguments, the environment, the candidates, the working directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strings<'a> {
    pub(crate) arguments: u32,
    pub(crate) environment: u32,
    pub(crate) candidates: u32,
    /// All of them, each with its NUL.
    pub(crate) block: &'a [u8],
}

/// What one of the child's three standard descriptors becomes.
#[derive(Clone, Copy, Debug)]
pub enum Descriptor<'fd> {
    /// The host's own descriptor of the same number.
    Inherit,
    /// A copy of this one, whose number is 3 or more.
    From(BorrowedFd<'fd>),
    /// A copy of the child's standard output.
    Merge,
}

/// The session and process group of a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Session {
    /// Its own, without a controlling terminal.
    Own,
    /// Its own, whose controlling terminal is its standard input.
    OwnTerminal,
    /// The host's: it stays on the host's terminal, and in its process group.
    Host,
    /// The host's session, and a process group of its own there.
    OwnGroup,
}

/// How to start a [`Program`].
#[derive(Clone, Copy, Debug)]
pub struct Launch<'fd> {
    /// Standard input, output and error.
    pub stdio: [Descriptor<'fd>; 3],
    /// What becomes the child's descriptor 3. All others are closed.
    pub control: Option<BorrowedFd<'fd>>,
    /// Where it belongs.
    pub session: Session,
    /// The directory of the cgroup that the child is born in.
    pub cgroup: Option<BorrowedFd<'fd>>,
    /// `cgroup.procs` of that cgroup, open for writing: the child moves itself there before exec. For kernels without
    /// `CLONE_INTO_CGROUP`.
    pub join_cgroup: Option<BorrowedFd<'fd>>,
}

/// Why a child never reached its program.
#[derive(Clone, Debug)]
pub struct ExecFailure {
    /// What it was doing.
    pub step: FailedStep,
    /// The error number.
    pub errno: i32,
    /// The candidate that decided the failure.
    pub candidate: usize,
    /// The candidate's file type and permissions, where it exists and can be reached.
    pub mode: Option<u32>,
    /// The first bytes of the candidate, where the failure depends on them.
    pub sample: Vec<u8>,
}

impl ExecFailure {
    /// Reads the report of a child that has left the shared memory.
    pub(super) fn from_report(report: &Report) -> Option<Self> {
        let step = report.failed_step()?;
        let mut sample = [0; SAMPLE];
        let length = report.copy_sample(&mut sample);
        let mode = report.mode.load(Ordering::Relaxed);
        Some(Self {
            step,
            errno: report.errno.load(Ordering::Relaxed),
            candidate: report.candidate.load(Ordering::Relaxed) as usize,
            mode: (mode != 0).then_some(mode),
            sample: sample[..length].to_vec(),
        })
    }
}
