//! Looking after something that runs until it ends or somebody asks for its end.

use std::pin::pin;

use crate::run::World;
use crate::signals::{Interrupt, Interrupts};

/// The interrupts of this process while a world is in use: the first asks for an end, and each further one does not wait for
/// the grace.
pub(crate) struct Attendance<'a> {
    interrupts: Interrupts,
    world: &'a World,
    first: Option<Interrupt>,
}

impl<'a> Attendance<'a> {
    pub(crate) fn new(interrupts: Interrupts, world: &'a World) -> Self {
        Self {
            interrupts,
            world,
            first: None,
        }
    }

    /// Waits for something. `end` is called at the first interrupt of all, and asks it to end.
    pub(crate) async fn wait_for<T>(&mut self, awaited: impl Future<Output = T>, end: impl Fn()) -> T {
        let mut awaited = pin!(awaited);
        loop {
            tokio::select! {
                // What has ended was not interrupted.
                biased;
                value = &mut awaited => return value,
                interrupt = self.interrupts.next() => {
                    if self.first.is_none() {
                        self.first = Some(interrupt);
                        end();
                    } else {
                        (self.world.kill_now)();
                    }
                }
            }
        }
    }

    /// Returns the interrupt that asked for the end.
    pub(crate) fn interrupt(&self) -> Option<Interrupt> {
        self.first
    }
}
