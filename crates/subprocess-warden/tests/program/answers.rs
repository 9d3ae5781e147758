//! What a tree warden says of its target.

use std::time::Duration;

use std::os::fd::AsFd;

use dsh_subprocess_sys::spawn::{Descriptor, FailedStep, Launch, Program, Session};
use dsh_subprocess_sys::{pidfd, pipe, warden};
use dsh_subprocess_warden::protocol::ToTree;

use crate::fixture::{LONG, Runtime, Said, Tree, kill, open, parent_of, runs, shell, tell};

#[test]
fn the_exit_code_is_the_targets() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let target = tree.run("echo out; exit 7", LONG);
    assert_eq!(target.rest(), "out\n");
    let exited = tree.exited();
    assert_eq!((exited.code, exited.signal), (7, 0));
    assert!(exited.peak_memory > 0);
    tree.gone();
}

#[test]
fn the_signal_that_ended_the_target_is_told() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let _target = tree.run("kill -9 $$", LONG);
    let exited = tree.exited();
    assert_eq!((exited.code, exited.signal, exited.core_dumped), (0, 9, false));
    tree.gone();
}

#[test]
fn the_pidfd_is_the_targets_and_its_parent_is_the_warden() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let mut target = tree.run("echo $$; exec sleep 1000", LONG);
    assert_eq!(target.number(), target.pid);
    assert_eq!(parent_of(target.pid), tree.warden);
    assert!(runs(&target.pidfd));
    tree.kill();
    assert!(pidfd::is_reaped(&target.pidfd));
}

#[test]
fn processor_time_of_members_that_nobody_waited_for_is_counted() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let script = "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done) & exit 0";
    let _target = tree.run(script, LONG);
    let exited = tree.exited();
    let Said::Gone { user } = tree.next() else {
        panic!("the tree is gone")
    };
    assert!(
        user > exited.user,
        "{user} µs, {} of them the target's",
        exited.user
    );
}

fn failure(tree: &Tree, program: &Program) -> (FailedStep, i32, u32, Vec<u8>) {
    let _output = tree.launch(program, LONG);
    let Said::Failed {
        step,
        errno,
        candidate,
        sample,
    } = tree.next()
    else {
        panic!("the program cannot be executed")
    };
    assert!(matches!(tree.next(), Said::Idle(pid) if pid == tree.warden));
    let step = FailedStep::from_code(step).expect("a step");
    (step, errno, candidate, sample)
}

#[test]
fn a_spawn_that_fails_keeps_its_kind_and_the_warden_is_idle_again() {
    const ENOENT: i32 = 2;
    const ENOEXEC: i32 = 8;
    const EACCES: i32 = 13;
    const ENOTDIR: i32 = 20;
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let at = |candidates: &[&[u8]], cwd: &[u8]| {
        Program::new([b"x".as_slice()], [], candidates.iter().copied(), cwd)
    };
    let (step, errno, ..) = failure(&tree, &at(&[b"/nowhere/x"], b"/"));
    assert_eq!((step, errno), (FailedStep::Exec, ENOENT));
    let (step, errno, candidate, _) = failure(&tree, &at(&[b"/nowhere/x", b"/etc/passwd"], b"/"));
    assert_eq!((step, errno, candidate), (FailedStep::Exec, EACCES, 1));
    let (step, errno, ..) = failure(&tree, &at(&[b"/bin/sh"], b"/nowhere"));
    assert_eq!((step, errno), (FailedStep::EnterCwd, ENOENT));
    let (step, errno, ..) = failure(&tree, &at(&[b"/bin/sh"], b"/etc/passwd"));
    assert_eq!((step, errno), (FailedStep::EnterCwd, ENOTDIR));

    let directory = tempfile::tempdir().expect("a directory");
    let binary = directory.path().join("binary");
    std::fs::write(&binary, b"\x7fnot\0a program\n").expect("a file");
    std::fs::set_permissions(&binary, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    let path = binary.to_str().expect("an ordinary name").as_bytes();
    let (step, errno, _, sample) = failure(&tree, &at(&[path], b"/"));
    assert_eq!((step, errno), (FailedStep::Exec, ENOEXEC));
    assert!(sample.starts_with(b"\x7fnot\0"));

    // It is none the worse for it.
    let _target = tree.run("exit 3", LONG);
    assert_eq!(tree.exited().code, 3);
    tree.gone();
}

#[test]
fn arguments_that_fit_into_no_packet_arrive_all_the_same() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let long = vec![b'x'; 120_000];
    let program = Program::new(
        [b"sh".as_slice(), b"-c", b"echo ${#1} ${#LONG}", b"sh", &long],
        [(b"LONG".as_slice(), long.as_slice())],
        [b"/bin/sh".as_slice()],
        b"/",
    );
    let target = tree.run_program(&program, LONG);
    assert_eq!(target.rest(), "120000 120000\n");
    assert_eq!(tree.exited().code, 0);
    tree.gone();
}

#[test]
fn the_control_descriptor_is_the_targets_third_after_the_standard_ones() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let [output, control] = [(); 2].map(|()| pipe::pipe().expect("a pipe"));
    let launch = Launch {
        stdio: [
            Descriptor::Inherit,
            Descriptor::From(output.writer.as_fd()),
            Descriptor::Merge,
        ],
        control: Some(control.writer.as_fd()),
        session: Session::Own,
        cgroup: None,
        join_cgroup: None,
    };
    let program = shell("echo control >&3; echo error >&2; echo output");
    warden::launch(&tree.link, &program, launch, LONG).expect("the launch can be sent");
    drop((output.writer, control.writer));
    assert!(matches!(tree.next(), Said::Running(..)));
    let read = |end| std::io::read_to_string(std::fs::File::from(end)).expect("it can be read");
    assert_eq!(read(control.reader), "control\n");
    assert_eq!(read(output.reader), "error\noutput\n");
    tree.exited();
    tree.gone();
}

#[test]
fn an_argument_that_is_too_long_fails_as_it_does_without_a_warden() {
    const E2BIG: i32 = 7;
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let long = vec![b'x'; 200_000];
    let program = Program::new([b"true".as_slice(), &long], [], [b"/bin/true".as_slice()], b"/");
    let (step, errno, ..) = failure(&tree, &program);
    assert_eq!((step, errno), (FailedStep::Exec, E2BIG));
}

#[test]
fn the_tree_is_gone_when_its_last_orphan_has_ended_and_not_before() {
    let directory = tempfile::tempdir().expect("a directory");
    let fifo = directory.path().join("fifo");
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let script = format!(
        "mkfifo {0}; (setsid sh -c 'echo $$; read line < {0}' &); exit 0",
        fifo.display()
    );
    let mut target = tree.run(&script, LONG);
    let orphan = target.member();
    assert_eq!(tree.exited().code, 0);
    assert!(runs(&orphan));
    assert!(
        !tree.link.wait(Duration::from_millis(50)).expect("a wait"),
        "nothing is said of a tree that has a member"
    );
    tell(&fifo);
    tree.gone();
    assert!(pidfd::is_reaped(&orphan));
}

#[test]
fn a_warden_is_used_again_for_the_next_tree() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    for code in 0..20 {
        let _target = tree.run(&format!("exit {code}"), LONG);
        assert_eq!(tree.exited().code, code);
        tree.gone();
    }
    let before = descriptors(tree.warden);
    for _ in 0..20 {
        let _target = tree.run("sleep 1000 & exec sleep 1000", LONG);
        tree.kill();
    }
    assert_eq!(descriptors(tree.warden), before);
}

fn descriptors(pid: u32) -> Vec<String> {
    let mut links: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("the warden is there")
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .map(|link| link.display().to_string())
        .collect();
    links.sort();
    links
}

#[test]
fn a_target_that_is_killed_is_told_as_ended_by_the_signal() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let target = tree.run_program(&shell("exec sleep 1000"), LONG);
    kill(target.pid);
    assert_eq!(tree.exited().signal, 9);
    tree.gone();
}

#[test]
fn a_signal_that_no_process_knows_is_a_broken_hosts() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let warden = open(tree.warden);
    tree.send(&ToTree::Signal { number: 65 });
    crate::fixture::ends(&warden);
}
