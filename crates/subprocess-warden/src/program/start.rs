//! How the program begins, and how it ends when it has a fault.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::panic::PanicInfo;

use crate::memory::Memory;
use crate::process;

// The kernel starts a program with the number of its arguments on top of the stack, then their addresses (execve(2), and
// the ABI of either processor). The stack is aligned to 16 bytes there, as a call wants it.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "call {begin}",
    "ud2",
    begin = sym begin,
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl _start",
    "_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "mov x0, sp",
    "bl {begin}",
    "brk 1",
    begin = sym begin,
);

/// The program's memory. All zeroes, so it takes no room in the file, and no page of it is there until it is touched.
struct Home(UnsafeCell<Memory>);

// SAFETY: only `begin` takes the address, once, before there is a second thread; and the only other thread there ever is
// (`exec_watch`) is given addresses of its own.
unsafe impl Sync for Home {}

static HOME: Home = Home(UnsafeCell::new(Memory::new()));

/// # Safety
///
/// Called once, by `_start`, with the address of what the kernel has put on the stack.
unsafe extern "C" fn begin(stack: *const usize) -> ! {
    // SAFETY: the first word is the number of arguments, by the caller's promise.
    let count = unsafe { stack.read() };
    let option = if count > 1 {
        // SAFETY: the address of the second argument is the third word.
        let argument = unsafe { stack.wrapping_add(2).cast::<*const c_char>().read() };
        // SAFETY: arguments are NUL-terminated, and stay where they are for the life of the program.
        unsafe { CStr::from_ptr(argument) }.to_bytes()
    } else {
        b""
    };
    // SAFETY: this function runs once, so this is the only reference to it.
    let memory = unsafe { &mut *HOME.0.get() };
    crate::run(option, memory)
}

/// A fault of the program itself. To end is the safe thing to do, and all there is to it: every process that this one is
/// responsible for has somebody else who notices. The tree of a tree warden comes to the runtime warden, which ends it; the
/// tree wardens of a runtime warden see it end, and end their trees; and the host sees a socket hang up.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    process::exit(101)
}

/// What unwinding would call. `core` comes compiled with tables that name it, and this program does not unwind: it is
/// compiled to abort.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() -> ! {
    process::exit(101)
}
