//! The members of trees: all that descends from this process. How they are found, and how they are signalled.
//!
//! Every orphan among them becomes a child of this process, which is a subreaper (prctl(2)), so none can leave: neither by a
//! session of its own nor by a parent that ends. What moves is only where in the table a member stands, and that while the
//! table is read. Three things hold all the same:
//!
//! * A number that is found may be somebody else's by the time it is used. That of a child of this process cannot, since
//!   only this process waits for its children, and does not while it is in here. Any other is opened first, and signalled
//!   through the descriptor once the line of its parents was followed up to this process while it was held.
//! * A process that was sent `SIGKILL` makes no more children (the kernel looks for it when it links a new process in,
//!   `copy_process` in kernel/fork.c). So all children of one that was killed are there to be found: in its own list or,
//!   once it has ended, in this process's.
//! * A member that is not found now is found later: what hides it is the end of its parent, which makes it an orphan, and of
//!   which this process hears sooner or later as the end of a child.

use crate::abi::errno::EPERM;
use crate::abi::flag::{SIGCONT, SIGKILL, SIGTERM};
use crate::descriptor::Descriptor;
use crate::pid_set::PidSet;
use crate::process;
use crate::table::{self, OwnChildren};

/// Looks that are taken before somebody is told: until one finds nobody new, but no more than these. Members of a tree that
/// never stops forking are born faster than they are found.
const LOOKS: usize = 8;
/// Passes over the children of this process before it turns to other things.
const PASSES: usize = 64;
/// Steps up the line of parents. A member further down is reached when those above it have ended.
const GENERATIONS: usize = 4096;
/// Parents that are held, for their other children.
const HELD: usize = 8;

/// What is known of the members.
#[derive(Debug)]
pub struct Members {
    itself: u32,
    /// This process's own list, where `/proc` can be trusted.
    children: Option<OwnChildren>,
    /// The child that is known without any list.
    target: u32,
    /// Children that are no members, nor are their descendants: other wardens.
    spared: PidSet,
    /// Members that were asked to end, until all is forgotten.
    asked: PidSet,
    /// Children of this process that were killed, until they are waited for.
    killed: PidSet,
    /// Who was found by a search.
    found: PidSet,
    /// Whose children are still to be looked for.
    unexplored: PidSet,
    /// Whose children one look has seen.
    explored: PidSet,
    held: [Option<(u32, Descriptor)>; HELD],
    next_held: usize,
}

impl Members {
    /// Those of nobody yet.
    pub const fn new() -> Self {
        Self {
            itself: 0,
            children: None,
            target: 0,
            spared: PidSet::new(),
            asked: PidSet::new(),
            killed: PidSet::new(),
            found: PidSet::new(),
            unexplored: PidSet::new(),
            explored: PidSet::new(),
            held: [const { None }; HELD],
            next_held: 0,
        }
    }

    /// Begins as those of the process that calls it. Whatever a process before it has known is forgotten; the descriptors
    /// that it had must be closed already.
    pub fn begin(&mut self) {
        if let Some(stale) = self.children.take() {
            stale.forget();
        }
        self.itself = process::own_pid();
        self.children = OwnChildren::open(self.itself);
        self.target = 0;
        self.spared.clear();
        self.forget();
    }

    /// Says which child is the target.
    pub const fn set_target(&mut self, pid: u32) {
        self.target = pid;
    }

    /// Says that a child is no member.
    pub fn spare(&mut self, pid: u32) {
        self.spared.insert(pid);
    }

    /// Says that a child was waited for, so that its number is free; and tells whether it was no member.
    pub fn ended(&mut self, pid: u32) -> bool {
        for set in [&mut self.asked, &mut self.killed, &mut self.unexplored] {
            set.remove(pid);
        }
        if self.target == pid {
            self.target = 0;
        }
        let spared = self.spared.contains(pid);
        self.spared.remove(pid);
        spared
    }

    /// Says that all members are gone, or that what was sent to them does not count any more.
    pub fn forget(&mut self) {
        for set in [
            &mut self.asked,
            &mut self.killed,
            &mut self.found,
            &mut self.unexplored,
            &mut self.explored,
        ] {
            set.clear();
        }
    }

    /// Tells whether there is any member, dead ones that were not waited for included.
    pub fn any(&self) -> bool {
        let mut any = self.target != 0;
        if let Some(children) = &self.children {
            children.each(&mut |pid| any |= !self.spared.contains(pid));
        }
        any
    }

    /// Tells whether there is a child that is a member and was not asked to end.
    pub fn any_unasked(&self) -> bool {
        let mut any = false;
        if let Some(children) = &self.children {
            children.each(&mut |pid| any |= !self.spared.contains(pid) && !self.asked.contains(pid));
        }
        any
    }

    /// Sends `SIGTERM` to every member that was not asked yet, and then `SIGCONT`, without which one that is stopped cannot
    /// act on it.
    pub fn ask(&mut self) {
        self.find();
        let mut from = 0;
        while let Some(pid) = self.found.next(from) {
            from = pid + 1;
            if self.asked.insert(pid) {
                self.send(pid, &[SIGTERM, SIGCONT]);
            }
        }
        self.let_go();
    }

    /// As [`ask`](Self::ask), but for the target, which is asked by the next one.
    pub fn ask_others(&mut self) {
        let target = self.target;
        let spared = self.asked.insert(target);
        self.ask();
        if spared {
            self.asked.remove(target);
        }
    }

    /// Sends a signal once to every member.
    pub fn signal(&mut self, number: i32) {
        self.find();
        let mut from = 0;
        while let Some(pid) = self.found.next(from) {
            from = pid + 1;
            self.send(pid, &[number]);
        }
        self.let_go();
    }

    /// Sends `SIGKILL` to every member that is there, and tells whether that is to be done again at once. Otherwise it is
    /// to be done when a child has ended, as long as there are any.
    ///
    /// The children of this process come first, over and over until there is no new one: members that do nothing but fork
    /// and end are always among them, and must not have the time to.
    pub fn kill(&mut self) -> bool {
        let Some(children) = &self.children else {
            // It may have been waited for; then this is 0, and is nobody.
            let _ = process::signal_child(self.target, SIGKILL);
            return false;
        };
        let mut new = true;
        for _ in 0..PASSES {
            new = false;
            children.each(&mut |pid| {
                if self.spared.contains(pid) || self.killed.contains(pid) {
                    return;
                }
                match process::signal_child(pid, SIGKILL) {
                    Ok(()) => {
                        self.killed.insert(pid);
                        self.unexplored.insert(pid);
                        new = true;
                    }
                    // It runs as somebody else (a setuid program), and goes on; what it has started may not. It is not
                    // marked, so that this is looked for again each time.
                    Err(EPERM) => {
                        self.unexplored.insert(pid);
                    }
                    Err(_) => {}
                }
            });
            if !new {
                break;
            }
        }
        if new {
            return true;
        }
        self.found.clear();
        self.explore();
        let mut from = 0;
        while let Some(pid) = self.found.next(from) {
            from = pid + 1;
            self.send(pid, &[SIGKILL]);
        }
        self.let_go();
        false
    }

    /// Finds all members before any of them is told: one that acts on a signal while others are looked for moves the
    /// children it has, and makes some that were not there when the signal was sent.
    fn find(&mut self) {
        self.found.clear();
        self.unexplored.clear();
        let Some(children) = &self.children else {
            self.found.insert(self.target);
            return;
        };
        for _ in 0..LOOKS {
            let mut new = false;
            children.each(&mut |pid| {
                if !self.spared.contains(pid) {
                    new |= self.found.insert(pid);
                    self.unexplored.insert(pid);
                }
            });
            new |= explore(&mut self.unexplored, &mut self.explored, &mut self.found);
            if !new {
                return;
            }
        }
    }

    fn explore(&mut self) {
        explore(&mut self.unexplored, &mut self.explored, &mut self.found);
    }

    /// Sends signals to a process that was found, if it is a member.
    fn send(&mut self, pid: u32, signals: &[i32]) {
        let Ok(process) = process::open(pid) else {
            // It is gone; or there is no descriptor to be had, and of the members only the target is known for certain.
            if pid == self.target {
                for &signal in signals {
                    let _ = process::signal_child(pid, signal);
                }
            }
            return;
        };
        if self.is_member(pid, &process) {
            for &signal in signals {
                // It may end at any time, or refuse.
                let _ = process::signal(&process, signal);
            }
        }
    }

    /// Tells whether an opened process, whose number was `pid` when it was opened, descends from this one and from no other
    /// warden.
    fn is_member(&mut self, pid: u32, process: &Descriptor) -> bool {
        // The parent, which is held for the sake of its other children, and the ancestor that was reached.
        let mut first: Option<(u32, Descriptor)> = None;
        let mut last: Option<(u32, Descriptor)> = None;
        for _ in 0..GENERATIONS {
            let (number, child) = match last.as_ref().or(first.as_ref()) {
                Some((number, ancestor)) => (*number, ancestor),
                None => (pid, process),
            };
            let Some(parent) = table::parent(child, number) else {
                return false;
            };
            if parent == self.itself && self.spared.contains(number) {
                return false;
            }
            if parent == self.itself || self.holds(parent) {
                if let Some(place) = self.held.get_mut(self.next_held)
                    && first.is_some()
                {
                    *place = first;
                    self.next_held = (self.next_held + 1) % HELD;
                }
                return true;
            }
            // 0, where the parent is in another pid namespace, is refused.
            let Ok(opened) = process::open(parent) else {
                return false;
            };
            // The number was the parent's when it was read. If it is so still, and if what was opened still has it, then what
            // was opened is the parent. Otherwise the parent has ended meanwhile, and there is another one now.
            if table::parent(child, number) == Some(parent) && process::has_its_number(&opened) {
                let place = if first.is_none() { &mut first } else { &mut last };
                *place = Some((parent, opened));
            }
        }
        false
    }

    /// Tells whether a number, read just now as somebody's parent, is a held member's.
    fn holds(&self, pid: u32) -> bool {
        // It was opened before the number was read, and has it still.
        self.held
            .iter()
            .flatten()
            .any(|(number, process)| *number == pid && process::has_its_number(process))
    }

    fn let_go(&mut self) {
        self.held = [const { None }; HELD];
    }
}

/// Finds the descendants of those that are unexplored, and tells whether any is new.
fn explore(unexplored: &mut PidSet, explored: &mut PidSet, found: &mut PidSet) -> bool {
    let mut new = false;
    explored.clear();
    // It ends, since nobody is explored twice.
    while let Some(pid) = unexplored.take() {
        if explored.insert(pid) {
            table::children(pid, &mut |child| {
                new |= found.insert(child);
                unexplored.insert(child);
            });
        }
    }
    new
}
