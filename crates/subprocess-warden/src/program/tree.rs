//! The tree warden: parent of one target at a time, and of every orphan of its tree.
//!
//! It starts the target, tells the host what becomes of it, and signals the members as the host says. When the host is gone,
//! or gives the tree up, or when the runtime warden is gone, it ends the tree by itself, and then itself.

use crate::abi::errno::EAGAIN;
use crate::abi::flag::{POLLIN, SIGKILL};
use crate::descriptor::{self, Descriptor, FIRST_OTHER, HOST, SOCKET};
use crate::exec_watch::ExecWatch;
use crate::ladder::{Ladder, Step};
use crate::launch::{Launching, NoChild, Outcome};
use crate::link::{self, Arrived, Received};
use crate::members::Members;
use crate::poll::{self, Polled, earlier};
use crate::process::{self, End, Waited};
use crate::protocol::{Exited, Failed, FromTree, HANDSHAKE, Launch, PACKET, Packet, ToTree};

/// Milliseconds that a child has for its exec before a thread is made to wait for it. Nearly all take less than one.
const QUICK_EXEC: u64 = 20;
/// Children that are waited for before it turns to other things: a tree can make orphans as fast as they are taken leave
/// of.
const ENDS: usize = 1024;
/// The highest signal.
const SIGNALS: u32 = 64;

/// What is known of the tree.
#[derive(Debug)]
struct Tree {
    target: u32,
    /// Milliseconds between the steps when it is ended without the host.
    grace: u64,
    /// Until the target runs its program, or has failed to.
    launching: Option<Launching>,
    /// The target, until the host has it.
    pidfd: Option<Descriptor>,
    /// While the exec takes long.
    exec_watch: Option<ExecWatch>,
    /// When the host is told that it does.
    patience_ends: Option<u64>,
    /// The host was told that there is no target.
    failed: bool,
    user: u64,
    system: u64,
}

struct Warden<'memory> {
    itself: u32,
    runtime: Descriptor,
    child_signals: Descriptor,
    members: &'memory mut Members,
    reply: &'memory mut Packet,
    tree: Option<Tree>,
    ladder: Ladder,
    /// Nobody is listened to any more.
    alone: bool,
    /// There may be more to be done that nothing will wake it for.
    again: bool,
}

/// Begins in a process that the runtime warden has just forked, whose [`SOCKET`] is still the runtime's own.
pub fn run(
    socket: Descriptor,
    runtime: u32,
    stay_in_session: bool,
    members: &mut Members,
    reply: &mut Packet,
    packet: &mut [u8; PACKET],
) -> ! {
    let Ok(mut warden) = begin(socket, runtime, stay_in_session, members, reply) else {
        // The host sees the socket hang up.
        process::exit(1)
    };
    let idle = FromTree::Idle { pid: warden.itself };
    warden.say(&idle, None);
    loop {
        warden.turn(packet);
    }
}

fn begin<'memory>(
    socket: Descriptor,
    runtime: u32,
    stay_in_session: bool,
    members: &'memory mut Members,
    reply: &'memory mut Packet,
) -> Result<Warden<'memory>, i32> {
    descriptor::copy_to(socket.into_number(), SOCKET)?;
    // Everything else of the runtime warden's, but for the host's pidfd.
    descriptor::close_others();
    process::stand_apart(stay_in_session);
    process::adopt_orphans()?;
    let parent = process::open(runtime)?;
    // The number was the runtime warden's if that is the parent still: a parent that has ended is another one.
    if process::parent_pid() != runtime {
        return Err(EAGAIN);
    }
    members.begin();
    Ok(Warden {
        itself: process::own_pid(),
        runtime: parent,
        child_signals: process::child_signals()?,
        members,
        reply,
        tree: None,
        ladder: Ladder::new(),
        alone: false,
        again: false,
    })
}

impl Warden<'_> {
    /// Waits for something to happen, and does what it asks for.
    fn turn(&mut self, packet: &mut [u8; PACKET]) {
        let exec = self.tree.as_ref().and_then(|tree| tree.exec_watch.as_ref());
        let heard = |number: i32| if self.alone { -1 } else { number };
        let mut polled = [
            Polled::new(self.child_signals.number(), POLLIN),
            Polled::new(exec.map_or(-1, |watch| watch.event().number()), POLLIN),
            Polled::new(heard(SOCKET), POLLIN),
            Polled::new(heard(HOST), POLLIN),
            Polled::new(heard(self.runtime.number()), POLLIN),
        ];
        let now = poll::now();
        let patience = self.tree.as_ref().and_then(|tree| tree.patience_ends);
        let wait = if self.again {
            Some(0)
        } else {
            earlier(self.ladder.wait(now), patience.map(|end| end.saturating_sub(now)))
        };
        poll::wait(&mut polled, wait);
        let [child_signals, exec, socket, host, runtime] = polled.map(Polled::is_ready);

        if exec {
            self.settle();
        }
        self.be_patient(poll::now());
        if child_signals {
            // One at most is pending, whatever it stands for.
            let _ = descriptor::read(self.child_signals.number(), &mut [0; 128]);
        }
        if child_signals || self.again {
            self.again = false;
            self.reap();
        }
        if (host || runtime) && self.tree.is_none() {
            // Not even a launch that has come is read: its tree would be ended at once, and unread it goes to another warden.
            process::exit(0);
        }
        // A packet that came before the host's end is read first: it may say to end the tree otherwise than by the ladder.
        if socket {
            self.listen(packet);
        }
        if host || runtime {
            self.go_on_alone();
        }
        match self.ladder.climb(poll::now()) {
            Some(Step::Ask) => self.members.ask(),
            Some(Step::Kill) => self.members.forget(),
            None => {}
        }
        if self.ladder.is_killing() && self.tree.is_some() {
            self.again |= self.members.kill();
        }
    }

    fn listen(&mut self, packet: &mut [u8; PACKET]) {
        let (bytes, arrived) = match link::receive(packet) {
            Received::Packet(bytes, arrived) => (bytes, arrived),
            Received::Nothing => return,
            Received::HungUp => return self.go_on_alone(),
        };
        let now = poll::now();
        match ToTree::decode(bytes) {
            Ok(ToTree::Launch(launch)) if self.tree.is_none() => self.launch(&launch, arrived),
            // What comes for a tree that has just ended is for nobody.
            Ok(ToTree::Ask | ToTree::AskOthers | ToTree::Kill) if self.tree.is_none() => {}
            Ok(ToTree::Ask) => {
                self.ladder.asked(now);
                self.members.ask();
            }
            Ok(ToTree::AskOthers) => self.members.ask_others(),
            Ok(ToTree::Kill) => {
                // Those that were killed before and are still there are killed again: they may have become others' since,
                // and killable.
                self.members.forget();
                self.ladder.killed();
            }
            Ok(ToTree::Signal {
                number: number @ 1..=SIGNALS,
            }) => {
                if self.tree.is_some() {
                    self.members.signal(number as i32);
                }
            }
            Ok(ToTree::Abandon | ToTree::Launch(_) | ToTree::Signal { .. }) | Err(_) => self.go_on_alone(),
        }
    }

    fn launch(&mut self, launch: &Launch<'_>, arrived: Arrived) {
        match Launching::start(launch, arrived) {
            Ok((launching, pidfd)) => {
                let target = launching.pid();
                self.members.set_target(target);
                self.tree = Some(Tree {
                    target,
                    grace: launch.grace.into(),
                    launching: Some(launching),
                    pidfd: Some(pidfd),
                    exec_watch: None,
                    patience_ends: None,
                    failed: false,
                    user: 0,
                    system: 0,
                });
                self.watch_exec();
            }
            Err(NoChild::Refused(errno)) => {
                self.say(&no_child(errno), None);
                self.be_idle();
            }
            Err(NoChild::Malformed) => self.go_on_alone(),
        }
    }

    /// Waits for the exec, here if it is quick and elsewhere if it is not.
    fn watch_exec(&mut self) {
        let Some(tree) = &mut self.tree else { return };
        let Some(launching) = &tree.launching else { return };
        if launching.wait(QUICK_EXEC) {
            return self.settle();
        }
        // SAFETY: `settle` drops the watch before the launch, whose memory has the word.
        match unsafe { ExecWatch::start(&raw const launching.report().alive) } {
            Ok(watch) => {
                tree.exec_watch = Some(watch);
                let left = u64::from(HANDSHAKE).saturating_sub(QUICK_EXEC);
                tree.patience_ends = Some(poll::now().saturating_add(left));
            }
            Err(errno) => {
                // Nothing would tell what becomes of it, so it is not to become anything.
                tree.failed = true;
                let _ = process::signal_child(tree.target, SIGKILL);
                self.say(&no_child(errno), None);
            }
        }
    }

    /// Tells the host that the exec takes long, once it has.
    fn be_patient(&mut self, now: u64) {
        let Some(tree) = &mut self.tree else { return };
        if tree.patience_ends.is_none_or(|end| now < end) {
            return;
        }
        tree.patience_ends = None;
        let target = tree.target;
        let pidfd = tree.pidfd.take();
        self.say(&FromTree::Cloned { pid: target }, pidfd.as_ref());
        if let Some(tree) = &mut self.tree {
            // It goes with the next word too.
            tree.pidfd = pidfd;
        }
    }

    /// Tells the host how the launch came out, once the child has left this process's memory.
    fn settle(&mut self) {
        let Some(tree) = &mut self.tree else { return };
        if !tree.launching.as_ref().is_some_and(Launching::has_left) {
            return;
        }
        tree.exec_watch = None;
        tree.patience_ends = None;
        let pidfd = tree.pidfd.take();
        let Some(launching) = tree.launching.take() else {
            return;
        };
        if tree.failed {
            return;
        }
        let outcome = launching.outcome();
        tree.failed = matches!(outcome, Outcome::Failed { .. });
        let pidfd = if tree.failed { None } else { pidfd };
        let target = tree.target;
        self.say(&outcome.message(target), pidfd.as_ref());
    }

    /// Takes leave of the children that have ended.
    fn reap(&mut self) {
        for _ in 0..ENDS {
            match process::wait() {
                Waited::Ended(end) => self.ended(&end),
                Waited::Alive => return,
                Waited::Childless => return self.emptied(),
            }
        }
        self.again = true;
    }

    fn ended(&mut self, end: &End) {
        self.members.ended(end.pid);
        if self.tree.as_ref().is_some_and(|tree| tree.target == end.pid) {
            // A child that has ended has left this memory too.
            self.settle();
        }
        let Some(tree) = &mut self.tree else { return };
        tree.user = tree.user.saturating_add(end.user);
        tree.system = tree.system.saturating_add(end.system);
        if tree.target == end.pid {
            // The number is free.
            tree.target = 0;
            if !tree.failed {
                self.say(&FromTree::Exited(exited(end)), None);
            }
        }
    }

    /// No child is left, so no member is: each is a child or has one for an ancestor.
    fn emptied(&mut self) {
        let Some(tree) = self.tree.take() else { return };
        self.members.forget();
        self.ladder = Ladder::new();
        if !tree.failed {
            let gone = FromTree::Gone {
                user: tree.user,
                system: tree.system,
            };
            self.say(&gone, None);
        }
        self.be_idle();
    }

    fn be_idle(&mut self) {
        if self.alone {
            process::exit(0);
        }
        self.say(&FromTree::Idle { pid: self.itself }, None);
    }

    /// Ends the tree without the host, and then itself.
    fn go_on_alone(&mut self) {
        self.alone = true;
        match &self.tree {
            None => process::exit(0),
            Some(tree) => self.ladder.go_on_alone(tree.grace),
        }
    }

    /// Tells the host. One that cannot be told is gone.
    fn say(&mut self, message: &FromTree<'_>, descriptor: Option<&Descriptor>) {
        self.reply.clear();
        let said = message
            .encode(self.reply)
            .map_err(|_| EAGAIN)
            .and_then(|()| link::send(self.reply.bytes(), descriptor));
        if said.is_err() && !self.alone {
            self.go_on_alone();
        }
    }
}

fn no_child(errno: i32) -> FromTree<'static> {
    FromTree::Failed(Failed {
        step: 0,
        errno,
        candidate: 0,
        mode: 0,
        sample: &[],
    })
}

/// Decodes a status (wait(2)).
fn exited(end: &End) -> Exited {
    let signal = end.status & 0x7f;
    Exited {
        code: if signal == 0 { end.status >> 8 & 0xff } else { 0 },
        signal,
        core_dumped: signal != 0 && end.status & 0x80 != 0,
        user: end.user,
        system: end.system,
        peak_memory: end.peak_memory,
    }
}

const _: () = assert!(
    FIRST_OTHER > HOST && HOST > SOCKET,
    "the numbers that are kept come first"
);
