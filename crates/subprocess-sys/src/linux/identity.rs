//! Which process this is, cheaply, and right after a fork.

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

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_answer_is_the_kernels() {
        assert_eq!(super::pid(), std::process::id());
        assert_eq!(super::pid(), std::process::id());
    }
}
