//! Which process this is, cheaply, and right after a fork; and where and when.

use std::ffi::{CStr, c_char};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::param::page_size;

/// Returns this process's pid.
///
/// `getpid` is a system call, and a runtime asks before nearly everything it does. The answer is kept in a page that the
/// kernel empties in a forked child (`MADV_WIPEONFORK`, Linux 4.14), so a child never takes itself for its parent.
pub fn pid() -> u32 {
    static PAGE: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();
    let Some(kept) = PAGE.get_or_init(make_page) else {
        return std::process::id();
    };
    match kept.load(Ordering::Relaxed) {
        0 => {
            let pid = std::process::id();
            kept.store(pid, Ordering::Relaxed);
            pid
        }
        pid => pid,
    }
}

fn make_page() -> Option<&'static AtomicU32> {
    let (size, protection) = (page_size(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no existing memory.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), size, protection, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the advice is about the mapping just made. Where it is refused the page is left alone.
    unsafe { madvise(page, size, Advice::LinuxWipeOnFork) }.ok()?;
    // SAFETY: the page is zeroed, aligned, never unmapped, and used as this atomic alone.
    Some(unsafe { &*page.cast::<AtomicU32>() })
}

/// Returns the effective user id.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the shell of this user's account (passwd(5)): `/bin/sh` where the account names none.
///
/// It may take long: accounts can be looked up over a network.
///
/// # Errors
///
/// `NotFound` for a user without an account, and those of getpwuid(3).
pub fn account_shell() -> io::Result<Vec<u8>> {
    let mut buffer: Vec<c_char> = vec![0; 1024];
    loop {
        // SAFETY: every field is an integer or a pointer, for which zero is a value; it is written before it is read.
        let mut account: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found: *mut libc::passwd = std::ptr::null_mut();
        // SAFETY: the buffer has the length that is said, and all three outlive the call.
        let errno = unsafe {
            libc::getpwuid_r(
                user(),
                &raw mut account,
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw mut found,
            )
        };
        match errno {
            // A bound on what a service of accounts may say.
            libc::ERANGE if buffer.len() < 1024 * 1024 => buffer.resize(buffer.len() * 4, 0),
            libc::EINTR => {}
            0 if found.is_null() => return Err(io::ErrorKind::NotFound.into()),
            0 => {
                // SAFETY: a NUL-terminated string in the buffer, which lives on.
                let shell = unsafe { CStr::from_ptr(account.pw_shell) }.to_bytes();
                let shell: &[u8] = if shell.is_empty() { b"/bin/sh" } else { shell };
                return Ok(shell.to_vec());
            }
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Returns the kernel's name for its run since it was booted (random(4)): 36 characters, hexadecimal digits and hyphens.
///
/// # Errors
///
/// When `/proc` is not mounted, or what it says has another form.
pub fn boot() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let boot = text.trim_end();
    let well_formed = boot.len() == 36 && boot.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    if well_formed {
        Ok(boot.to_owned())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// Returns the number of this process's pid namespace (namespaces(7)). A later namespace may get it again.
///
/// # Errors
///
/// When `/proc` is not mounted, or does not show this process.
pub fn pid_namespace() -> io::Result<u64> {
    fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_answer_is_the_kernels() {
        assert_eq!(super::pid(), std::process::id());
        assert_eq!(super::pid(), std::process::id());
    }
    #[test]
    fn the_run_of_the_kernel_and_the_namespace_stay_the_same() {
        assert_eq!(
            super::boot().expect("/proc is there"),
            super::boot().expect("/proc is there")
        );
        assert_eq!(
            super::pid_namespace().expect("/proc is there"),
            super::pid_namespace().expect("/proc is there")
        );
    }
}
