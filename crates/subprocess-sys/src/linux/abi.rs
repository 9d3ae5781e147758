//! Compares the numbers that the warden's package spells out with those of the `libc` crate, on the architecture this is
//! compiled for.

use dsh_subprocess_warden::abi::{errno, flag, number};

macro_rules! numbers_agree {
    ($($name:ident: $theirs:ident),* $(,)?) => {
        $(const _: () = assert!(number::$name == libc::$theirs, stringify!($name));)*
    };
}

// Not among them: the flags of clone3 beyond 32 bits, which the crate cuts off.
macro_rules! constants_agree {
    ($module:ident: $($name:ident),* $(,)?) => {
        // Their types differ, and some are signed here and not there; none is negative in 64 bits but -100, alike in both.
        $(const _: () = assert!($module::$name as i64 == libc::$name as i64, stringify!($name));)*
    };
}

numbers_agree! {
    chdir: SYS_chdir,
    clock_gettime: SYS_clock_gettime,
    clone: SYS_clone,
    clone3: SYS_clone3,
    close: SYS_close,
    close_range: SYS_close_range,
    dup3: SYS_dup3,
    eventfd2: SYS_eventfd2,
    execve: SYS_execve,
    execveat: SYS_execveat,
    exit: SYS_exit,
    exit_group: SYS_exit_group,
    fchdir: SYS_fchdir,
    fchmod: SYS_fchmod,
    fchmodat: SYS_fchmodat,
    fcntl: SYS_fcntl,
    fstat: SYS_fstat,
    futex: SYS_futex,
    getdents64: SYS_getdents64,
    getpgid: SYS_getpgid,
    getpid: SYS_getpid,
    getppid: SYS_getppid,
    getsid: SYS_getsid,
    ioctl: SYS_ioctl,
    kill: SYS_kill,
    lseek: SYS_lseek,
    memfd_create: SYS_memfd_create,
    mmap: SYS_mmap,
    mprotect: SYS_mprotect,
    munmap: SYS_munmap,
    newfstatat: SYS_newfstatat,
    openat: SYS_openat,
    pidfd_open: SYS_pidfd_open,
    pidfd_send_signal: SYS_pidfd_send_signal,
    pipe2: SYS_pipe2,
    ppoll: SYS_ppoll,
    prctl: SYS_prctl,
    pread64: SYS_pread64,
    prlimit64: SYS_prlimit64,
    read: SYS_read,
    readlinkat: SYS_readlinkat,
    recvmsg: SYS_recvmsg,
    renameat2: SYS_renameat2,
    rt_sigaction: SYS_rt_sigaction,
    rt_sigprocmask: SYS_rt_sigprocmask,
    rt_sigtimedwait: SYS_rt_sigtimedwait,
    sendmsg: SYS_sendmsg,
    setpgid: SYS_setpgid,
    setsid: SYS_setsid,
    signalfd4: SYS_signalfd4,
    socketpair: SYS_socketpair,
    statx: SYS_statx,
    umask: SYS_umask,
    unlinkat: SYS_unlinkat,
    wait4: SYS_wait4,
    waitid: SYS_waitid,
    write: SYS_write,
}

constants_agree! { errno:
    EPERM, ENOENT, ESRCH, EINTR, EIO, E2BIG, ENOEXEC, EBADF, ECHILD, EAGAIN, ENOMEM, EACCES, EBUSY, EEXIST,
    ENODEV, ENOTDIR, EISDIR, EINVAL, ENFILE, EMFILE, ENOSPC, EPIPE, ENOSYS, ENOTEMPTY, ELOOP, EPROTO,
    EMSGSIZE, ECONNRESET, ETIMEDOUT, ESTALE,
}

constants_agree! { flag:
    O_RDONLY, O_WRONLY, O_RDWR, O_NONBLOCK, O_DIRECTORY, O_NOFOLLOW, O_CLOEXEC, O_PATH, AT_FDCWD,
    AT_SYMLINK_NOFOLLOW, AT_REMOVEDIR, AT_EMPTY_PATH, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC,
    FD_CLOEXEC, STATX_TYPE, STATX_MODE, S_IFMT, S_IFDIR, DT_UNKNOWN, DT_DIR, PROT_NONE, PROT_READ,
    PROT_WRITE, MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_STACK, CLONE_VM, CLONE_FS,
    CLONE_FILES, CLONE_SIGHAND, CLONE_PIDFD, CLONE_THREAD, CLONE_SYSVSEM, CLONE_CHILD_CLEARTID,
    SIGHUP, SIGKILL, SIGTERM, SIGCHLD, SIGCONT, SIGSTOP, SIG_BLOCK,
    SIG_SETMASK, SFD_NONBLOCK, SFD_CLOEXEC, EFD_NONBLOCK, EFD_CLOEXEC, P_ALL, P_PID, P_PIDFD, WNOHANG,
    WEXITED, WNOWAIT, __WALL, PR_SET_NAME, PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER, FUTEX_WAIT,
    FUTEX_WAKE, POLLIN, POLLPRI, POLLOUT, POLLERR, POLLHUP, AF_UNIX, SOCK_SEQPACKET, SOCK_CLOEXEC, SOCK_NONBLOCK,
    SOL_SOCKET, SCM_RIGHTS, MSG_CTRUNC, MSG_TRUNC, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_CMSG_CLOEXEC,
    CLOCK_MONOTONIC, MFD_CLOEXEC, MFD_ALLOW_SEALING, RLIMIT_NOFILE, TIOCSCTTY,
}
