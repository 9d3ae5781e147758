//! What a tree's warden says of it, where the reaper owns the tree.

use std::sync::Arc;

use super::events::outcome;
use super::{Afterwards, Tree};
use crate::failure;
use crate::owner::Owner;
use crate::reactor::lock;
use crate::warden::Heard;

/// What is told of a tree whose warden is no more.
pub(crate) const LOST: &str =
    "the tree's warden was killed, so nobody can tell how it ends; what was left of it is ended";

impl Tree {
    /// The warden's socket has something to say.
    pub(crate) fn warden_spoke(self: &Arc<Self>) {
        loop {
            let mut state = lock(&self.state);
            let Owner::Reaper(reaper) = &mut state.owner else {
                return;
            };
            let Some(heard) = reaper.hear() else { return };
            match heard {
                Heard::Running { pid, session_error } => {
                    state.has_session &= session_error.is_none();
                    state.on_its_way = None;
                    drop(state);
                    self.runs(pid);
                }
                // It was told with the launch.
                Heard::Cloned { .. } => {}
                Heard::Failed(exec) => {
                    // It is there: a failure is heard here of a launch that was on its way.
                    let Some(told) = state.on_its_way.take() else {
                        continue;
                    };
                    drop(state);
                    let (program, asked) = *told;
                    self.failed(&failure::exec(&exec, &program, &asked));
                }
                Heard::NoChild(error) => {
                    drop(state);
                    self.failed(&failure::start(&error));
                }
                Heard::Exited(end) => {
                    let mut after = Afterwards::default();
                    self.target_ended(&mut state, outcome(end.status), Some(end), &mut after);
                    self.reschedule(&mut state);
                    drop(state);
                    self.finish(after);
                }
                Heard::Gone { user, system } => {
                    reaper.used = Some((user, system));
                    let mut after = Afterwards::default();
                    self.gone(&mut state, &mut after);
                    self.reschedule(&mut state);
                    drop(state);
                    self.finish(after);
                    return;
                }
                Heard::Lost => {
                    drop(state);
                    self.give_up(LOST);
                    return;
                }
            }
        }
    }
}
