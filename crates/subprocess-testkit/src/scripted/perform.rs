//! How the steps of a script are done.

use bytes::{Buf, Bytes};
use dsh_subprocess::{Error, ErrorKind, Started, StreamName};

use super::agenda::Due;
use super::inner::Scene;
use super::script::Step;
use super::stream::Written;
use super::tree::{Ladder, Tree};

/// Whether a step is behind the script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Done,
    /// The script goes on when the tree is resumed.
    Blocked,
}

impl Tree {
    /// Goes on with the script as far as possible.
    pub(super) fn resume(&mut self, scene: &mut Scene) {
        self.type_on(scene);
        loop {
            while let Some(mut step) = self.steps.pop_front() {
                if self.perform(&mut step, scene) == Progress::Blocked {
                    self.steps.push_front(step);
                    break;
                }
            }
            // What the script has read makes room for what is typed, and that may be what it waits for.
            if !self.type_on(scene) {
                break;
            }
        }
        self.settle(scene);
    }

    fn perform(&mut self, step: &mut Step, scene: &mut Scene) -> Progress {
        match step {
            Step::Wait(span, end) => {
                let end = *end.get_or_insert_with(|| scene.agenda.plan(*span, Due::Resume(self.index)));
                return until(scene.agenda.now() >= end);
            }
            Step::Gate(gate) => return until(scene.open_gates.contains(gate)),
            Step::Terminated => return until(self.ladder >= Ladder::Termed),
            Step::Start(pid) => {
                self.started.get_or_insert(Ok(Started::new(*pid)));
            }
            Step::Fail(error) => {
                let error = error.clone();
                self.fail(error, scene);
            }
            Step::Write(stream, bytes) => return self.write(*stream, bytes, false, scene),
            Step::Keep(stream, bytes) => return self.write(*stream, bytes, true, scene),
            Step::Close(stream) => {
                self.stream(*stream).target_closed = true;
                self.settle(scene);
            }
            Step::CollectLines(collect) => self.collect_lines(*collect),
            Step::PrintSize => {
                *step = Step::Write(StreamName::Stdout, self.tty_mut().size_line());
                return self.perform(step, scene);
            }
            Step::Signal(signal) => return until(self.tty_mut().take_signal(*signal)),
            Step::HandTerminal(foreground) => self.tty_mut().foreground = foreground.clone(),
            Step::PrintEnvironment => {
                let variables: Vec<u8> = self
                    .environment
                    .iter()
                    .flat_map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat())
                    .collect();
                *step = Step::Write(StreamName::Stdout, variables.into());
                return self.perform(step, scene);
            }
            Step::Read(left) => {
                let limit = usize::try_from(*left).unwrap_or(usize::MAX);
                *left -= self.input.read(limit, &mut scene.wakers).len() as u64;
                return until(*left == 0 || self.input.is_at_end());
            }
            Step::ReadLine => {
                let line = self.input.read_line(&mut scene.wakers);
                return until(line.is_some() || self.input.is_at_end());
            }
            Step::ReadToEnd => {
                self.input.read(usize::MAX, &mut scene.wakers);
                return until(self.input.is_at_end());
            }
            Step::Expect(bytes) => return self.expect(bytes, scene),
            Step::Echo => {
                let bytes = self.input.read(usize::MAX, &mut scene.wakers);
                if bytes.is_empty() {
                    return until(self.input.is_at_end());
                }
                self.steps.push_front(Step::Echo);
                *step = Step::Write(StreamName::Stdout, bytes);
                return self.perform(step, scene);
            }
            Step::Bear(member) => self.bear(member.clone()),
            Step::MemberEnds(pid) => self.end_member(Some(*pid), scene),
            Step::End(outcome) => self.end_target(outcome.clone(), scene),
            Step::Use(usage) => self.usage = *usage,
            Step::LoseOwnership(why) => self.lose(&why.clone(), scene),
            Step::Disconnect(why) => {
                self.disconnected = Some(Error::new(ErrorKind::Transport, "observe", why.as_str()));
            }
            Step::Reconnect => self.disconnected = None,
        }
        Progress::Done
    }

    fn write(&mut self, stream: StreamName, bytes: &mut Bytes, unsent: bool, scene: &mut Scene) -> Progress {
        if let Some(terminal) = &self.terminal {
            self.stdout.set_capacity(terminal.output_capacity());
        }
        let to = self.stream(stream);
        let written = if unsent {
            to.keep(bytes, &mut scene.wakers)
        } else {
            to.write(bytes, &mut scene.wakers)
        };
        match written {
            Written::All => Progress::Done,
            // A target that has ended writes nothing more: the rest of what it had to say is lost.
            Written::Some => until(self.outcome.is_some()),
            Written::Broken => {
                let signal = "SIGPIPE".into();
                self.end_target(
                    dsh_subprocess::Outcome::Signaled {
                        signal,
                        core_dumped: false,
                    },
                    scene,
                );
                Progress::Done
            }
        }
    }

    fn expect(&mut self, expected: &mut Bytes, scene: &mut Scene) -> Progress {
        let bytes = self.input.read(expected.len(), &mut scene.wakers);
        let found = if expected.starts_with(&bytes) {
            expected.advance(bytes.len());
            if expected.is_empty() {
                return Progress::Done;
            }
            if !self.input.is_at_end() {
                return Progress::Blocked;
            }
            "the end".to_owned()
        } else {
            format!("\"{}\"", bytes.escape_ascii())
        };
        let program = self.spec.argv[0].to_string_lossy();
        let wanted = expected.escape_ascii();
        scene.violations.push(format!(
            "`{program}` expected \"{wanted}\" on its standard input and read {found}"
        ));
        Progress::Done
    }
}

fn until(met: bool) -> Progress {
    if met { Progress::Done } else { Progress::Blocked }
}
