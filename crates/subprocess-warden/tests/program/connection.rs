//! What is no packet of the protocol, and what a warden holds.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd;

use dsh_subprocess_sys::kernel::Kernel;
use dsh_subprocess_sys::pidfd::Pid;
use dsh_subprocess_sys::spawn::{Descriptor, Launch, Session};
use dsh_subprocess_sys::table;
use dsh_subprocess_sys::warden::{self, Link};
use dsh_subprocess_warden::protocol::{Packet, ToRuntime, ToTree, VERSION};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::fixture::{
    LONG, Runtime, SHORT, Said, Tree, WAIT, ends, hangs_up, open, send_to_runtime, shell, start_program,
};

fn send_bytes(link: &Link, bytes: &[u8]) {
    assert_eq!(send(link, bytes, SendFlags::NOSIGNAL), Ok(bytes.len()));
}

#[test]
fn a_packet_that_is_none_ends_the_connection_of_a_runtime() {
    for bytes in [
        &b"\0"[..],
        b"\xff",
        b"\x02\0",
        b"\x03no/absolute/path",
        &vec![1; 40_000],
    ] {
        let runtime = Runtime::start(LONG);
        let tree = runtime.tree();
        let warden = open(tree.runtime());
        send_bytes(&runtime.link, bytes);
        hangs_up(&runtime.link);
        drop(tree);
        ends(&warden);
    }
}

#[test]
fn a_packet_that_is_none_ends_the_tree_it_was_sent_for() {
    for bytes in [&b"\0"[..], b"\x01\x01\x02", b"\x02\x02", &vec![4; 40_000]] {
        let runtime = Runtime::start(LONG);
        let tree = runtime.tree();
        let mut target = tree.run("echo $$; exec sleep 1000", SHORT);
        let member = target.member();
        let warden = open(tree.warden);
        send_bytes(&tree.link, bytes);
        ends(&member);
        ends(&warden);
    }
}

#[test]
fn a_launch_without_its_descriptors_is_none() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let warden = open(tree.warden);
    let pipe = dsh_subprocess_sys::pipe::pipe().expect("a pipe");
    // What is sent as a launch, again, with a descriptor less.
    let (ours, theirs) = Link::pair().expect("a connection");
    let recorder = Tree {
        link: ours,
        warden: 0,
    };
    let _output = recorder.launch(&shell("exit 0"), LONG);
    let mut bytes = vec![0; dsh_subprocess_warden::protocol::PACKET];
    let length = Link::from(theirs)
        .receive(&mut bytes, &mut Vec::new())
        .expect("a packet")
        .expect("a packet is there");
    send_bytes(&tree.link, &bytes[..length]);
    ends(&warden);
    drop(pipe);
}

#[test]
fn a_second_launch_before_the_first_tree_is_gone_ends_it() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let target = tree.run("exec sleep 1000", SHORT);
    let _output = tree.launch(&shell("exit 0"), SHORT);
    ends(&target.pidfd);
    hangs_up(&tree.link);
}

#[test]
fn nothing_is_done_before_the_hello() {
    let link = start_program();
    let (ours, theirs) = Link::pair().expect("a connection");
    send_to_runtime(&link, ToRuntime::Tree, &[theirs.as_fd()]);
    drop(theirs);
    hangs_up(&link);
    hangs_up(&ours);
}

#[test]
fn a_hello_of_another_version_is_answered_with_this_one_and_nothing_more_is_done() {
    let link = start_program();
    let host = crate::fixture::StandIn::start();
    let hello = ToRuntime::Hello {
        version: VERSION + 1,
        grace: 0,
    };
    send_to_runtime(&link, hello, &[host.open().as_fd()]);
    let (ours, theirs) = Link::pair().expect("a connection");
    send_to_runtime(&link, ToRuntime::Tree, &[theirs.as_fd()]);
    drop(theirs);
    hangs_up(&link);
    hangs_up(&ours);
}

/// What a process's descriptors are, each kind once. A file without a name in the file system is its kind.
fn held(pid: u32) -> BTreeSet<String> {
    fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("the warden is there")
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .map(|link| {
            let link = link.display().to_string();
            // Pidfds are files of a kind of their own since Linux 6.9.
            if link.contains("pidfd") {
                "pidfd".to_owned()
            } else if link.starts_with("socket:") {
                "socket".to_owned()
            } else {
                link
            }
        })
        .collect()
}

#[test]
fn wardens_hold_what_was_sent_and_nothing_else_of_the_hosts() {
    let runtime = Runtime::start(LONG);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("an ordinary name");
    let opened = fs::File::open(path).expect("it is there");
    runtime.send(ToRuntime::Directory(path.as_bytes()), &[opened.as_fd()]);
    let tree = runtime.tree();
    let mut target = tree.run(&format!("echo ready; {WAIT}"), LONG);
    assert_eq!(target.line(), "ready");
    for (pid, sent) in [(tree.warden, None), (tree.runtime(), Some(path))] {
        let children = format!("/proc/{pid}/task/{pid}/children");
        let expected: BTreeSet<String> = ["/dev/null", "socket", "pidfd", "anon_inode:[signalfd]", &children]
            .into_iter()
            .chain(sent)
            .map(str::to_owned)
            .collect();
        assert_eq!(held(pid), expected);
    }
    let of_target = fs::read_dir(format!("/proc/{}/fd", target.pid)).expect("the target is there");
    assert_eq!(of_target.count(), 3, "what it was given");
    tree.kill();
}

#[test]
fn wardens_are_no_children_of_the_host_and_block_every_signal_that_can_be() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let pid = tree.runtime();
    assert_ne!(crate::fixture::parent_of(pid), std::process::id());
    for pid in [pid, tree.warden] {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the warden is there");
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|value| value.trim().to_owned())
        };
        // SIGKILL and SIGSTOP cannot be.
        assert_eq!(field("SigBlk:").as_deref(), Some("fffffffffffbfeff"));
        assert_eq!(field("SigIgn:").as_deref(), Some("0000000000000000"));
        assert_eq!(field("Name:").as_deref(), Some("dsh-warden"));
        // The leader of a session of its own.
        let line = fs::read(format!("/proc/{pid}/stat")).expect("the warden is there");
        let entry = table::parse_entry(&line).expect("a line of the table");
        assert_eq!(u32::try_from(entry.session), Ok(pid));
    }
}

#[test]
fn a_target_has_the_hosts_limits_and_file_creation_mask() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let target = tree.run("umask; ulimit -n; ulimit -H -n", LONG);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let text = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    let status = fs::read_to_string("/proc/thread-self/status").expect("this process has one");
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:\t"))
        .expect("Linux 4.7");
    let expected = format!("{mask}\n{}\n{}\n", text(limit.current), text(limit.maximum));
    assert_eq!(target.rest(), expected);
    tree.exited();
    tree.gone();
}

#[test]
fn a_warden_that_is_not_read_is_not_waited_for() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let warden = open(tree.warden);
    // Far more than a socket holds, of what has no answer.
    let mut packet = Packet::new();
    ToTree::Ask.encode(&mut packet).expect("it fits");
    let mut sent = 0;
    while sent < 10_000 {
        match tree.link.send(&packet, &[]) {
            Ok(()) => sent += 1,
            Err(Errno::AGAIN) => std::thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
    let _target = tree.run("exit 5", LONG);
    assert_eq!(tree.exited().code, 5);
    tree.gone();
    drop(tree);
    ends(&warden);
}

#[test]
fn wardens_of_children_that_stay_in_the_hosts_session_stay_there_in_groups_of_their_own() {
    let (link, _) = warden::start(Kernel::get(), Session::Host, LONG).expect("a warden");
    let (ours, theirs) = Link::pair().expect("a connection");
    send_to_runtime(&link, ToRuntime::Tree, &[theirs.as_fd()]);
    drop(theirs);
    let tree = Tree {
        link: ours,
        warden: 0,
    };
    let Said::Idle(pid) = tree.next() else {
        panic!("a tree warden begins idle")
    };
    let tree = Tree { warden: pid, ..tree };
    let launch = Launch {
        stdio: [Descriptor::Inherit; 3],
        control: None,
        session: Session::Host,
        cgroup: None,
        join_cgroup: None,
    };
    warden::launch(&tree.link, &shell("exec sleep 1000"), launch, LONG).expect("the launch can be sent");
    let Said::Running(target, _) = tree.next() else {
        panic!("the program runs")
    };
    let itself = table::this_process();
    for warden in [tree.warden, tree.runtime()].map(pid_of) {
        assert_eq!(table::session_of(warden), table::session_of(itself));
        assert_eq!(table::group_of(warden), Some(warden));
    }
    let target = pid_of(target);
    assert_eq!(table::session_of(target), table::session_of(itself));
    // A group whose leader is in another pid namespace cannot be joined by its number.
    assert_eq!(table::group_of(target), table::group_of(itself).or(Some(target)));
    tree.kill();
}

fn pid_of(pid: u32) -> Pid {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process's number")
}
