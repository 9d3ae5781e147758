//! The numbers of the kernel's interface that host and program use, for `x86_64` and `aarch64`.
//!
//! The program is compiled without any crate beside `core`, so they cannot come from the `libc` crate; but dsh-subprocess-sys,
//! which has it, compares every one of them when it is compiled, for either architecture.

use core::ffi::c_long;

macro_rules! numbers {
    ($($name:ident: $x86_64:literal, $aarch64:literal;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`")]
            pub const $name: c_long = if cfg!(target_arch = "x86_64") { $x86_64 } else { $aarch64 };
        )*
    };
}

/// System calls (syscalls(2)), by the names of the `libc` crate without `SYS_`.
pub mod number {
    #![expect(non_upper_case_globals, reason = "the names of the calls")]

    use super::c_long;

    numbers! {
        // name: x86_64, aarch64
        chdir: 80, 49;
        clock_gettime: 228, 113;
        clone: 56, 220;
        clone3: 435, 435;
        close: 3, 57;
        close_range: 436, 436;
        dup3: 292, 24;
        eventfd2: 290, 19;
        execve: 59, 221;
        execveat: 322, 281;
        exit: 60, 93;
        exit_group: 231, 94;
        fchdir: 81, 50;
        fchmod: 91, 52;
        fchmodat: 268, 53;
        fcntl: 72, 25;
        fstat: 5, 80;
        futex: 202, 98;
        getdents64: 217, 61;
        getpgid: 121, 155;
        getpid: 39, 172;
        getppid: 110, 173;
        getsid: 124, 156;
        ioctl: 16, 29;
        kill: 62, 129;
        lseek: 8, 62;
        memfd_create: 319, 279;
        mmap: 9, 222;
        mprotect: 10, 226;
        munmap: 11, 215;
        newfstatat: 262, 79;
        openat: 257, 56;
        pidfd_open: 434, 434;
        pidfd_send_signal: 424, 424;
        pipe2: 293, 59;
        ppoll: 271, 73;
        prctl: 157, 167;
        pread64: 17, 67;
        prlimit64: 302, 261;
        read: 0, 63;
        readlinkat: 267, 78;
        recvmsg: 47, 212;
        renameat2: 316, 276;
        rt_sigaction: 13, 134;
        rt_sigprocmask: 14, 135;
        rt_sigtimedwait: 128, 137;
        sendmsg: 46, 211;
        setpgid: 109, 154;
        setsid: 112, 157;
        signalfd4: 289, 74;
        socketpair: 53, 199;
        statx: 332, 291;
        umask: 95, 166;
        unlinkat: 263, 35;
        wait4: 61, 260;
        waitid: 247, 95;
        write: 1, 64;
    }
}

macro_rules! constants {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`")]
            pub const $name: $type = $value;
        )*
    };
}

/// Error numbers (errno(3)).
pub mod errno {
    constants! {
        EPERM: i32 = 1;
        ENOENT: i32 = 2;
        ESRCH: i32 = 3;
        EINTR: i32 = 4;
        EIO: i32 = 5;
        E2BIG: i32 = 7;
        ENOEXEC: i32 = 8;
        EBADF: i32 = 9;
        ECHILD: i32 = 10;
        EAGAIN: i32 = 11;
        ENOMEM: i32 = 12;
        EACCES: i32 = 13;
        EBUSY: i32 = 16;
        EEXIST: i32 = 17;
        ENODEV: i32 = 19;
        ENOTDIR: i32 = 20;
        EISDIR: i32 = 21;
        EINVAL: i32 = 22;
        ENFILE: i32 = 23;
        EMFILE: i32 = 24;
        ENOSPC: i32 = 28;
        EPIPE: i32 = 32;
        ENOSYS: i32 = 38;
        ENOTEMPTY: i32 = 39;
        ELOOP: i32 = 40;
        EPROTO: i32 = 71;
        EMSGSIZE: i32 = 90;
        ECONNRESET: i32 = 104;
        ETIMEDOUT: i32 = 110;
        ESTALE: i32 = 116;
    }
}

/// Flags and commands, by the names of the manual pages.
pub mod flag {
    /// Two flags of open(2) are numbered by the architecture.
    const fn by_architecture(x86_64: i32, aarch64: i32) -> i32 {
        if cfg!(target_arch = "x86_64") {
            x86_64
        } else {
            aarch64
        }
    }

    constants! {
        // open(2)
        O_RDONLY: i32 = 0;
        O_WRONLY: i32 = 1;
        O_RDWR: i32 = 2;
        O_NONBLOCK: i32 = 0o4000;
        O_DIRECTORY: i32 = by_architecture(0o200_000, 0o40_000);
        O_NOFOLLOW: i32 = by_architecture(0o400_000, 0o100_000);
        O_CLOEXEC: i32 = 0o2_000_000;
        O_PATH: i32 = 0o10_000_000;
        AT_FDCWD: i32 = -100;
        AT_SYMLINK_NOFOLLOW: i32 = 0x100;
        AT_REMOVEDIR: i32 = 0x200;
        AT_EMPTY_PATH: i32 = 0x1000;
        // fcntl(2)
        F_GETFD: i32 = 1;
        F_SETFD: i32 = 2;
        F_GETFL: i32 = 3;
        F_SETFL: i32 = 4;
        F_DUPFD_CLOEXEC: i32 = 1030;
        FD_CLOEXEC: i32 = 1;
        // statx(2), inode(7)
        STATX_TYPE: u32 = 1;
        STATX_MODE: u32 = 2;
        S_IFMT: u32 = 0o170_000;
        S_IFDIR: u32 = 0o40_000;
        // getdents(2)
        DT_UNKNOWN: u8 = 0;
        DT_DIR: u8 = 4;
        // mmap(2)
        PROT_NONE: i32 = 0;
        PROT_READ: i32 = 1;
        PROT_WRITE: i32 = 2;
        MAP_SHARED: i32 = 1;
        MAP_PRIVATE: i32 = 2;
        MAP_ANONYMOUS: i32 = 0x20;
        MAP_NORESERVE: i32 = 0x4000;
        MAP_STACK: i32 = 0x20000;
        // clone(2)
        CLONE_VM: u64 = 0x100;
        CLONE_FS: u64 = 0x200;
        CLONE_FILES: u64 = 0x400;
        CLONE_SIGHAND: u64 = 0x800;
        CLONE_PIDFD: u64 = 0x1000;
        CLONE_THREAD: u64 = 0x10000;
        CLONE_SYSVSEM: u64 = 0x40000;
        CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
        CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
        CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
        // signal(7), sigprocmask(2)
        SIGHUP: i32 = 1;
        SIGKILL: i32 = 9;
        SIGTERM: i32 = 15;
        SIGCHLD: i32 = 17;
        SIGCONT: i32 = 18;
        SIGSTOP: i32 = 19;
        SIG_BLOCK: i32 = 0;
        SIG_SETMASK: i32 = 2;
        SFD_NONBLOCK: i32 = O_NONBLOCK;
        SFD_CLOEXEC: i32 = O_CLOEXEC;
        EFD_NONBLOCK: i32 = O_NONBLOCK;
        EFD_CLOEXEC: i32 = O_CLOEXEC;
        // wait(2)
        P_ALL: i32 = 0;
        P_PID: i32 = 1;
        P_PIDFD: i32 = 3;
        WNOHANG: i32 = 1;
        WEXITED: i32 = 4;
        WNOWAIT: i32 = 0x100_0000;
        __WALL: i32 = 0x4000_0000;
        // prctl(2)
        PR_SET_NAME: i32 = 15;
        PR_SET_CHILD_SUBREAPER: i32 = 36;
        PR_GET_CHILD_SUBREAPER: i32 = 37;
        // ioctl_tty(2)
        TIOCSCTTY: i32 = 0x540e;
        // futex(2)
        FUTEX_WAIT: i32 = 0;
        FUTEX_WAKE: i32 = 1;
        // poll(2)
        POLLIN: i16 = 1;
        POLLPRI: i16 = 2;
        POLLOUT: i16 = 4;
        POLLERR: i16 = 8;
        POLLHUP: i16 = 0x10;
        // unix(7), send(2), recv(2)
        AF_UNIX: i32 = 1;
        SOCK_SEQPACKET: i32 = 5;
        SOCK_CLOEXEC: i32 = O_CLOEXEC;
        SOCK_NONBLOCK: i32 = O_NONBLOCK;
        SOL_SOCKET: i32 = 1;
        SCM_RIGHTS: i32 = 1;
        MSG_CTRUNC: i32 = 8;
        MSG_TRUNC: i32 = 0x20;
        MSG_DONTWAIT: i32 = 0x40;
        MSG_NOSIGNAL: i32 = 0x4000;
        MSG_CMSG_CLOEXEC: i32 = 0x4000_0000;
        // clock_gettime(2)
        CLOCK_MONOTONIC: i32 = 1;
        // memfd_create(2)
        MFD_CLOEXEC: u32 = 1;
        MFD_ALLOW_SEALING: u32 = 2;
        // getrlimit(2)
        RLIMIT_NOFILE: u32 = 7;
    }
}
