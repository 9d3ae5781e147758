//! The file of a recording.
//!
//! It holds whole lines after every event, so that whatever ends this process leaves one that can be played. A recording
//! never disturbs what it records: when it cannot go on, it stops.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dsh_subprocess::TerminalSize;

use super::asciicast::{Events, Header};
use crate::failure::Failure;

/// A recording, from several threads.
#[derive(Clone)]
pub(super) struct Recording(Arc<Mutex<Tape>>);

struct Tape {
    path: PathBuf,
    file: File,
    /// How much of the file is whole lines.
    length: u64,
    events: Events,
    /// `None` before the first line. A recording that never begins leaves no file.
    began: Option<Instant>,
    /// Why it stopped.
    failure: Option<String>,
}

impl Recording {
    /// Makes the file, which must not be there yet.
    ///
    /// # Errors
    ///
    /// It is there, or cannot be made.
    pub(super) fn create(path: PathBuf) -> Result<Self, Failure> {
        // What a terminal shows is its user's alone.
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| {
                let why = match error.kind() {
                    io::ErrorKind::AlreadyExists => "it is there already; name a new file".to_owned(),
                    _ => error.to_string(),
                };
                Failure::new("record", format!("--record {}: {why}", path.display()))
            })?;
        Ok(Self(Arc::new(Mutex::new(Tape {
            path,
            file,
            length: 0,
            events: Events::default(),
            began: None,
            failure: None,
        }))))
    }

    /// Begins, with a terminal of this size and type.
    pub(super) fn begin(&self, size: TerminalSize, terminal_type: &str) {
        let shell = std::env::var_os("SHELL").map(|shell| shell.to_string_lossy().into_owned());
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let header = Header::new(size, since_epoch, shell, terminal_type.to_owned());
        let mut tape = self.lock();
        tape.began = Some(Instant::now());
        tape.append(&header.line());
    }

    /// Records what the terminal shows.
    pub(super) fn output(&self, bytes: &[u8]) {
        let mut tape = self.lock();
        let at = tape.elapsed();
        if let Some(line) = tape.events.output(at, bytes) {
            tape.append(&line);
        }
    }

    /// Records that the terminal has another size.
    pub(super) fn resize(&self, size: TerminalSize) {
        let mut tape = self.lock();
        let line = Events::resize(tape.elapsed(), size);
        tape.append(&line);
    }

    /// Ends it, and returns why it stopped before, if it did.
    pub(super) fn end(&self) -> Option<String> {
        let mut tape = self.lock();
        let at = tape.elapsed();
        if let Some(line) = tape.events.end(at) {
            tape.append(&line);
        }
        tape.failure.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Tape> {
        // Nothing under it is left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tape {
    fn elapsed(&self) -> Duration {
        self.began.map(|began| began.elapsed()).unwrap_or_default()
    }

    /// Writes a line, in one call.
    fn append(&mut self, line: &str) {
        if self.failure.is_some() {
            return;
        }
        match self.file.write_all(line.as_bytes()) {
            Ok(()) => self.length += line.len() as u64,
            Err(error) => {
                self.failure = Some(format!("--record {}: {error}", self.path.display()));
                // A part of the line may be there. A device that takes no more bytes still gives some back.
                let _ = self.file.set_len(self.length);
            }
        }
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        if self.began.is_none() {
            // Nothing was started. What is left is an empty file, in the way of the next try.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: TerminalSize = TerminalSize { rows: 24, cols: 80 };

    #[test]
    fn a_recording_that_never_began_leaves_no_file() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let path = directory.path().join("cast");
        drop(Recording::create(path.clone()).expect("it is new"));
        assert!(!path.exists());
    }

    #[test]
    fn what_was_recorded_is_in_the_file_at_once() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let path = directory.path().join("cast");
        let recording = Recording::create(path.clone()).expect("it is new");
        recording.begin(SIZE, "dumb");
        let mut lines = 1;
        for bytes in [&b"a"[..], b"\xe2\x82", b"\xac"] {
            recording.output(bytes);
            let text = fs::read_to_string(&path).expect("it is text");
            assert!(text.ends_with('\n'), "{text}");
            lines += usize::from(bytes != b"\xe2\x82");
            assert_eq!(text.lines().count(), lines, "{text}");
        }
        recording.resize(SIZE);
        assert_eq!(recording.end(), None);
    }

    #[test]
    fn a_write_that_fails_stops_it_and_is_told() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let recording = Recording::create(directory.path().join("cast")).expect("it is new");
        recording.begin(SIZE, "dumb");
        recording.lock().file = File::options()
            .write(true)
            .open("/dev/full")
            .expect("it is there");
        recording.output(b"a");
        recording.output(b"b");
        let why = recording.end().expect("it stopped");
        assert!(why.contains("cast: No space left"), "{why}");
    }
}
