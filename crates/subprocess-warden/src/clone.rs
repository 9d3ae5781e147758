//! Clones that run on a stack of their own, in the memory of their parent.

use core::ffi::{c_long, c_void};
use core::sync::atomic::AtomicU32;

use crate::abi::flag::{
    CLONE_CHILD_CLEARTID, CLONE_CLEAR_SIGHAND, CLONE_INTO_CGROUP, CLONE_PIDFD, CLONE_VM, SIGCHLD,
};
use crate::abi::number;
use crate::child::{self, Order};
use crate::syscall::{check, fd};

/// `struct clone_args` (clone(2)), up to the field that came with Linux 5.7.
#[repr(C)]
#[derive(Default, Debug)]
pub struct CloneArgs {
    /// `CLONE_…`
    pub flags: u64,
    /// The address where the pidfd goes.
    pub pidfd: u64,
    /// The address of the word that is cleared.
    pub child_tid: u64,
    /// The address where the parent gets the number.
    pub parent_tid: u64,
    /// The signal that tells of the child's end.
    pub exit_signal: u64,
    /// The lowest address of the stack.
    pub stack: u64,
    /// Its length in bytes.
    pub stack_size: u64,
    /// The thread-local storage.
    pub tls: u64,
    /// Not used: the numbers to give.
    pub set_tid: u64,
    /// Not used: how many they are.
    pub set_tid_size: u64,
    /// The descriptor of the cgroup to be born in.
    pub cgroup: u64,
}

/// A stack for a child.
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    /// The lowest usable address.
    pub bottom: *mut u8,
    /// The usable length in bytes.
    pub length: usize,
}

/// Which calls the kernel has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// `clone3`; the child is born in the cgroup of this directory, or in its parent's for -1.
    Clone3 {
        /// The directory's descriptor, or -1.
        cgroup: i32,
    },
    /// The older one.
    Clone,
}

/// Clones a child that carries out an order, in its parent's memory and on its own stack. Returns its pid and its pidfd,
/// which is close-on-exec.
///
/// The kernel clears `alive` and wakes its futex, in the shared form, when the child has left the memory: by exec, or by
/// dying.
///
/// # Errors
///
/// The error number of clone(2).
///
/// # Safety
///
/// The order, what it points to, the stack and `alive` must stay as they are until `alive` is 0. Every signal must be
/// blocked on the calling thread, whose handlers the child could run otherwise.
pub unsafe fn clone_child(
    stack: Stack,
    order: *mut Order,
    alive: *const AtomicU32,
    call: Call,
) -> Result<(i32, i32), i32> {
    let mut pidfd: i32 = -1;
    let pidfd_address = (&raw mut pidfd).expose_provenance();
    let alive = alive.expose_provenance();
    let flags = CLONE_VM | CLONE_PIDFD | CLONE_CHILD_CLEARTID;
    let returned = match call {
        Call::Clone3 { cgroup } => {
            let args = CloneArgs {
                flags: flags | CLONE_CLEAR_SIGHAND | if cgroup >= 0 { CLONE_INTO_CGROUP } else { 0 },
                pidfd: pidfd_address as u64,
                child_tid: alive as u64,
                exit_signal: SIGCHLD as u64,
                stack: stack.bottom.expose_provenance() as u64,
                stack_size: stack.length as u64,
                cgroup: if cgroup >= 0 { fd(cgroup) as u64 } else { 0 },
                ..CloneArgs::default()
            };
            let arguments = [
                (&raw const args).expose_provenance(),
                size_of::<CloneArgs>(),
                0,
                0,
                0,
            ];
            // SAFETY: the arguments are complete, the child runs on the stack they name and never returns.
            unsafe { clone(number::clone3, arguments, child::run, order.cast()) }
        }
        Call::Clone => {
            let top = stack.bottom.wrapping_add(stack.length).expose_provenance();
            let flags = flags as usize | SIGCHLD as usize;
            // The order of the last two differs between the architectures: the thread-local storage, which is not set,
            // and the word to clear.
            let arguments = if cfg!(target_arch = "aarch64") {
                [flags, top, pidfd_address, 0, alive]
            } else {
                [flags, top, pidfd_address, alive, 0]
            };
            // SAFETY: as above; the stack grows down from its top.
            unsafe { clone(number::clone, arguments, child::run, order.cast()) }
        }
    };
    let pid = check(returned)?;
    Ok((pid as i32, pidfd))
}

/// Where a child begins.
pub type Entry = unsafe extern "C" fn(*mut c_void) -> !;

/// Makes a `clone` or `clone3` call; the child calls `entry(data)` on its own stack and never comes back.
///
/// # Safety
///
/// The arguments must name a stack that nothing else uses, and what `entry` does with `data` must be sound.
#[cfg(target_arch = "x86_64")]
pub unsafe fn clone(number: c_long, a: [usize; 5], entry: Entry, data: *mut c_void) -> usize {
    let returned;
    // SAFETY: the kernel keeps r12 and r13 for the child, which uses them to call `entry` with an aligned stack and an
    // outermost frame. The parent sees an ordinary system call.
    unsafe {
        core::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") number as usize => returned,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4],
            in("r12") entry,
            in("r13") data,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    returned
}

/// Makes a `clone` or `clone3` call; the child calls `entry(data)` on its own stack and never comes back.
///
/// # Safety
///
/// The arguments must name a stack that nothing else uses, and what `entry` does with `data` must be sound.
#[cfg(target_arch = "aarch64")]
pub unsafe fn clone(number: c_long, a: [usize; 5], entry: Entry, data: *mut c_void) -> usize {
    let returned;
    // SAFETY: the kernel keeps x11 and x12 for the child, which uses them to call `entry` as the outermost frame. The parent
    // sees an ordinary system call.
    unsafe {
        core::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x12",
            "blr x11",
            "brk 1",
            "2:",
            in("x8") number as usize,
            inlateout("x0") a[0] => returned,
            in("x1") a[1], in("x2") a[2], in("x3") a[3], in("x4") a[4],
            in("x11") entry,
            in("x12") data,
        );
    }
    returned
}
