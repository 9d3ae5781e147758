//! Raw system calls, for code that must not touch `errno` or any other thread-local storage.
//!
//! The numbers are in [`abi::number`](crate::abi::number); the calling conventions come from `syscall(2)`.

use core::arch::asm;
use core::ffi::c_long;

/// The largest error number a system call returns, negated.
const MAX_ERRNO: usize = 4095;

/// Splits a raw return value into a result.
///
/// # Errors
///
/// The error number, where the call failed.
pub const fn check(returned: usize) -> Result<usize, i32> {
    let error = returned.wrapping_neg();
    if error >= 1 && error <= MAX_ERRNO {
        return Err(error as i32);
    }
    Ok(returned)
}

/// Turns a descriptor, or another signed number, into a system call's argument.
pub const fn fd(number: i32) -> usize {
    number as isize as usize
}

/// Makes a system call. Inlined, so that the child's code between clone and exec is one frame deep.
///
/// # Safety
///
/// The arguments must be what the call numbered `number` asks for: pointers among them must be valid for what it does
/// with them.
#[cfg(target_arch = "x86_64")]
#[inline]
pub unsafe fn syscall(number: c_long, a: [usize; 6]) -> usize {
    let returned;
    // SAFETY: the convention of x86_64 (syscall(2)): number and result in rax, rcx and r11 clobbered. The effect of the
    // call itself is the caller's obligation.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as usize => returned,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    returned
}

/// Makes a system call.
///
/// # Safety
///
/// The arguments must be what the call numbered `number` asks for: pointers among them must be valid for what it does
/// with them.
#[cfg(target_arch = "aarch64")]
#[inline]
pub unsafe fn syscall(number: c_long, a: [usize; 6]) -> usize {
    let returned;
    // SAFETY: the convention of arm64 (syscall(2)): number in x8, result in x0. The effect of the call itself is the
    // caller's obligation.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number as usize,
            inlateout("x0") a[0] => returned,
            in("x1") a[1], in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5],
            options(nostack),
        );
    }
    returned
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("dsh-subprocess knows the system-call conventions of x86_64 and aarch64");
