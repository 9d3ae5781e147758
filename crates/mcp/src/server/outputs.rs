//! Outputs of commands that were waited for, kept because what the model saw of them was shortened.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dsh_subprocess::{OutputReader, StreamName};
use tokio::sync::watch;

/// The truncated outputs of one session, and word of new ones.
pub(super) struct Outputs {
    kept: Mutex<Kept>,
    limit: usize,
    /// How often what can be read has changed.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Kept {
    runs: VecDeque<Run>,
    last: u64,
}

/// One command's truncated streams.
#[derive(Clone)]
pub(super) struct Run {
    /// `run-N`, N from 1.
    pub(super) id: String,
    pub(super) streams: Vec<(StreamName, OutputReader)>,
}

impl Outputs {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            kept: Mutex::default(),
            limit,
            changes: watch::Sender::new(0),
        }
    }

    /// Keeps a command's streams, in place of the oldest where there are too many, and returns the id to find them by.
    ///
    /// A stream's file lives as long as one of its readers, so the oldest one's goes.
    pub(super) fn keep(&self, streams: Vec<(StreamName, OutputReader)>) -> String {
        let mut kept = self.lock();
        kept.last += 1;
        let id = format!("run-{}", kept.last);
        if kept.runs.len() >= self.limit {
            kept.runs.pop_front();
        }
        kept.runs.push_back(Run {
            id: id.clone(),
            streams,
        });
        drop(kept);
        self.changed();
        id
    }

    /// Finds a stream.
    pub(super) fn find(&self, id: &str, stream: StreamName) -> Option<OutputReader> {
        let kept = self.lock();
        let run = kept.runs.iter().find(|run| run.id == id)?;
        let found = run.streams.iter().find(|(name, _)| *name == stream)?;
        Some(found.1.clone())
    }

    /// Lists what is kept, the oldest first.
    pub(super) fn list(&self) -> Vec<Run> {
        self.lock().runs.iter().cloned().collect()
    }

    /// Lets everything go.
    pub(super) fn clear(&self) {
        self.lock().runs.clear();
    }

    /// Says that there is something else to be read than before.
    pub(super) fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Tells of changes from now on.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use dsh_subprocess::{Collect, Collector};

    use super::*;

    fn stream(content: &[u8]) -> Vec<(StreamName, OutputReader)> {
        let collect = Collect {
            max_bytes: 100,
            head_bytes: 0,
            spill: None,
        };
        let (mut collector, reader) = Collector::new(&collect, None);
        collector.push(content);
        vec![(StreamName::Stdout, reader)]
    }

    #[test]
    fn the_oldest_goes_first_and_no_id_comes_twice() {
        let outputs = Outputs::new(2);
        let ids: Vec<String> = [b"a", b"b", b"c"]
            .map(|content| outputs.keep(stream(content)))
            .into();
        assert_eq!(ids, ["run-1", "run-2", "run-3"]);
        assert!(outputs.find("run-1", StreamName::Stdout).is_none());
        let second = outputs.find("run-2", StreamName::Stdout).expect("it is kept");
        assert_eq!(second.text(), "b");
        assert!(outputs.find("run-2", StreamName::Stderr).is_none());
        assert_eq!(outputs.list().len(), 2);
    }

    #[test]
    fn new_outputs_are_told_of() {
        let outputs = Outputs::new(2);
        let mut changes = outputs.changes();
        assert!(!changes.has_changed().expect("the sender is there"));
        outputs.keep(stream(b"a"));
        assert!(changes.has_changed().expect("the sender is there"));
        changes.mark_unchanged();
        assert!(!changes.has_changed().expect("the sender is there"));
    }
}
