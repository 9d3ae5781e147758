//! A collected stream: drained by the runtime, whoever looks at it or not.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use dsh_subprocess::Collector;
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::pipe;

use crate::machine::Machine;
use crate::reactor::{CHUNK, Reactor, Source, lock};
use crate::spill::StreamSpill;
use crate::tree::Tree;

/// Bytes drained for one readiness event before the others get their turn.
const TURN: usize = 1024 * 1024;
/// What a pipe holds unless told otherwise (pipe(7)).
const DEFAULT_CAPACITY: usize = 64 * 1024;
/// What the pipe of a stream that was seen full may hold. Beyond the user's limit the kernel refuses.
const GROWN_CAPACITY: usize = 1024 * 1024;

/// Room for grown pipes. Past a limit per user the kernel makes every new pipe of the user tiny, so what one runtime
/// takes is bounded.
#[derive(Debug)]
pub(crate) struct PipeRoom(AtomicUsize);

impl PipeRoom {
    pub(crate) const fn new(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    fn take(&self, bytes: usize) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                left.checked_sub(bytes)
            })
            .is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::AcqRel);
    }
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    machine: Arc<Machine>,
    tree: Weak<Tree>,
    /// The pipe's number, by which its holders are found.
    pub(crate) inode: u64,
    state: Mutex<State>,
    /// Set when the stream is to end with what has arrived.
    cut: AtomicBool,
    /// Set while it belongs to the thread that writes files.
    spilling: AtomicBool,
    /// Set once it has ended.
    ended: AtomicBool,
}

#[derive(Debug)]
struct State {
    /// `None` once the stream has ended.
    fd: Option<OwnedFd>,
    collector: Collector,
    max_bytes: usize,
    /// `None` where none was asked for, and once it was withdrawn.
    spill: Option<Arc<StreamSpill>>,
    reactor: Arc<Reactor>,
    token: u64,
    /// Bytes of [`PipeRoom`] that the pipe has taken.
    room: usize,
    grown: bool,
}

/// How a turn of draining ended.
enum Turn {
    /// Nothing to read now, or enough read for now.
    Later,
    /// No writer is left.
    End,
    /// The next bytes go to a file, or no longer do: another thread takes over.
    Move,
}

impl Stream {
    pub(crate) fn start(
        tree: &Arc<Tree>,
        fd: OwnedFd,
        collector: Collector,
        max_bytes: usize,
        spill: Option<Arc<StreamSpill>>,
    ) -> io::Result<Arc<Self>> {
        let machine = &tree.machine;
        let reactor = Arc::clone(&machine.reactor);
        let token = reactor.token();
        let inode = pipe::inode(&fd)?;
        let state = State {
            fd: Some(fd),
            collector,
            max_bytes,
            spill,
            reactor: Arc::clone(&reactor),
            token,
            room: 0,
            grown: false,
        };
        let stream = Arc::new(Self {
            machine: Arc::clone(machine),
            tree: Arc::downgrade(tree),
            inode,
            state: Mutex::new(state),
            cut: AtomicBool::new(false),
            spilling: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let state = lock(&stream.state);
        if let Some(fd) = &state.fd {
            reactor.watch(fd, token, Interest::Readable, Source::Stream(Arc::clone(&stream)))?;
        }
        drop(state);
        Ok(stream)
    }

    /// The pipe has bytes, or has ended. Runs on the thread of the reactor that watches it.
    pub(crate) fn drain(self: &Arc<Self>, reactor: &Arc<Reactor>, chunk: &mut [u8]) {
        let mut state = lock(&self.state);
        // An event that was already on its way when the stream moved.
        if !Arc::ptr_eq(&state.reactor, reactor) {
            return;
        }
        let ended = match state.turn(&self.machine, chunk, TURN) {
            Turn::Later if !self.cut.load(Ordering::Acquire) => false,
            Turn::Later | Turn::End => {
                self.close(&mut state);
                true
            }
            Turn::Move => {
                self.change_threads(&mut state);
                false
            }
        };
        drop(state);
        if ended && let Some(tree) = self.tree.upgrade() {
            tree.stream_ended();
        }
    }

    /// Ends the stream with what has arrived. `false` where its own thread will do it: one that writes to files, which may
    /// take as long as the disk does. The tree is told then.
    pub(crate) fn cut(self: &Arc<Self>) -> bool {
        self.cut.store(true, Ordering::Release);
        if !self.is_open() {
            return true;
        }
        // Its lock is held for as long as a write takes.
        if self.spilling.load(Ordering::Acquire)
            && let Ok(reactor) = self.machine.spill_reactor()
        {
            reactor.request(Source::Stream(Arc::clone(self)));
            return false;
        }
        let mut state = lock(&self.state);
        let mut chunk = vec![0; DEFAULT_CAPACITY];
        // One more turn, for what was written before the deadline; a holder that goes on writing gets no second.
        while let Turn::Move = state.turn(&self.machine, &mut chunk, TURN) {
            self.change_threads(&mut state);
            if self.spilling.load(Ordering::Acquire) {
                return false;
            }
            // There is no other thread to be had: it goes on here, without a file.
        }
        self.close(&mut state);
        true
    }

    /// Whether somebody may still write to it.
    pub(crate) fn is_open(&self) -> bool {
        !self.ended.load(Ordering::Acquire)
    }

    fn close(&self, state: &mut State) {
        state.close(&self.machine);
        self.ended.store(true, Ordering::Release);
    }

    /// Moves between the thread that waits for everything and the one that writes files.
    fn change_threads(self: &Arc<Self>, state: &mut State) {
        let Some(fd) = &state.fd else { return };
        let next = if self.machine.is_spill_reactor(&state.reactor) {
            Ok(Arc::clone(&self.machine.reactor))
        } else {
            self.machine.spill_reactor()
        };
        let next = match next {
            Ok(next) => next,
            Err(error) => {
                // No thread to write on: the stream goes on without a file, on the thread it has.
                state.withdraw(&format!("no thread could be made to write the spill: {error}"));
                return;
            }
        };
        let token = next.token();
        state.reactor.forget(fd, state.token);
        match next.watch(fd, token, Interest::Readable, Source::Stream(Arc::clone(self))) {
            Ok(()) => {
                (state.reactor, state.token) = (next, token);
                self.spilling
                    .store(self.machine.is_spill_reactor(&state.reactor), Ordering::Release);
                if self.cut.load(Ordering::Acquire) {
                    // There may be nothing more to read that would wake the other thread.
                    state.reactor.request(Source::Stream(Arc::clone(self)));
                }
            }
            Err(error) => {
                state.withdraw(&format!(
                    "the stream could not be handed to the thread that writes files: {error}"
                ));
                let source = Source::Stream(Arc::clone(self));
                let again = state
                    .fd
                    .as_ref()
                    .map(|fd| state.reactor.watch(fd, state.token, Interest::Readable, source));
                if let Some(Err(error)) = again {
                    tracing::error!(%error, "a stream is no longer watched");
                    self.close(state);
                }
            }
        }
    }
}

impl State {
    /// Reads until the pipe is empty, or for `bound` bytes.
    fn turn(&mut self, machine: &Machine, chunk: &mut [u8], bound: usize) -> Turn {
        let mut turned = 0;
        while turned < bound {
            let Some(fd) = &self.fd else { return Turn::Later };
            let total = self.collector.total();
            let on_spill_thread = machine.is_spill_reactor(&self.reactor);
            let read = match &self.spill {
                Some(_) if on_spill_thread => pipe::read(fd, chunk),
                // Up to the brim and no further: the byte after it belongs into a file, and files are not written here.
                Some(_) => {
                    let left = (self.max_bytes as u64).saturating_sub(total);
                    let left = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
                    if left == 0 {
                        return Turn::Move;
                    }
                    pipe::read(fd, &mut chunk[..left])
                }
                None if on_spill_thread => return Turn::Move,
                None if self.collector.is_full() => {
                    let filled = self.collector.fill(|buffers| pipe::read_vectored(fd, buffers));
                    match self.counted(filled, &mut turned, machine) {
                        Some(turn) => return turn,
                        None => continue,
                    }
                }
                None => pipe::read(fd, chunk),
            };
            let length = *read.as_ref().unwrap_or(&0);
            if length > 0 {
                self.take(&chunk[..length], on_spill_thread);
            }
            if let Some(turn) = self.counted(read, &mut turned, machine) {
                return turn;
            }
        }
        Turn::Later
    }

    /// Judges one read.
    fn counted(&mut self, read: io::Result<usize>, turned: &mut usize, machine: &Machine) -> Option<Turn> {
        match read {
            Ok(0) => Some(Turn::End),
            Ok(length) => {
                *turned += length;
                if length >= DEFAULT_CAPACITY && !self.grown {
                    self.grow(machine);
                }
                None
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(Turn::Later),
            Err(error) => {
                tracing::error!(%error, "a pipe could not be read");
                Some(Turn::End)
            }
        }
    }

    fn take(&mut self, bytes: &[u8], to_file: bool) {
        if to_file && let Some(spill) = self.spill.clone() {
            let collector = &self.collector;
            match spill.append(|| collector.tail(), bytes) {
                Ok(stream) => {
                    self.collector.push(bytes);
                    self.collector.spill_reached(stream);
                    return;
                }
                Err(why) => self.withdraw(&why),
            }
        }
        self.collector.push(bytes);
    }

    fn withdraw(&mut self, why: &str) {
        tracing::warn!(why, "a spill was withdrawn");
        self.collector.spill_withdrawn(why);
        self.spill = None;
    }

    /// A full pipe means that the child waits for us: give it more room, once.
    fn grow(&mut self, machine: &Machine) {
        self.grown = true;
        let Some(fd) = &self.fd else { return };
        if machine.pipe_room.take(GROWN_CAPACITY) {
            if pipe::set_capacity(fd, GROWN_CAPACITY).is_ok() {
                self.room = GROWN_CAPACITY;
            } else {
                machine.pipe_room.give_back(GROWN_CAPACITY);
            }
        }
    }

    /// Closes the pipe and seals what was collected.
    fn close(&mut self, machine: &Machine) {
        let Some(fd) = self.fd.take() else { return };
        self.reactor.forget(&fd, self.token);
        drop(fd);
        machine.pipe_room.give_back(std::mem::take(&mut self.room));
        if let Some(spill) = self.spill.take() {
            match spill.settle(self.collector.spill_notice()) {
                Some(Ok(stream)) => self.collector.spill_reached(stream),
                Some(Err(why)) => self.withdraw(&why),
                None => {}
            }
        }
        self.collector.seal();
    }
}

const _: () = assert!(
    CHUNK >= DEFAULT_CAPACITY,
    "a full pipe must fit into one read to be seen full"
);
