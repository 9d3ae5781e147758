//! What is to be done to a tree, and when. Pure: the time, in milliseconds, is an argument.

/// A step of the ladder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// `SIGTERM`, then `SIGCONT`, once to every member.
    Ask,
    /// `SIGKILL` until there is no member.
    Kill,
}

/// How far a tree is on its way to its end.
///
/// While the host lives, it decides on each step, and the ladder only remembers it. From the moment the tree is given up
/// the ladder goes on by itself, from where the host has left it: whoever was asked already is not asked again, and gets
/// what is left of the grace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ladder {
    asked_at: Option<u64>,
    killing: bool,
    /// The grace, once it climbs by itself.
    alone: Option<u64>,
}

impl Ladder {
    /// One that has not begun.
    pub const fn new() -> Self {
        Self {
            asked_at: None,
            killing: false,
            alone: None,
        }
    }

    /// Remembers that the members were asked.
    pub const fn asked(&mut self, now: u64) {
        self.asked_at = Some(now);
    }

    /// Remembers that they are being killed.
    pub const fn killed(&mut self) {
        self.killing = true;
    }

    /// Tells whether any step was made, or is to be made.
    pub const fn has_begun(&self) -> bool {
        self.asked_at.is_some() || self.killing || self.alone.is_some()
    }

    /// Tells whether they are being killed.
    pub const fn is_killing(&self) -> bool {
        self.killing
    }

    /// Lets it climb by itself, with this much time between the steps.
    pub const fn go_on_alone(&mut self, grace: u64) {
        if self.alone.is_none() {
            self.alone = Some(grace);
        }
    }

    /// Begins it anew, by itself: there are members that were not asked.
    pub const fn restart_alone(&mut self, grace: u64) {
        *self = Self {
            asked_at: None,
            killing: false,
            alone: Some(grace),
        };
    }

    /// Returns the step that is due, and remembers that it was made.
    pub const fn climb(&mut self, now: u64) -> Option<Step> {
        let Some(grace) = self.alone else { return None };
        if self.killing {
            return None;
        }
        match self.asked_at {
            None => {
                self.asked_at = Some(now);
                Some(Step::Ask)
            }
            Some(at) if now >= at.saturating_add(grace) => {
                self.killing = true;
                Some(Step::Kill)
            }
            Some(_) => None,
        }
    }

    /// Returns how long it is until a step is due.
    pub const fn wait(&self, now: u64) -> Option<u64> {
        match (self.alone, self.asked_at) {
            (Some(_), None) if !self.killing => Some(0),
            (Some(grace), Some(at)) if !self.killing => Some(at.saturating_add(grace).saturating_sub(now)),
            _ => None,
        }
    }
}
