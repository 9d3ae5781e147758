//! What the child needs, laid out by the parent so that the child allocates nothing.

use std::ffi::c_char;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// The shell that runs a script without an interpreter line, as `execvp` does (exec(3)).
const SHELL: &[u8] = b"/bin/sh";

/// Bytes of an unexecutable file that are looked at: the first line of a script, as `binfmt_script` reads it.
pub(super) const SAMPLE: usize = 256;

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
            strings,
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

    pub(super) fn arguments(&mut self) -> *mut *const c_char {
        self.arguments.as_mut_ptr()
    }

    pub(super) fn environment(&self) -> *const *const c_char {
        self.environment.as_ptr()
    }

    pub(super) fn candidates(&self) -> *const *const c_char {
        self.candidates.as_ptr()
    }

    pub(super) fn cwd(&self) -> *const c_char {
        self.cwd
    }
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

/// How to start a [`Program`].
#[derive(Clone, Copy, Debug)]
pub struct Launch<'fd> {
    /// Standard input, output and error.
    pub stdio: [Descriptor<'fd>; 3],
    /// What becomes the child's descriptor 3. All others are closed.
    pub control: Option<BorrowedFd<'fd>>,
    /// The directory of the cgroup that the child is born in.
    pub cgroup: Option<BorrowedFd<'fd>>,
    /// `cgroup.procs` of that cgroup, open for writing: the child moves itself there before exec. For kernels without
    /// `CLONE_INTO_CGROUP`.
    pub join_cgroup: Option<BorrowedFd<'fd>>,
}

/// What the child was doing when it failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailedStep {
    /// Moving itself into its cgroup.
    JoinCgroup,
    /// Putting a standard descriptor in place.
    Stdio,
    /// Closing the host's descriptors.
    CloseDescriptors,
    /// Entering the working directory.
    EnterCwd,
    /// Executing a candidate.
    Exec,
    /// Executing `/bin/sh` for a script without an interpreter line.
    ExecShell,
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

/// Memory that the child writes and the parent reads.
///
/// The parent looks at the other fields only after `alive` was cleared by the kernel, which orders them.
#[derive(Debug)]
pub(super) struct Report {
    /// The futex. 1 until the kernel clears it: `CLONE_CHILD_CLEARTID`.
    pub(super) alive: AtomicU32,
    /// 0, or 1 + the place in [`STEPS`].
    pub(super) step: AtomicU32,
    pub(super) errno: AtomicI32,
    pub(super) candidate: AtomicU32,
    /// 0 where it is not known.
    pub(super) mode: AtomicU32,
    /// 0, or why the child has no session of its own.
    pub(super) session_errno: AtomicI32,
    pub(super) sample_length: AtomicU32,
    pub(super) sample: [std::sync::atomic::AtomicU8; SAMPLE],
}

/// The steps, in the order of their codes.
const STEPS: [FailedStep; 6] = [
    FailedStep::JoinCgroup,
    FailedStep::Stdio,
    FailedStep::CloseDescriptors,
    FailedStep::EnterCwd,
    FailedStep::Exec,
    FailedStep::ExecShell,
];

impl FailedStep {
    pub(super) const fn code(self) -> u32 {
        self as u32 + 1
    }
}

impl Report {
    pub(super) fn new() -> Self {
        Self {
            alive: AtomicU32::new(1),
            step: AtomicU32::new(0),
            errno: AtomicI32::new(0),
            candidate: AtomicU32::new(0),
            mode: AtomicU32::new(0),
            session_errno: AtomicI32::new(0),
            sample_length: AtomicU32::new(0),
            sample: [const { std::sync::atomic::AtomicU8::new(0) }; SAMPLE],
        }
    }

    pub(super) fn failure(&self) -> Option<ExecFailure> {
        let step = *STEPS.get((self.step.load(Ordering::Acquire) as usize).checked_sub(1)?)?;
        let length = (self.sample_length.load(Ordering::Relaxed) as usize).min(SAMPLE);
        let mode = self.mode.load(Ordering::Relaxed);
        Some(ExecFailure {
            step,
            errno: self.errno.load(Ordering::Relaxed),
            candidate: self.candidate.load(Ordering::Relaxed) as usize,
            mode: (mode != 0).then_some(mode),
            sample: self.sample[..length]
                .iter()
                .map(|byte| byte.load(Ordering::Relaxed))
                .collect(),
        })
    }
}
