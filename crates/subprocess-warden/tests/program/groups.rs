//! The control group of a host that has ended.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};

use dsh_subprocess_sys::cgroup::{self, Parent};
use dsh_subprocess_sys::kernel::Kernel;
use dsh_subprocess_sys::spawn::{self, Descriptor, Launch, Session, Started};
use dsh_subprocess_sys::warden::GraceTable;
use dsh_subprocess_sys::{pidfd, pipe};
use dsh_subprocess_warden::protocol::{ASKED, ToRuntime};

use crate::fixture::{BOUND, ENOUGH, LONG, Runtime, WAIT, ends, milliseconds, open, runs, shell};

/// A host's group, with what it has told a runtime warden of it.
struct Group {
    parent: Parent,
    graces: GraceTable,
    runtime: Runtime,
    warden: OwnedFd,
}

impl Group {
    fn new(name: &str) -> Self {
        let name = format!("dsh-test-warden-{}-{name}", std::process::id());
        let below = cgroup::own_directory().expect("a writable control group");
        let parent = Parent::create(&below, &name).expect("root may make one");
        let graces = GraceTable::new().expect("a table");
        // The default is not to be waited for: the leaves have graces of their own.
        let runtime = Runtime::start(ENOUGH);
        let directory = fs::File::open(parent.path()).expect("it is there");
        let path = parent.path().to_str().expect("an ordinary name").as_bytes();
        runtime.send(ToRuntime::Group(path), &[directory.as_fd(), graces.as_fd()]);
        let tree = runtime.tree();
        let warden = open(tree.runtime());
        Self {
            parent,
            graces,
            runtime,
            warden,
        }
    }

    /// Starts a script in a leaf, and waits until it says that it is ready.
    fn member(&self, leaf: &str, script: &str) -> (OwnedFd, BufReader<fs::File>) {
        if !self.parent.path().join(leaf).exists() {
            self.parent.make_leaf(leaf).expect("a leaf");
        }
        let directory = fs::File::open(self.parent.path().join(leaf)).expect("it is there");
        let pipe = pipe::pipe().expect("a pipe");
        let null = pipe::null_device().expect("the null device");
        let launch = Launch {
            stdio: [
                Descriptor::From(null.as_fd()),
                Descriptor::From(pipe.writer.as_fd()),
                Descriptor::Inherit,
            ],
            control: None,
            session: Session::Own,
            cgroup: Some(directory.as_fd()),
            join_cgroup: None,
        };
        let started = spawn::start(shell(script), launch, Kernel::get(), BOUND).expect("a child");
        let Started::Running(child) = started else {
            panic!("the shell runs: {started:?}")
        };
        let mut output = BufReader::new(fs::File::from(pipe.reader));
        let mut line = String::new();
        output.read_line(&mut line).expect("the output can be read");
        assert_eq!(line, "ready\n");
        (child.pidfd, output)
    }

    /// Waits until the warden has ended, and so has done all that it does.
    fn end(self) {
        ends(&self.warden);
        assert!(!self.parent.path().exists());
    }
}

fn left(mut output: BufReader<fs::File>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    while output.read_line(&mut line).expect("the output can be read") > 0 {
        lines.push(line.trim_end().to_owned());
        line.clear();
    }
    lines
}

fn stubborn() -> String {
    format!("trap 'echo TERM' TERM; echo ready; {WAIT}")
}

#[test]
fn as_root_the_members_of_a_dead_hosts_group_are_asked_then_killed_and_the_group_is_removed() {
    let mut group = Group::new("ends");
    group.graces.set(1, milliseconds(ENOUGH));
    let (leader, output) = group.member("t1", &stubborn());
    // A member that has made a group below its leaf.
    let nested = group.parent.path().join("t1/inner/most");
    fs::create_dir_all(&nested).expect("root may make groups");
    let (deep, deep_output) = group.member("t1/inner/most", &stubborn());
    group.runtime.host.kill();
    ends(&leader);
    ends(&deep);
    assert_eq!(left(output), ["TERM"]);
    assert_eq!(left(deep_output), ["TERM"]);
    group.end();
}

#[test]
fn as_root_each_leaf_of_a_dead_hosts_group_has_its_own_grace() {
    let mut group = Group::new("graces");
    group.graces.set(1, milliseconds(ENOUGH));
    group.graces.set(2, milliseconds(LONG));
    let (soon, _soon_output) = group.member("t1", &stubborn());
    let (late, mut late_output) = group.member("t2", &stubborn());
    // One that the table says nothing of has the runtime's.
    let (other, _other_output) = group.member("t3", &stubborn());
    group.runtime.host.kill();
    ends(&soon);
    ends(&other);
    let mut line = String::new();
    late_output.read_line(&mut line).expect("the output can be read");
    assert_eq!(line, "TERM\n");
    assert!(runs(&late));
    assert!(runs(&group.warden), "the warden waits for it");
    pidfd::send(&late, pidfd::Signal::KILL).expect("it can be killed");
    // What it has started is still there, until it ends or its time is over.
    group.parent.kill("t2").expect("the group can be killed");
    group.end();
}

#[test]
fn as_root_a_leaf_that_its_host_has_asked_is_not_asked_again() {
    let mut group = Group::new("asked");
    group.graces.set(1, milliseconds(ENOUGH) | ASKED);
    let (member, output) = group.member("t1", &stubborn());
    group.runtime.host.kill();
    ends(&member);
    assert_eq!(left(output), [""; 0]);
    group.end();
}

#[test]
fn as_root_of_a_leaf_whose_other_members_were_asked_only_the_one_that_was_not_is() {
    let mut group = Group::new("unasked");
    group.graces.set(1, milliseconds(ENOUGH));
    let (other, other_output) = group.member("t1", &stubborn());
    let script = format!("trap 'echo TERM' TERM; echo ready; echo $$; {WAIT}");
    let (target, mut output) = group.member("t1", &script);
    let mut number = String::new();
    output.read_line(&mut number).expect("the output can be read");
    let number = number.trim_end().parse().ok().and_then(pidfd::Pid::from_raw);
    group
        .graces
        .set_unasked(1, number.expect("the shell has a number"));
    group.runtime.host.kill();
    ends(&other);
    ends(&target);
    assert_eq!(left(other_output), [""; 0]);
    assert_eq!(left(output), ["TERM"]);
    group.end();
}

#[test]
fn as_root_an_empty_group_is_removed_with_its_leaves() {
    let mut group = Group::new("empty");
    for leaf in ["t1", "t2", "t3"] {
        group.parent.make_leaf(leaf).expect("a leaf");
    }
    group.runtime.host.kill();
    group.end();
}
