//! Whoever ends: the trees end too, and then the wardens.

use std::os::fd::AsFd;
use std::time::Duration;

use dsh_subprocess_warden::protocol::{ToRuntime, ToTree};

use crate::fixture::{
    ENOUGH, LONG, Runtime, Target, Tree, WAIT, WAIT_ONCE, ends, hangs_up, kill, open, runs,
};

/// A tree of three: a target, a member with a session of its own, and an orphan. All of them outlive `SIGTERM`, and say so.
fn stubborn_script() -> String {
    let wait = WAIT.replace('\'', "\"");
    let member = format!("setsid sh -c 'trap \"echo TERM\" TERM; echo $$; {wait}'");
    format!("trap 'echo TERM' TERM; {member} & ({member} &); {WAIT}")
}

struct Stubborn {
    target: Target,
    members: [std::os::fd::OwnedFd; 2],
}

fn stubborn(tree: &Tree, grace: Duration) -> Stubborn {
    let mut target = tree.run(&stubborn_script(), grace);
    let members = [target.member(), target.member()];
    Stubborn { target, members }
}

impl Stubborn {
    /// Waits for the end of all, and returns how often they were asked.
    fn ended(self) -> usize {
        ends(&self.target.pidfd);
        self.members.iter().for_each(ends);
        self.target.rest().lines().filter(|line| *line == "TERM").count()
    }
}

#[test]
fn a_host_that_hangs_up_is_gone() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let wardens = [open(tree.warden), open(tree.runtime())];
    let stubborn = stubborn(&tree, ENOUGH);
    drop(tree);
    assert_eq!(stubborn.ended(), 3);
    ends(&wardens[0]);
    assert!(runs(&wardens[1]));
    drop(runtime);
    ends(&wardens[1]);
}

#[test]
fn a_host_that_has_ended_is_gone_though_somebody_holds_its_sockets() {
    let mut runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let idle = runtime.tree();
    let wardens = [open(tree.warden), open(idle.warden), open(tree.runtime())];
    let stubborn = stubborn(&tree, ENOUGH);
    // This process has the sockets, and goes on having them.
    runtime.host.kill();
    assert_eq!(stubborn.ended(), 3);
    wardens.iter().for_each(ends);
    drop((tree, idle, runtime));
}

#[test]
fn the_members_of_a_tree_warden_that_is_killed_are_ended_while_the_host_lives() {
    let runtime = Runtime::start(ENOUGH);
    let tree = runtime.tree();
    let other = runtime.tree();
    let bystander = other.run("exec sleep 1000", LONG);
    let stubborn = stubborn(&tree, LONG);
    kill(tree.warden);
    hangs_up(&tree.link);
    assert_eq!(stubborn.ended(), 3);
    assert!(runs(&bystander.pidfd), "another tree is nobody's orphan");
    // And the runtime warden is none the worse for it.
    let next = runtime.tree();
    let _target = next.run("exit 4", LONG);
    assert_eq!(next.exited().code, 4);
    other.kill();
}

#[test]
fn the_trees_of_a_runtime_warden_that_is_killed_are_ended_by_their_own() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let idle = runtime.tree();
    let wardens = [open(tree.warden), open(idle.warden)];
    let stubborn = stubborn(&tree, ENOUGH);
    kill(tree.runtime());
    hangs_up(&runtime.link);
    assert_eq!(stubborn.ended(), 3);
    wardens.iter().for_each(ends);
}

#[test]
fn a_tree_that_was_asked_is_not_asked_again_when_the_host_ends() {
    let mut runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let mut stubborn = stubborn(&tree, ENOUGH);
    tree.send(&ToTree::Ask);
    for _ in 0..3 {
        assert_eq!(stubborn.target.line(), "TERM");
    }
    runtime.host.kill();
    assert_eq!(stubborn.ended(), 0);
}

#[test]
fn a_tree_that_is_given_up_is_ended_by_its_own_grace() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let warden = open(tree.warden);
    let stubborn = stubborn(&tree, ENOUGH);
    tree.send(&ToTree::Abandon);
    assert_eq!(stubborn.ended(), 3);
    ends(&warden);
}

#[test]
fn a_member_that_acts_on_being_asked_has_its_grace() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    // Were it killed before its grace is over, it would not say goodbye.
    let mut target = tree.run(&format!("trap 'echo goodbye; exit 0' TERM; {WAIT_ONCE}"), LONG);
    assert_eq!(target.line(), "ready");
    drop(tree);
    assert_eq!(target.line(), "goodbye");
}

#[test]
fn a_goodbye_ends_an_idle_runtime() {
    let runtime = Runtime::start(LONG);
    let tree = runtime.tree();
    let wardens = [open(tree.runtime()), open(tree.warden)];
    runtime.send(ToRuntime::Goodbye, &[]);
    drop(tree);
    wardens.iter().for_each(ends);
    hangs_up(&runtime.link);
}

#[test]
fn an_inner_runtime_ends_its_trees_itself_when_an_outer_one_asks() {
    let outer = Runtime::start(LONG);
    let tree = outer.tree();
    // The wardens of the inner runtime are members of the outer tree, and so is what they own.
    let itself = std::env::current_exe().expect("this program has a path");
    let itself = itself.to_str().expect("an ordinary name").as_bytes();
    let arguments = [itself, b"--exact", b"endings::inner_host", b"--nocapture"];
    let environment = [(INNER.as_bytes(), b"1".as_slice()), (b"PATH", b"/usr/bin:/bin")];
    let program = dsh_subprocess_sys::spawn::Program::new(arguments, environment, [itself], b"/");
    let mut target = tree.run_program(&program, LONG);
    let (mut members, mut ready) = (Vec::new(), false);
    while members.is_empty() || !ready {
        let line = target.line();
        ready |= line == "ready";
        if let Some(numbers) = line.strip_prefix("inner ") {
            members = numbers
                .split(' ')
                .map(|pid| open(pid.parse().expect("a number")))
                .collect();
        }
    }
    tree.send(&ToTree::Ask);
    // The inner host dies of it. The inner member has its grace, and says so.
    let lines = target.rest();
    assert!(lines.lines().any(|line| line == "goodbye"), "{lines}");
    members.iter().for_each(ends);
    assert_eq!(tree.exited().signal, 15);
    tree.gone();
}

/// The environment variable that makes [`inner_host`] what its name says.
const INNER: &str = "DSH_TEST_INNER_HOST";

/// The program of the test before: a host with a tree.
#[test]
fn inner_host() {
    if std::env::var_os(INNER).is_none() {
        return;
    }
    let kernel = dsh_subprocess_sys::kernel::Kernel::get();
    let session = dsh_subprocess_sys::spawn::Session::Own;
    let (link, _) = dsh_subprocess_sys::warden::start(kernel, session, LONG).expect("a warden");
    let (ours, theirs) = dsh_subprocess_sys::warden::Link::pair().expect("a connection");
    crate::fixture::send_to_runtime(&link, ToRuntime::Tree, &[theirs.as_fd()]);
    drop(theirs);
    let tree = Tree {
        link: ours,
        warden: 0,
    };
    let crate::fixture::Said::Idle(warden) = tree.next() else {
        panic!("a tree warden begins idle")
    };
    let script = format!("trap 'echo goodbye; exit 0' TERM; {WAIT_ONCE}");
    let program = crate::fixture::shell(&script);
    let launch = dsh_subprocess_sys::spawn::Launch {
        stdio: [
            dsh_subprocess_sys::spawn::Descriptor::Inherit,
            dsh_subprocess_sys::spawn::Descriptor::Inherit,
            dsh_subprocess_sys::spawn::Descriptor::Inherit,
        ],
        control: None,
        session,
        cgroup: None,
        join_cgroup: None,
    };
    dsh_subprocess_sys::warden::launch(&tree.link, &program, launch, LONG).expect("it can be sent");
    let crate::fixture::Said::Running(pid, _pidfd) = tree.next() else {
        panic!("the program runs")
    };
    // Past the line that the test harness prints without an end.
    println!("\ninner {warden} {pid}");
    std::thread::park();
}
