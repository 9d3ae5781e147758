//! Where the output of a session goes: to a recording, to a collector, and before somebody's eyes.

use std::io::{self, Write};

use dsh_subprocess::Collector;

use super::record::Recording;
use super::user::Display;

/// All the places that there are. A failure is the display's: nothing else has one that the session would notice.
pub(super) struct Screen {
    display: Option<Display>,
    collector: Option<Collector>,
    recording: Option<Recording>,
}

impl Screen {
    pub(super) fn new(
        display: Option<Display>,
        collector: Option<Collector>,
        recording: Option<Recording>,
    ) -> Self {
        Self {
            display,
            collector,
            recording,
        }
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The recording first: its time is that of the bytes, not that of a slow reader.
        if let Some(recording) = &self.recording {
            recording.output(bytes);
        }
        if let Some(collector) = &mut self.collector {
            collector.push(bytes);
        }
        if let Some(display) = &mut self.display {
            display.writer.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(collector) = &mut self.collector {
            collector.seal();
        }
    }
}
