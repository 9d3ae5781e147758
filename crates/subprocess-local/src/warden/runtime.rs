//! The runtime's warden, from the host's side: started with the runtime, started again should it be killed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::kernel::Kernel;
use dsh_subprocess_sys::signal;
use dsh_subprocess_sys::spawn::Session;
use dsh_subprocess_sys::steps::{Step, step};
use dsh_subprocess_sys::warden::protocol::{FromRuntime, Packet, SHORT, ToRuntime};
use dsh_subprocess_sys::warden::{Link, StartWardenError, start};

use super::{Adopted, TreeWarden};
use crate::owner::Reserve;
use crate::reactor::{Reactor, Source, lock};

/// The grace of what has none of its own: orphans of a tree warden that was killed.
const GRACE: Duration = Duration::from_secs(3);
/// Tree wardens that are kept for the next trees.
const KEPT: usize = 16;
/// Bytes of the longest packet that a runtime warden sends.
const HEARD: usize = 64;

/// What the host has that must end, or be removed, with it. Each warden is told of it anew.
#[derive(Debug)]
enum Belonging {
    /// The runtime's control group, and the graces of its leaves.
    Group { directory: OwnedFd, graces: OwnedFd },
    /// A private directory.
    Directory(OwnedFd),
    /// The locked record of the runtime, removed last.
    Record(OwnedFd),
}

impl Belonging {
    fn message<'a>(&self, path: &'a Path) -> ToRuntime<'a> {
        let path = path.as_os_str().as_bytes();
        match self {
            Self::Group { .. } => ToRuntime::Group(path),
            Self::Directory(_) => ToRuntime::Directory(path),
            Self::Record(_) => ToRuntime::Record(path),
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Group { directory, graces } => vec![directory.as_fd(), graces.as_fd()],
            Self::Directory(fd) | Self::Record(fd) => vec![fd.as_fd()],
        }
    }
}

/// One runtime's warden.
#[derive(Debug)]
pub(crate) struct RuntimeWarden {
    kernel: Kernel,
    session: Session,
    reserve: Arc<Reserve>,
    adopted: Arc<Adopted>,
    /// Whether there is a link, for those who must not wait while one is being made.
    there: Arc<AtomicBool>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` when it was lost, until another is started; and after the goodbye.
    link: Option<Link>,
    /// The same, without the lock.
    there: Arc<AtomicBool>,
    reactor: Weak<Reactor>,
    token: u64,
    belongings: Vec<(PathBuf, Belonging)>,
    /// Tree wardens without a tree.
    idle: Vec<TreeWarden>,
    /// How many runtime wardens were lost.
    generation: u64,
    /// Why the last tree warden could not be made.
    refused: Option<Errno>,
    over: bool,
}

impl RuntimeWarden {
    /// Starts one.
    pub(crate) fn start(kernel: Kernel, session: Session) -> Result<Arc<Self>, StartWardenError> {
        let (link, pid) = start(kernel, session, GRACE)?;
        let reserve = Arc::new(Reserve::new());
        let adopted = Adopted::new(Arc::clone(&reserve));
        adopted.runtime_warden(pid);
        let there = Arc::new(AtomicBool::new(true));
        Ok(Arc::new(Self {
            kernel,
            session,
            reserve,
            adopted,
            there: Arc::clone(&there),
            state: Mutex::new(State {
                link: Some(link),
                there,
                ..State::default()
            }),
        }))
    }

    /// Has the runtime's thread notice its end.
    pub(crate) fn watch(self: &Arc<Self>, reactor: &Arc<Reactor>) -> io::Result<()> {
        self.adopted.watch(reactor);
        let mut state = lock(&self.state);
        state.reactor = Arc::downgrade(reactor);
        self.rewatch(&mut state)
    }

    fn rewatch(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        if let (Some(link), Some(reactor)) = (&state.link, state.reactor.upgrade()) {
            state.token = reactor.token();
            let source = Source::Warden(Arc::clone(self));
            reactor.watch(link, state.token, Interest::BecomesReadable, source)?;
        }
        Ok(())
    }

    /// Hands the runtime's control group over.
    pub(crate) fn own_group(&self, path: &Path, directory: OwnedFd, graces: OwnedFd) {
        self.own(path, Belonging::Group { directory, graces });
    }

    /// Hands a private directory over.
    pub(crate) fn own_directory(&self, path: &Path, directory: OwnedFd) {
        self.own(path, Belonging::Directory(directory));
    }

    /// Hands the runtime's locked record over.
    pub(crate) fn own_record(&self, path: &Path, record: OwnedFd) {
        self.own(path, Belonging::Record(record));
    }

    fn own(&self, path: &Path, belonging: Belonging) {
        let mut state = lock(&self.state);
        if let Some(link) = &state.link {
            tell(link, path, &belonging);
        }
        state.belongings.push((path.to_owned(), belonging));
    }

    /// Takes a directory back that is no more.
    pub(crate) fn disown(&self, path: &Path) {
        let mut state = lock(&self.state);
        state.belongings.retain(|(owned, _)| owned != path);
        if let Some(link) = &state.link {
            let _ = say(link, ToRuntime::Forget(path.as_os_str().as_bytes()), &[]);
        }
        if state.over {
            state.let_go();
        }
    }

    /// Returns the descriptors that are kept for looks at the trees.
    pub(crate) fn reserve(&self) -> Arc<Reserve> {
        Arc::clone(&self.reserve)
    }

    /// Takes a tree warden that has no tree, or has one made.
    pub(crate) fn tree(self: &Arc<Self>) -> Result<TreeWarden, RefusedTree> {
        let mut state = lock(&self.state);
        // If it has just been killed, so are the idle ones about to end.
        if state.link.is_some() && !state.listen() {
            state.lose();
        }
        if let Some(idle) = state.idle.pop() {
            return Ok(idle);
        }
        self.restart(&mut state)?;
        match state.make_tree() {
            // Or even later.
            Err(Errno::PIPE | Errno::CONNRESET) => {
                state.lose();
                self.restart(&mut state)?;
                Ok(state.make_tree()?)
            }
            made => Ok(made?),
        }
    }

    /// Makes sure that the next tree finds its warden.
    pub(crate) fn prepare(&self) {
        let mut state = lock(&self.state);
        if state.idle.is_empty()
            && state.link.is_some()
            && let Ok(ahead) = state.make_tree()
        {
            state.idle.push(ahead);
        }
    }

    /// Gives a tree warden back whose tree is gone.
    pub(crate) fn give_back(&self, warden: TreeWarden) {
        let mut state = lock(&self.state);
        // One that was made by a runtime warden that is no more ends with its tree.
        if state.idle.len() < KEPT && state.link.is_some() && warden.generation == state.generation {
            state.idle.push(warden);
        }
    }

    /// Returns why the last tree warden could not be made, if that is why.
    pub(crate) fn refusal(&self) -> Option<Errno> {
        let mut state = lock(&self.state);
        // It was said before the tree's own socket was closed.
        state.listen();
        state.refused.take()
    }

    /// Its socket has something to say, or has ended.
    pub(crate) fn heard(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        if state.listen() || state.over {
            return;
        }
        tracing::error!("the runtime's warden has ended: another one is started");
        state.lose();
        drop(state);
        self.restart_elsewhere();
    }

    /// Tries again to start one that was lost, should that have failed: too few descriptors at that moment, perhaps. For trees
    /// that can do without.
    pub(crate) fn keep_up(self: &Arc<Self>) {
        if !self.is_there() {
            self.restart_elsewhere();
        }
    }

    /// Starts another one off this thread, since a start waits for an answer.
    fn restart_elsewhere(self: &Arc<Self>) {
        let warden = Arc::clone(self);
        let _mask = signal::block_for_new_thread();
        let started = thread::Builder::new().name("dsh-restart".to_owned()).spawn(move || {
            let mut state = lock(&warden.state);
            if let Err(error) = warden.restart(&mut state) {
                tracing::error!(%error, "no warden could be started: it is tried again with the next tree");
            }
        });
        if let Err(error) = started {
            tracing::error!(%error, "no thread could be made to start a warden");
        }
    }

    /// Whether it is there.
    pub(crate) fn is_there(&self) -> bool {
        self.there.load(Ordering::Acquire)
    }

    fn restart(self: &Arc<Self>, state: &mut State) -> Result<(), RefusedTree> {
        if state.link.is_some() || state.over {
            return Ok(());
        }
        let (link, pid) = start(self.kernel, self.session, GRACE)?;
        self.adopted.runtime_warden(pid);
        for (path, belonging) in &state.belongings {
            tell(&link, path, belonging);
        }
        state.link = Some(link);
        self.there.store(true, Ordering::Release);
        self.rewatch(state)
            .map_err(|error| RefusedTree::Io(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
    }

    /// Lets it go, as soon as everything the runtime had is removed: a file that somebody still reads may outlive it.
    pub(crate) fn goodbye(&self) {
        let mut state = lock(&self.state);
        state.over = true;
        state.idle.clear();
        state.stop_listening();
        state.let_go();
    }
}

impl Drop for RuntimeWarden {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.idle.clear();
        state.link = None;
        self.there.store(false, Ordering::Release);
        self.adopted.wait_for_unwatched();
    }
}

/// Why there is no warden for a tree.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RefusedTree {
    #[error("no warden could be started")]
    Start(#[from] StartWardenError),
    #[error("no socket to a warden could be made")]
    Io(#[from] Errno),
}

impl State {
    fn make_tree(&mut self) -> Result<TreeWarden, Errno> {
        let link = self.link.as_ref().ok_or(Errno::PIPE)?;
        let (ours, theirs) = Link::pair()?;
        step(Step::TreeWardenNext);
        say(link, ToRuntime::Tree, &[theirs.as_fd()])?;
        Ok(TreeWarden::new(ours, self.generation))
    }

    /// Hears what there is to hear. `false` when the warden has ended.
    fn listen(&mut self) -> bool {
        let Some(link) = &self.link else { return false };
        let mut bytes = [0; HEARD];
        let mut descriptors = Vec::new();
        loop {
            match link.receive(&mut bytes, &mut descriptors) {
                Ok(None) => return true,
                Ok(Some(0)) | Err(_) => return false,
                Ok(Some(length)) => match FromRuntime::decode(&bytes[..length]) {
                    Ok(FromRuntime::NoTree { errno }) => {
                        self.refused = Some(Errno::from_raw_os_error(errno));
                    }
                    Ok(FromRuntime::Ready { .. }) => {}
                    Err(_) => return false,
                },
            }
        }
    }

    fn lose(&mut self) {
        self.idle.clear();
        self.stop_listening();
        self.link = None;
        self.there.store(false, Ordering::Release);
        self.generation += 1;
    }

    fn stop_listening(&self) {
        if let (Some(link), Some(reactor)) = (&self.link, self.reactor.upgrade()) {
            reactor.forget(link, self.token);
        }
    }

    fn let_go(&mut self) {
        let holds = |belonging: &Belonging| matches!(belonging, Belonging::Directory(_));
        if self.belongings.iter().any(|(_, belonging)| holds(belonging)) {
            return;
        }
        self.belongings.clear();
        self.there.store(false, Ordering::Release);
        if let Some(link) = self.link.take() {
            let _ = say(&link, ToRuntime::Goodbye, &[]);
        }
    }
}

fn tell(link: &Link, path: &Path, belonging: &Belonging) {
    if let Err(errno) = say(link, belonging.message(path), &belonging.descriptors()) {
        tracing::error!(%errno, path = %path.display(), "the warden could not be told what to remove");
    }
}

fn say(link: &Link, message: ToRuntime<'_>, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut packet = Packet::<SHORT>::with_room();
    message.encode(&mut packet).map_err(|_| Errno::NAMETOOLONG)?;
    link.send(&packet, descriptors)
}
