//! One processor for both sides of a terminal.

use anyhow::{Context as _, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Keeps this thread, and the processes that it starts, on one processor until this is dropped.
///
/// Where the scheduler puts the two sides of a terminal makes a round trip of 8 µs one of 60, and changes from one sample to the
/// next; on one processor what is measured is the work.
pub(super) struct OneProcessor {
    before: CpuSet,
}

impl OneProcessor {
    /// Stays on the processor where this thread is now.
    pub(super) fn stay() -> Result<Self> {
        let before = sched_getaffinity(None).context("the processors cannot be told")?;
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        sched_setaffinity(None, &here).context("no processor can be chosen")?;
        Ok(Self { before })
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        // Processors that are gone meanwhile are no reason to fail what was measured.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_processor_is_used_until_the_drop() {
        let before = sched_getaffinity(None).expect("it can be asked");
        let one = OneProcessor::stay().expect("a processor can be chosen");
        assert_eq!(sched_getaffinity(None).expect("it can be asked").count(), 1);
        drop(one);
        assert_eq!(sched_getaffinity(None).expect("it can be asked"), before);
    }
}
