//! The start of a target: from a packet to a child that runs its program.

use core::ffi::c_char;
use core::ptr;
use core::slice;
use core::sync::atomic::Ordering;

use crate::abi::errno::{E2BIG, EINVAL, EMFILE, ENOSYS, EPERM};
use crate::abi::number;
use crate::child::{INHERIT, Limit, MERGE, Order, Session};
use crate::clone::{Call, clone_child};
use crate::descriptor::{Descriptor, read_at};
use crate::futex;
use crate::link::Arrived;
use crate::process;
use crate::protocol::{self, Failed, LIMITS, Malformed, SAMPLE, Standard};
use crate::region::Region;
use crate::report::Report;
use crate::syscall::{check, syscall};

/// Bytes of the longest block. The kernel executes no program with more than 6 MiB of arguments and environment (execve(2)).
const BLOCK: usize = 64 * 1024 * 1024;

/// A child on its way to its program.
#[derive(Debug)]
pub struct Launching {
    /// What it uses until it has left this process's memory: its stack, and what [`Shared`] leads to.
    region: Region,
    pid: u32,
}

/// Why there is no child.
#[derive(Clone, Copy, Debug)]
pub enum NoChild {
    /// The packet is not what it should be.
    Malformed,
    /// The system refuses.
    Refused(i32),
}

impl From<Malformed> for NoChild {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// How a launch came out.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "it is said at once, and never stored")]
pub enum Outcome {
    /// The program runs.
    Running {
        /// Why it is not in the session or group that was asked for, or 0.
        session_errno: i32,
    },
    /// The child could not execute it, and is ending.
    Failed {
        step: u32,
        errno: i32,
        candidate: u32,
        mode: u32,
        sample: [u8; SAMPLE],
        sample_length: usize,
    },
}

impl Outcome {
    /// Says it to the host, of the child with this number.
    pub fn message(&self, pid: u32) -> protocol::FromTree<'_> {
        match self {
            Self::Running { session_errno } => protocol::FromTree::Running {
                pid,
                session_errno: *session_errno,
            },
            Self::Failed {
                step,
                errno,
                candidate,
                mode,
                sample,
                sample_length,
            } => protocol::FromTree::Failed(Failed {
                step: *step,
                errno: *errno,
                candidate: *candidate,
                mode: *mode,
                sample: sample.get(..*sample_length).unwrap_or_default(),
            }),
        }
    }
}

/// What lies at the beginning of a region's data: what the child is told, and what it tells.
struct Shared {
    report: Report,
    order: Order,
    limits: [Limit; LIMITS],
}

impl Launching {
    /// Makes the child, and returns it with its pidfd. It is cloned in this process's memory, so nothing is copied.
    pub fn start(launch: &protocol::Launch<'_>, mut arrived: Arrived) -> Result<(Self, Descriptor), NoChild> {
        if arrived.lost {
            // There was no room for them here, which is as if there had been none in the host.
            return Err(NoChild::Refused(EMFILE));
        }
        let mut stdio: [Option<Descriptor>; 3] = [const { None }; 3];
        for (standard, place) in launch.stdio.iter().zip(&mut stdio) {
            if *standard == Standard::Sent {
                *place = Some(arrived.take()?);
            }
        }
        let control = if launch.control {
            Some(arrived.take()?)
        } else {
            None
        };
        let file = if launch.block.is_empty() {
            Some(arrived.take()?)
        } else {
            None
        };
        arrived.end()?;

        let layout = Layout::of(launch)?;
        let region = Region::map(layout.end).map_err(NoChild::Refused)?;
        layout.fill(&region, launch.block, file.as_ref())?;
        let lists = layout.point(&region, launch)?;
        let shared = region.data::<Shared>();
        let limits = changed_limits(&launch.limits);
        // SAFETY: a field of memory that belongs to this launch alone; nothing is read.
        let report = unsafe { &raw const (*shared).report };
        // SAFETY: likewise.
        let first_limit = unsafe { &raw const (*shared).limits }.cast::<Limit>();
        let order = Order {
            arguments: lists.arguments,
            environment: lists.environment,
            candidates: lists.candidates,
            exec_fd: -1,
            cwd: lists.cwd,
            session: match launch.group {
                0 => Session::Own,
                protocol::TERMINAL => Session::Terminal,
                protocol::OWN_GROUP => Session::Group(0),
                group => Session::Group(i32::try_from(group).map_err(|_| NoChild::Malformed)?),
            },
            limits: first_limit,
            limit_count: limits.1,
            stdio: [
                number_of(launch.stdio[0], stdio[0].as_ref()),
                number_of(launch.stdio[1], stdio[1].as_ref()),
                number_of(launch.stdio[2], stdio[2].as_ref()),
            ],
            control: control.as_ref().map_or(-1, Descriptor::number),
            join_cgroup: -1,
            // A warden has no handlers and ignores nothing, so there is nothing to give back.
            reset: 0,
            close_range: has_close_range(),
            report,
        };
        let contents = Shared {
            report: Report::new(),
            order,
            limits: limits.0,
        };
        // SAFETY: the region has room for it there, aligned, and nobody else knows of it yet.
        unsafe { shared.write(contents) };
        process::set_umask(launch.umask & 0o777);
        // SAFETY: a field of what was just written.
        let order = unsafe { &raw mut (*shared).order };
        // SAFETY: likewise.
        let alive = unsafe { &raw const (*shared).report.alive };
        // SAFETY: the region stays mapped until `alive` is 0: `Launching` sees to that. A warden blocks every signal.
        let cloned = unsafe { clone_child(region.stack(), order, alive, Call::Clone3 { cgroup: -1 }) };
        let cloned = match cloned {
            // Not known, or not allowed (containers with older seccomp profiles answer with either), or not with these flags.
            Err(ENOSYS | EPERM | EINVAL) => {
                // SAFETY: as above.
                unsafe { clone_child(region.stack(), order, alive, Call::Clone) }
            }
            result => result,
        };
        let (pid, pidfd) = cloned.map_err(NoChild::Refused)?;
        // The child has copies of all that was sent; those of this process end here.
        Ok((
            Self {
                region,
                pid: pid as u32,
            },
            Descriptor::adopt(pidfd),
        ))
    }

    /// Returns the child's number.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the memory that the child writes.
    pub const fn report(&self) -> &Report {
        let shared = self.region.data::<Shared>();
        // SAFETY: the report was written by `start`, and only its atomics are changed, by the child.
        unsafe { &(*shared).report }
    }

    /// Waits until the child has left this process's memory, for at most a number of milliseconds, and tells whether it has.
    pub fn wait(&self, milliseconds: u64) -> bool {
        futex::wait_until_clear(&self.report().alive, Some(milliseconds))
    }

    /// Tells whether the child has left this process's memory: by running its program, or by ending.
    pub fn has_left(&self) -> bool {
        self.report().alive.load(Ordering::Acquire) == 0
    }

    /// Returns how it came out. The child must have left.
    pub fn outcome(&self) -> Outcome {
        let report = self.report();
        match report.failed_step() {
            None => Outcome::Running {
                session_errno: report.session_errno.load(Ordering::Relaxed),
            },
            Some(step) => {
                let mut sample = [0; SAMPLE];
                let sample_length = report.copy_sample(&mut sample);
                Outcome::Failed {
                    step: step.code(),
                    errno: report.errno.load(Ordering::Relaxed),
                    candidate: report.candidate.load(Ordering::Relaxed),
                    mode: report.mode.load(Ordering::Relaxed),
                    sample,
                    sample_length,
                }
            }
        }
    }
}

/// Where everything lies in the data of a region, as offsets.
#[derive(Clone, Copy)]
struct Layout {
    block: usize,
    length: usize,
    /// Strings in the block.
    strings: usize,
    end: usize,
}

/// The lists that the child executes with.
struct Lists {
    arguments: *mut *const c_char,
    environment: *const *const c_char,
    candidates: *const *const c_char,
    cwd: *const c_char,
}

impl Layout {
    fn of(launch: &protocol::Launch<'_>) -> Result<Self, NoChild> {
        let length = launch.length as usize;
        // The shell comes before the arguments, the working directory last.
        let strings =
            launch.arguments as usize + launch.environment as usize + launch.candidates as usize + 2;
        // Each takes a byte at least.
        if strings > length {
            return Err(NoChild::Malformed);
        }
        if length > BLOCK {
            return Err(NoChild::Refused(E2BIG));
        }
        // A null ends each of three lists, and the working directory is in none.
        let block = size_of::<Shared>() + (strings + 2) * size_of::<usize>();
        Ok(Self {
            block,
            length,
            strings,
            end: block + length,
        })
    }

    /// Puts the strings in place. They are copied, from a file too: it could become shorter while it is mapped.
    fn fill(&self, region: &Region, inline: &[u8], file: Option<&Descriptor>) -> Result<(), NoChild> {
        let to = region.data::<u8>().wrapping_add(self.block);
        // SAFETY: the region has `length` bytes there, all zero, which nobody else knows of.
        let to = unsafe { slice::from_raw_parts_mut(to, self.length) };
        let Some(file) = file else {
            // They have one length, or the packet would not have been one.
            to.iter_mut().zip(inline).for_each(|(to, from)| *to = *from);
            return Ok(());
        };
        let mut filled = 0;
        while let Some(rest @ [_, ..]) = to.get_mut(filled..) {
            match read_at(file.number(), rest, filled) {
                Ok(0) => return Err(NoChild::Malformed),
                Ok(length) => filled += length,
                Err(errno) => return Err(NoChild::Refused(errno)),
            }
        }
        Ok(())
    }

    /// Writes the lists of where the strings begin.
    fn point(&self, region: &Region, launch: &protocol::Launch<'_>) -> Result<Lists, NoChild> {
        let strings = region.data::<u8>().wrapping_add(self.block);
        // SAFETY: the strings were put there, and nobody changes them.
        let block = unsafe { slice::from_raw_parts(strings, self.length) };
        let first = region.data::<Shared>().wrapping_add(1).cast::<*const c_char>();
        // SAFETY: the region has room for this many pointers there, all zero, that is null.
        let pointers = unsafe { slice::from_raw_parts_mut(first, self.strings + 2) };
        let environment = launch.arguments as usize + 2;
        let candidates = environment + launch.environment as usize + 1;
        let end = candidates + launch.candidates as usize;

        let mut begins = 0;
        let mut next = || -> Result<*const c_char, Malformed> {
            let rest = block.get(begins..).ok_or(Malformed)?;
            let length = rest.iter().position(|&byte| byte == 0).ok_or(Malformed)?;
            let string = strings.wrapping_add(begins).cast_const().cast();
            begins += length + 1;
            Ok(string)
        };
        for (index, pointer) in pointers.iter_mut().enumerate() {
            let is_null = index == environment - 1 || index == candidates - 1 || index == end;
            *pointer = if is_null { ptr::null() } else { next()? };
        }
        let cwd = next()?;
        if begins != self.length {
            return Err(NoChild::Malformed);
        }
        Ok(Lists {
            arguments: first,
            environment: first.wrapping_add(environment).cast_const(),
            candidates: first.wrapping_add(candidates).cast_const(),
            cwd,
        })
    }
}

/// Returns the limits that differ from this process's own, and how many they are.
fn changed_limits(wanted: &[(u64, u64); LIMITS]) -> ([Limit; LIMITS], usize) {
    let mut limits = [Limit {
        resource: 0,
        soft: 0,
        hard: 0,
    }; LIMITS];
    let mut count = 0;
    for (resource, &(soft, hard)) in wanted.iter().enumerate() {
        let resource = resource as u32;
        if process::limit(resource) != Some((soft, hard))
            && let Some(place) = limits.get_mut(count)
        {
            *place = Limit { resource, soft, hard };
            count += 1;
        }
    }
    (limits, count)
}

fn number_of(standard: Standard, sent: Option<&Descriptor>) -> i32 {
    match standard {
        Standard::Sent => sent.map_or(INHERIT, Descriptor::number),
        Standard::Merge => MERGE,
        // A warden's own standard descriptors are the null device.
        Standard::Null => INHERIT,
    }
}

fn has_close_range() -> bool {
    let nothing = u32::MAX as usize;
    // An empty range at the top of the numbers closes nothing.
    // SAFETY: close_range takes integers.
    check(unsafe { syscall(number::close_range, [nothing, nothing, 0, 0, 0, 0]) }).is_ok()
}
