//! The runtime warden: one for each runtime of the host, and parent of its tree wardens.
//!
//! While the host lives it makes tree wardens, and ends what one of them leaves behind that was killed: its orphans come
//! here. When the host is gone it ends all that the host owned by other means (the members of control groups), removes what
//! the host has registered, and goes when nothing is left.

use crate::abi::errno::EMFILE;
use crate::abi::flag::{POLLIN, POLLPRI};
use crate::descriptor::{self, Descriptor, HOST, SOCKET};
use crate::directories::Directories;
use crate::group::Group;
use crate::ladder::{Ladder, Step};
use crate::link::{self, Received};
use crate::members::Members;
use crate::memory::Memory;
use crate::pid_set::PidSet;
use crate::poll::{self, Polled, earlier};
use crate::process::{self, Waited};
use crate::protocol::{FromRuntime, Malformed, PACKET, Packet, ToRuntime, VERSION};
use crate::tree;

/// Children that are waited for before it turns to other things.
const ENDS: usize = 1024;
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each with a name"
)]
struct Warden<'memory> {
    child_signals: Descriptor,
    members: &'memory mut Members,
    directories: &'memory mut Directories,
    reply: &'memory mut Packet,
    scratch: &'memory mut PidSet,
    stay_in_session: bool,
    /// Milliseconds between the steps, for what has no grace of its own. `None` before the host has said hello.
    grace: Option<u64>,
    group: Option<Group>,
    /// For the orphans of tree wardens that were killed.
    orphans: Ladder,
    childless: bool,
    host_is_gone: bool,
    /// There may be more to be done that nothing will wake it for.
    again: bool,
}

/// Begins in a process whose [`SOCKET`] leads to the host.
pub fn run(stay_in_session: bool, memory: &mut Memory) -> ! {
    let Memory {
        packet,
        reply,
        members,
        directories,
        scratch,
    } = memory;
    process::stand_apart(stay_in_session);
    process::set_name(c"dsh-warden");
    process::raise_descriptor_limit();
    let begun = process::adopt_orphans()
        // The number is taken until the host has sent its pidfd.
        .and_then(|()| descriptor::copy_to(0, HOST))
        .and_then(|()| process::child_signals());
    let Ok(child_signals) = begun else {
        // The host sees the socket hang up.
        process::exit(1)
    };
    members.begin();
    let mut warden = Warden {
        child_signals,
        members,
        directories,
        reply,
        scratch,
        stay_in_session,
        grace: None,
        group: None,
        orphans: Ladder::new(),
        childless: true,
        host_is_gone: false,
        again: false,
    };
    loop {
        warden.turn(packet);
    }
}

impl Warden<'_> {
    /// Waits for something to happen, and does what it asks for.
    fn turn(&mut self, packet: &mut [u8; PACKET]) {
        let now = poll::now();
        let group_wait = self.end_group(now);
        if self.host_is_gone && self.childless && self.group.is_none() {
            // Last, since the trees have used them. The descriptors of the records, and so the locks on them, end with this
            // process.
            self.directories.remove();
            process::exit(0);
        }
        let events = self.group.as_ref().and_then(Group::events);
        let mut polled = [
            Polled::new(self.child_signals.number(), POLLIN),
            Polled::new(if self.host_is_gone { -1 } else { SOCKET }, POLLIN),
            Polled::new(
                if self.host_is_gone || self.grace.is_none() {
                    -1
                } else {
                    HOST
                },
                POLLIN,
            ),
            Polled::new(events.map_or(-1, Descriptor::number), POLLPRI),
        ];
        let wait = if self.again {
            Some(0)
        } else {
            earlier(self.orphans.wait(now), group_wait)
        };
        poll::wait(&mut polled, wait);
        let [child_signals, socket, host, _] = polled.map(Polled::is_ready);

        if child_signals {
            // One at most is pending, whatever it stands for.
            let _ = descriptor::read(self.child_signals.number(), &mut [0; 128]);
        }
        if child_signals || self.again {
            self.again = false;
            self.reap();
        }
        // What the host has sent before its end is read first: it says what is to be removed.
        if socket {
            self.listen(packet);
        } else if host {
            self.host_has_ended();
        }
        if self.orphans.climb(poll::now()) == Some(Step::Ask) {
            self.members.ask();
        }
        if self.orphans.is_killing() {
            self.again |= self.members.kill();
        }
    }

    fn listen(&mut self, packet: &mut [u8; PACKET]) {
        let (bytes, mut arrived) = match link::receive(packet) {
            Received::Packet(bytes, arrived) => (bytes, arrived),
            Received::Nothing => return,
            Received::HungUp => return self.host_has_ended(),
        };
        let Ok(message) = ToRuntime::decode(bytes) else {
            return self.host_has_ended();
        };
        let taken = match message {
            ToRuntime::Hello { version, grace } if self.grace.is_none() => arrived
                .take()
                .and_then(|host| descriptor::copy_to(host.number(), HOST).map_err(|_| Malformed))
                .map(|()| {
                    // The host refuses a version that is not its own, by hanging up.
                    if version == VERSION {
                        self.grace = Some(grace.into());
                    }
                    self.say(FromRuntime::Ready {
                        version: VERSION,
                        pid: process::own_pid(),
                    });
                }),
            ToRuntime::Hello { .. } => Err(Malformed),
            // Nothing may come before the hello.
            _ if self.grace.is_none() => Err(Malformed),
            ToRuntime::Tree if arrived.lost => {
                self.say(FromRuntime::NoTree { errno: EMFILE });
                return;
            }
            // There was no room for the descriptors in the system. The host's record names all of this, so the next start
            // of a host removes it.
            ToRuntime::Group(_) | ToRuntime::Directory(_) | ToRuntime::Record(_) if arrived.lost => return,
            ToRuntime::Tree => match arrived.take() {
                Ok(socket) => return self.make_tree_warden(socket, packet),
                Err(malformed) => Err(malformed),
            },
            ToRuntime::Group(path) if self.group.is_none() => arrived
                .take()
                .and_then(|group| Group::new(path, group, arrived.take()?))
                .map(|group| self.group = Some(group)),
            ToRuntime::Group(_) => Err(Malformed),
            ToRuntime::Directory(path) => arrived
                .take()
                .and_then(|directory| self.directories.add(path, directory, false)),
            ToRuntime::Record(path) => arrived
                .take()
                .and_then(|record| self.directories.add(path, record, true)),
            ToRuntime::Forget(path) => {
                self.directories.forget(path);
                Ok(())
            }
            ToRuntime::Goodbye => return self.host_has_ended(),
        };
        if taken.and_then(|()| arrived.end()).is_err() {
            self.host_has_ended();
        }
    }

    /// Forks. The tree warden begins with what this process has in memory, and makes it its own.
    fn make_tree_warden(&mut self, socket: Descriptor, packet: &mut [u8; PACKET]) {
        let itself = process::own_pid();
        match process::fork() {
            Ok(0) => tree::run(
                socket,
                itself,
                self.stay_in_session,
                self.members,
                self.reply,
                packet,
            ),
            Ok(pid) => {
                // Known before it can be waited for, since only this thread waits.
                self.members.spare(pid);
                self.childless = false;
            }
            Err(errno) => self.say(FromRuntime::NoTree { errno }),
        }
    }

    /// Takes leave of the children that have ended.
    fn reap(&mut self) {
        let mut a_warden_ended = false;
        for _ in 0..ENDS {
            match process::wait() {
                Waited::Ended(end) => a_warden_ended |= self.members.ended(end.pid),
                Waited::Alive => return self.look_for_orphans(a_warden_ended),
                Waited::Childless => {
                    self.childless = true;
                    self.members.forget();
                    self.orphans = Ladder::new();
                    return;
                }
            }
        }
        self.again = true;
        self.look_for_orphans(a_warden_ended);
    }

    /// A tree warden ends by itself when its tree is empty. If there is somebody left, it was killed, and they became this
    /// process's children before its end was told.
    fn look_for_orphans(&mut self, a_warden_ended: bool) {
        if a_warden_ended && self.members.any_unasked() {
            self.orphans.restart_alone(self.grace.unwrap_or(0));
        } else if self.orphans.has_begun() && !self.members.any() {
            self.members.forget();
            self.orphans = Ladder::new();
        }
    }

    fn host_has_ended(&mut self) {
        if self.host_is_gone {
            return;
        }
        self.host_is_gone = true;
        // A host that is still there, and broken, is told.
        descriptor::close(SOCKET);
        if let Some(group) = &mut self.group {
            group.ask(poll::now(), self.scratch);
        }
    }

    /// Goes on with the end of the group, and returns the milliseconds until there is more to do.
    fn end_group(&mut self, now: u64) -> Option<u64> {
        if !self.host_is_gone {
            return None;
        }
        let group = self.group.as_ref()?;
        let (is_empty, wait) = group.kill(now, self.grace.unwrap_or(0), self.scratch);
        if is_empty {
            group.remove();
            self.group = None;
        }
        wait
    }

    /// Tells the host. One that cannot be told is gone.
    fn say(&mut self, message: FromRuntime) {
        self.reply.clear();
        let said = message.encode(self.reply).is_ok() && link::send(self.reply.bytes(), None).is_ok();
        if !said {
            self.host_has_ended();
        }
    }
}
