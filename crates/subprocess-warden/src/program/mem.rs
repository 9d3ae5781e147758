//! The routines that compiled code calls for itself, which a C library would have.
//!
//! Their accesses are volatile, because a compiler recognizes a loop that copies, and makes it a call of the very routine it
//! is in. What is copied here is small; large blocks go from descriptor to memory, by the kernel.

/// # Safety
///
/// As memcpy(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    let mut at = 0;
    while at < length {
        // SAFETY: both ranges are `length` long, by the caller's promise.
        let byte = unsafe { from.wrapping_add(at).read_volatile() };
        // SAFETY: likewise.
        unsafe { to.wrapping_add(at).write_volatile(byte) };
        at = at.wrapping_add(1);
    }
    to
}

/// # Safety
///
/// As memmove(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    if to.addr().wrapping_sub(from.addr()) >= length {
        // The beginning of `to` is not within `from`.
        // SAFETY: the caller's promise; going up never reads a byte that was written.
        return unsafe { memcpy(to, from, length) };
    }
    let mut at = length;
    while at > 0 {
        at = at.wrapping_sub(1);
        // SAFETY: both ranges are `length` long, by the caller's promise.
        let byte = unsafe { from.wrapping_add(at).read_volatile() };
        // SAFETY: likewise.
        unsafe { to.wrapping_add(at).write_volatile(byte) };
    }
    to
}

/// # Safety
///
/// As memset(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, value: i32, length: usize) -> *mut u8 {
    let mut at = 0;
    while at < length {
        // SAFETY: the range is `length` long, by the caller's promise.
        unsafe { to.wrapping_add(at).write_volatile(value as u8) };
        at = at.wrapping_add(1);
    }
    to
}

/// # Safety
///
/// As memcmp(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
    let mut at = 0;
    while at < length {
        // SAFETY: both ranges are `length` long, by the caller's promise.
        let a = unsafe { one.wrapping_add(at).read_volatile() };
        // SAFETY: likewise.
        let b = unsafe { other.wrapping_add(at).read_volatile() };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
        at = at.wrapping_add(1);
    }
    0
}

/// # Safety
///
/// As bcmp(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { memcmp(one, other, length) }
}

/// # Safety
///
/// As strlen(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: the text ends with a NUL, by the caller's promise, and nothing behind it is read.
    while unsafe { text.wrapping_add(length).read_volatile() } != 0 {
        length = length.wrapping_add(1);
    }
    length
}
