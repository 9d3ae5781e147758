//! How much a registry keeps.

use crate::JobError;

/// How many jobs a registry keeps, and how often it wakes an owner. The unowned jobs together count as those of one
/// more owner.
///
/// ```
/// use dsh_jobs::{Jobs, Limits};
///
/// let jobs = Jobs::new(Limits { live_per_owner: 2, ..Limits::default() })?;
/// # drop(jobs);
/// assert!(Jobs::new(Limits { live_per_owner: 0, ..Limits::default() }).is_err());
/// # Ok::<_, dsh_jobs::JobError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Jobs of one owner that have not settled; a start beyond it is refused. At least 1; 10 by default.
    pub live_per_owner: usize,
    /// Settled jobs of one owner whose records and output are kept. Beyond it the oldest one that was
    /// [reported](crate::JobInfo::reported) is dropped, or else the oldest one, with its notice; the latest one stays.
    /// At least 1; 100 by default.
    pub settled_per_owner: usize,
    /// How many [notices](crate::Notice) in a row may [wake](crate::Delivery::Wake) an idle owner until its user has
    /// said something again. 0 wakes nobody; 3 by default.
    pub wakes_per_input: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            live_per_owner: 10,
            settled_per_owner: 100,
            wakes_per_input: 3,
        }
    }
}

impl Limits {
    pub(crate) fn validate(&self) -> Result<(), JobError> {
        for (name, value) in [
            ("live_per_owner", self.live_per_owner),
            ("settled_per_owner", self.settled_per_owner),
        ] {
            if value == 0 {
                return Err(JobError::BadLimit { name });
            }
        }
        Ok(())
    }
}
