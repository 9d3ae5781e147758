//! What a scripted tree has beside others when it is on a terminal.

use std::time::Duration;

use bytes::Bytes;
use dsh_subprocess::{Error, ErrorKind, MayHaveStarted, TerminalSignal, TerminalSize, TerminalSpec};

use super::super::agenda::Due;
use super::super::inner::Scene;
use super::super::script::Reaction;
use super::super::tree::{Ladder, Tree};
use super::foreground::ScriptedForeground;
use super::record::Resize;
use super::typing::{Typing, Written};

/// Bytes a terminal holds for a reader before its programs have to wait.
const OUTPUT_CAPACITY: usize = 10_240;

/// Bytes that are kept for a reader while a write waits, and while the session is being terminated.
const KEPT_OUTPUT: usize = 1 << 20;

/// The terminal of one tree.
#[derive(Debug)]
pub(in super::super) struct Tty {
    pub(super) spec: TerminalSpec,
    pub(super) size: TerminalSize,
    pub(super) resizes: Vec<Resize>,
    pub(super) typing: Typing,
    pub(in super::super) foreground: ScriptedForeground,
    pub(super) on_signal: Vec<(TerminalSignal, Reaction)>,
    /// Signals that the script has not waited for yet.
    pub(super) signals: Vec<TerminalSignal>,
    /// Whether the handle is with the caller, so that the token of the spec does nothing any more.
    pub(super) published: bool,
    /// Whether the session is being terminated.
    closing: bool,
}

impl Tty {
    pub(super) fn new(spec: TerminalSpec, on_signal: Vec<(TerminalSignal, Reaction)>) -> Self {
        Self {
            size: spec.size,
            spec,
            resizes: Vec::new(),
            typing: Typing::default(),
            foreground: ScriptedForeground::default(),
            on_signal,
            signals: Vec::new(),
            published: false,
            closing: false,
        }
    }

    /// Returns how much of what is printed the terminal holds at the moment.
    pub(in super::super) fn output_capacity(&self) -> usize {
        if self.closing || self.typing.is_waiting() {
            KEPT_OUTPUT
        } else {
            OUTPUT_CAPACITY
        }
    }

    /// Takes one signal that the script waits for. `false` where none has come.
    pub(in super::super) fn take_signal(&mut self, signal: TerminalSignal) -> bool {
        let came = self.signals.iter().position(|came| *came == signal);
        came.map(|at| self.signals.remove(at)).is_some()
    }

    /// Returns the size as a script prints it.
    pub(in super::super) fn size_line(&self) -> Bytes {
        format!("{} {}\n", self.size.rows, self.size.cols).into()
    }

    /// Ends every write: nobody will read it.
    pub(in super::super) fn program_exited(&mut self) {
        self.typing.end("the program has exited");
    }

    /// Ends every call: the session is being terminated.
    pub(in super::super) fn close(&mut self) {
        self.closing = true;
        self.typing.end("the session is being terminated");
    }
}

impl Tree {
    /// Tells whether this is a terminal whose handle its caller has.
    pub(in super::super) fn is_published(&self) -> bool {
        self.terminal.as_ref().is_some_and(|tty| tty.published)
    }

    /// Returns the terminal.
    ///
    /// # Panics
    ///
    /// On a tree without one, which nothing here is asked about.
    pub(super) fn tty(&self) -> &Tty {
        self.terminal.as_ref().expect("the tree is on a terminal")
    }

    /// Returns the terminal, as [`tty`](Self::tty).
    pub(in super::super) fn tty_mut(&mut self) -> &mut Tty {
        self.terminal.as_mut().expect("the tree is on a terminal")
    }

    /// Refuses what needs a program where that has ended, or is being ended.
    pub(super) fn refusal(&self, operation: &'static str) -> Option<Error> {
        let why = if self.tty().closing {
            "the session is being terminated"
        } else if self.outcome.is_some() || self.gone {
            "the program has exited"
        } else {
            return None;
        };
        Some(Error::new(ErrorKind::Exited, operation, why).with_started(MayHaveStarted::Yes))
    }

    /// Begins to type.
    pub(super) fn type_in(&mut self, data: Bytes, scene: &mut Scene) -> (u64, Written) {
        let now = scene.agenda.now();
        let idle = !self.tty().typing.is_waiting();
        let typed = self.tty_mut().typing.push(data, now);
        if idle {
            scene.agenda.plan(scene.write_bound, Due::InputStalls(self.index));
        }
        scene.agenda.plan(Duration::ZERO, Due::Resume(self.index));
        typed
    }

    /// Types what the program has made room for, and tells whether that was anything.
    pub(in super::super) fn type_on(&mut self, scene: &Scene) -> bool {
        match &mut self.terminal {
            Some(tty) => tty.typing.type_into(&mut self.input, scene.agenda.now()),
            None => false,
        }
    }

    /// Gives up a write that for the bound got no further.
    pub(in super::super) fn input_stalls(&mut self, scene: &mut Scene) {
        let (now, bound) = (scene.agenda.now(), scene.write_bound);
        let typing = &mut self.tty_mut().typing;
        if typing.deadline(bound).is_some_and(|deadline| deadline <= now) {
            typing.give_up_first(bound, now);
        }
        let next = typing.deadline(bound);
        if let Some(next) = next {
            scene
                .agenda
                .plan(next.saturating_sub(now), Due::InputStalls(self.index));
        }
        self.resume(scene);
    }

    /// Says whether lines are collected from now on.
    pub(in super::super) fn collect_lines(&mut self, collect: bool) {
        let Self { terminal, input, .. } = self;
        if let Some(tty) = terminal {
            tty.typing.collect_lines(collect, input);
        }
    }

    /// Changes the size of the window, and tells the foreground group where it is another one.
    pub(super) fn resize(&mut self, size: TerminalSize, scene: &mut Scene) {
        let at = scene.agenda.now();
        let tty = self.tty_mut();
        let changes = tty.size != size;
        tty.size = size;
        tty.resizes.push(Resize { at, size });
        if changes {
            // Where nobody is in the foreground, nobody is told.
            drop(self.signal_foreground(TerminalSignal::WindowChange, scene));
        }
    }

    /// A request to end the session ends every call of the handle, and goes for whatever outlived an earlier one.
    pub(in super::super) fn close_terminal(&mut self) {
        if let Some(tty) = &mut self.terminal {
            tty.close();
            if self.ladder == Ladder::Exhausted {
                self.ladder = Ladder::Untouched;
            }
        }
    }
}
