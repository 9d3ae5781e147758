//! Who has a scripted terminal, and what becomes of the signals that are sent to it.

use std::time::Duration;

use dsh_subprocess::{
    Error, ErrorKind, Foreground, InputWaiting, MayHaveStarted, Member, Outcome, TerminalSignal,
};

use super::super::agenda::Due;
use super::super::inner::Scene;
use super::super::record::Delivery;
use super::super::script::{Reaction, Step};
use super::super::tree::Tree;

/// Who a script says has the terminal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ScriptedForeground {
    /// The program's own group, waiting for input exactly while the script is at a step that reads and there is nothing to
    /// be read. Its id is the program's, or that of its tree (1 for the first that the world started) where the program has none.
    #[default]
    Program,
    /// Another group, or the program's as the world is to tell it.
    Group(Foreground),
    /// No group.
    Nobody,
}

impl Tree {
    /// Tells who has the terminal.
    pub(super) fn foreground(&self) -> Option<Foreground> {
        match &self.tty().foreground {
            ScriptedForeground::Nobody => None,
            ScriptedForeground::Group(group) => Some(group.clone()),
            ScriptedForeground::Program => {
                let input = if self.reads_in_vain() {
                    InputWaiting::Proven
                } else {
                    InputWaiting::NotWaiting
                };
                let program = Member::new(self.pid(), self.command());
                Some(Foreground::new(
                    self.own_group(),
                    input,
                    self.is_running().then_some(program),
                ))
            }
        }
    }

    /// Signals the foreground group, and returns its id.
    pub(super) fn signal_foreground(
        &mut self,
        signal: TerminalSignal,
        scene: &mut Scene,
    ) -> Result<u32, Error> {
        let refuse = |kind, why: &str| Err(Error::new(kind, "signal", why).with_started(MayHaveStarted::Yes));
        let Some(group) = self.foreground().map(|foreground| foreground.process_group_id) else {
            return refuse(ErrorKind::NoForeground, "no process group has the terminal");
        };
        let own = group == self.own_group();
        if own && signal == TerminalSignal::Kill {
            let why = "the program's own group has the terminal: terminate the session instead";
            return refuse(ErrorKind::OwnGroup, why);
        }
        self.deliver(signal, (!own).then_some(group), scene);
        Ok(group)
    }

    /// Delivers a signal to a group by its id, or to the program's own.
    pub(super) fn deliver(&mut self, signal: TerminalSignal, group: Option<u32>, scene: &mut Scene) {
        let name = signal.name();
        self.signals
            .push(Delivery::new(scene.agenda.now(), group, name.clone()));
        self.tty_mut().signals.push(signal);
        scene.agenda.plan(Duration::ZERO, Due::Resume(self.index));
        let Some(group) = group else {
            let reaction = self.reaction(signal);
            let outcome = Outcome::Signaled {
                signal: name,
                core_dumped: false,
            };
            return self.react(reaction, outcome, scene);
        };
        let index = self.index;
        let addressed = |pid| pid == Some(group);
        for member in self
            .members
            .iter_mut()
            .filter(|member| member.alive && addressed(member.script.member.pid))
        {
            member.signalled = true;
            let reaction = match signal {
                TerminalSignal::Kill => &member.script.on_kill,
                signal if is_deadly(signal) => &member.script.on_term,
                _ => &Reaction::Ignores,
            };
            match reaction {
                Reaction::Dies => member.alive = false,
                Reaction::Ends { after, .. } => {
                    scene.agenda.plan(*after, Due::MemberEnds(index, Some(group)));
                }
                Reaction::Ignores => {}
            }
        }
        self.settle(scene);
    }

    /// Says what the program does about a signal.
    fn reaction(&self, signal: TerminalSignal) -> Reaction {
        let said = self
            .tty()
            .on_signal
            .iter()
            .rev()
            .find(|(named, _)| *named == signal);
        match (signal, said) {
            (TerminalSignal::Terminate, _) => self.on_term.clone(),
            (_, Some((_, reaction))) => reaction.clone(),
            (signal, None) if is_deadly(signal) => Reaction::Dies,
            (_, None) => Reaction::Ignores,
        }
    }

    fn own_group(&self) -> u32 {
        // A world of more than four thousand million trees ends elsewhere.
        let counted = u32::try_from(self.index + 1).unwrap_or(u32::MAX);
        self.pid().unwrap_or(counted)
    }

    /// Tells whether the script is at a step that reads, and nothing is there to be read.
    fn reads_in_vain(&self) -> bool {
        let reads = matches!(
            self.steps.front(),
            Some(Step::Read(_) | Step::ReadLine | Step::ReadToEnd | Step::Expect(_) | Step::Echo)
        );
        reads && self.is_running() && self.input.unread() == 0
    }
}

/// Tells whether a signal ends a process that says nothing about it (`signal(7)`).
fn is_deadly(signal: TerminalSignal) -> bool {
    match signal {
        TerminalSignal::Stop | TerminalSignal::WindowChange | TerminalSignal::Continue => false,
        // Interrupt, Terminate, Kill, HangUp, Quit.
        _ => true,
    }
}
