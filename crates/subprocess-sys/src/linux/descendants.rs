//! Who descends from a process, by the lists of children that the kernel keeps.

use std::collections::BTreeSet;
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::Pid;

use super::table::{entry, is_ours, session_of};

/// Lists the descendants of a process, zombies included and parents before their children. Empty where `/proc` is another
/// pid namespace's, or has no lists of children (`CONFIG_PROC_CHILDREN`). It has at most two descriptors open.
///
/// It is a picture taken while they run (`proc_pid_task(5)`): a process born or orphaned during the look may be missing,
/// so whoever must not miss one looks again until nothing is new, and checks a process's parent before it signals it.
///
/// # Errors
///
/// `EMFILE` and `ENFILE`: without a descriptor to look with, nobody would be found.
pub fn descendants(root: Pid) -> Result<Vec<Pid>, Errno> {
    if !is_ours() {
        return Ok(Vec::new());
    }
    let mut seen = BTreeSet::from([root.as_raw_nonzero()]);
    let mut found = Vec::new();
    let mut next = Some(root);
    let mut looked_at = 0;
    while let Some(parent) = next {
        for child in children(parent)? {
            if seen.insert(child.as_raw_nonzero()) {
                found.push(child);
            }
        }
        next = found.get(looked_at).copied();
        looked_at += 1;
    }
    Ok(found)
}

/// Ancestors that are asked for the orphans of a session.
const ANCESTORS: usize = 64;

/// Lists the members of the session that a process leads, itself first and zombies included: those of its descendants that are in
/// it, and the orphans among them, which are some ancestor's children by now, with their descendants. `None` where that cannot be
/// found out.
///
/// It takes as long as these are many, however many other processes there are. As [`descendants`] it is a picture taken while they
/// run; and a member is not seen whose parent has left the session and ended.
///
/// # Errors
///
/// As [`descendants`].
pub fn session_by_descent(leader: Pid) -> Result<Option<Vec<Pid>>, Errno> {
    if !lists_descendants() {
        return Ok(None);
    }
    let mut members = vec![leader];
    let within = |pid: &Pid| session_of(*pid) == Some(leader);
    members.extend(descendants(leader)?.into_iter().filter(within));
    let mut process = leader;
    for _ in 0..ANCESTORS {
        let parent = entry(process).and_then(|entry| Pid::from_raw(entry.parent));
        let Some(parent) = parent else { break };
        for orphan in children(parent)?.into_iter().filter(within) {
            if !members.contains(&orphan) {
                members.push(orphan);
                members.extend(descendants(orphan)?.into_iter().filter(within));
            }
        }
        process = parent;
    }
    Ok(Some(members))
}

/// Tells whether [`descendants`] can be found here.
pub fn lists_descendants() -> bool {
    is_ours() && fs::exists("/proc/thread-self/children").unwrap_or(false)
}

/// The children of every thread: a thread's list has those it made itself.
pub(super) fn children(parent: Pid) -> Result<Vec<Pid>, Errno> {
    let mut children = Vec::new();
    let Some(threads) = there(fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero())))? else {
        return Ok(children);
    };
    for thread in threads.flatten() {
        if let Some(list) = there(fs::read_to_string(thread.path().join("children")))? {
            let pids = list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
            children.extend(pids.filter_map(Pid::from_raw));
        }
    }
    Ok(children)
}

/// `None` for a process or a thread that has ended meanwhile.
pub(super) fn there<T>(read: io::Result<T>) -> Result<Option<T>, Errno> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(errno @ (Errno::MFILE | Errno::NFILE)) => Err(errno),
            _ => Ok(None),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn the_members_of_a_session_are_its_leaders_descendants_and_its_orphans() {
        // One orphan with a child, one child, and one that leaves.
        let script = "setsid sh -c '(sh -c \"sleep 1000 & echo \\$! \\$\\$; exec sleep 1000\" &) ; sleep 1000 & echo $! $$; \
                      setsid sh -c \"echo left; exec sleep 1000\" & exec sleep 1000'";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut said: Vec<i32> = Vec::new();
        for _ in 0..3 {
            let line = lines.next().expect("three lines").expect("text");
            if line != "left" {
                said.extend(line.split(' ').map(|pid| pid.parse::<i32>().expect("a pid")));
            }
        }
        // The second of a line leads: the orphan's own line may come first.
        let leader = [said[1], said[3]].into_iter().filter_map(Pid::from_raw);
        let leader = leader.into_iter().find(|pid| session_of(*pid) == Some(*pid));
        let leader = leader.expect("one of them leads");
        let mut members: Vec<i32> = session_by_descent(leader)
            .expect("descriptors are left")
            .expect("the kernel has lists")
            .into_iter()
            .map(|pid| pid.as_raw_nonzero().get())
            .collect();
        let mut all = descendants(leader).expect("descriptors are left");
        all.extend(said.iter().filter_map(|pid| Pid::from_raw(*pid)));
        for pid in all {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        child.wait().expect("it is a child");
        members.sort_unstable();
        said.sort_unstable();
        assert_eq!(members, said);
    }

    #[test]
    fn a_child_of_another_thread_and_its_children_are_found() {
        let script = "sleep 1000 & echo $!; exec sleep 1000";
        let spawned = std::thread::spawn(move || {
            let mut child = Command::new("sh");
            child.args(["-c", script]).stdout(Stdio::piped()).spawn()
        });
        let mut child = spawned.join().expect("the thread ends").expect("sh starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("the pid of the grandchild");
        let grandchild = Pid::from_raw(line.trim().parse().expect("a pid")).expect("a pid");
        let child_pid = Pid::from_child(&child);

        let all = descendants(rustix::process::getpid()).expect("descriptors are left");
        let below = descendants(child_pid).expect("descriptors are left");

        rustix::process::kill_process(grandchild, rustix::process::Signal::KILL).expect("it is there");
        child.kill().expect("it is there");
        child.wait().expect("it is a child");
        assert!(all.contains(&child_pid) && all.contains(&grandchild), "{all:?}");
        assert_eq!(below, [grandchild]);
    }
}
