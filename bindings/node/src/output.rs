//! Collected output, read by offset. Reads are immediate.

use std::cell::Cell;
use std::rc::Rc;

use dsh_subprocess::{Collect, Error, ErrorKind, OutputReader, SpillState, TextCursor};
use napi::bindgen_prelude::{Buffer, Uint8Array};
use napi::{Env, Result};
use napi_derive::napi;

use crate::error;
use crate::executor::{Executor, Promise};
use crate::spec::whole;
use crate::tree::count;

/// The longest string of JavaScript, in its units, of which a byte of text is one at most (`buffer.constants.MAX_STRING_LENGTH`).
const LONGEST_TEXT: usize = (1 << 29) - 24;

/// One read as text.
#[napi(object)]
pub struct TextRead {
    pub text: String,
    pub next_offset: f64,
    pub gap: f64,
    pub spill_path: Option<String>,
}

/// One read as bytes.
#[napi(object)]
pub struct BytesRead {
    pub bytes: Buffer,
    pub offset: f64,
    pub next_offset: f64,
    pub gap: f64,
}

/// All that is retained.
#[napi(object)]
pub struct Snapshot {
    pub head: Buffer,
    pub tail: Buffer,
    pub total: f64,
    pub dropped: f64,
    pub sealed: bool,
}

/// What became of a spill.
#[napi(object)]
pub struct Spilled {
    pub state: String,
    pub path: Option<String>,
    pub bytes: Option<f64>,
    pub reason: Option<String>,
}

/// The reading end of a collected stream.
#[napi]
pub struct Reader {
    reader: OutputReader,
    executor: Rc<Executor>,
}

impl Reader {
    pub(crate) fn new(reader: OutputReader, executor: Rc<Executor>) -> Self {
        Self { reader, executor }
    }
}

#[napi]
impl Reader {
    /// Reads the text from an offset on.
    #[napi]
    pub fn read_text(&self, env: Env, offset: f64) -> Result<TextRead> {
        let read = TextCursor::new(whole(offset)).read(&self.reader);
        if read.text.len() > LONGEST_TEXT {
            let message = format!(
                "{} bytes from offset {offset} on are more than a string can hold: they can be read as bytes",
                read.text.len()
            );
            return Err(error::thrown(
                env,
                &Error::new(ErrorKind::Unsupported, "read", message),
            ));
        }
        let spill_path = match self.reader.spill() {
            SpillState::Available(spilled) => Some(spilled.location.to_string_lossy().into_owned()),
            _ => None,
        };
        Ok(TextRead {
            text: read.text,
            next_offset: count(read.next_offset),
            gap: count(read.gap),
            spill_path,
        })
    }

    /// Reads the bytes from an offset on.
    #[napi]
    pub fn read_bytes(&self, offset: f64) -> BytesRead {
        let read = self.reader.read_from(whole(offset));
        BytesRead {
            bytes: Vec::from(read.bytes).into(),
            offset: count(read.offset),
            next_offset: count(read.next_offset),
            gap: count(read.gap),
        }
    }

    /// Copies all that is retained.
    #[napi]
    pub fn snapshot(&self) -> Snapshot {
        let snapshot = self.reader.snapshot();
        Snapshot {
            dropped: count(snapshot.dropped()),
            head: Vec::from(snapshot.head).into(),
            tail: Vec::from(snapshot.tail).into(),
            total: count(snapshot.total),
            sealed: snapshot.sealed,
        }
    }

    /// Resolves when the stream has more than `offset` bytes, or has ended.
    #[napi]
    pub fn changed(&self, offset: f64) -> Result<Promise> {
        let changed = self.reader.changed(whole(offset));
        self.executor.promise(None, async move {
            changed.await;
            Ok(())
        })
    }

    /// Returns how many bytes the stream has so far.
    #[napi]
    pub fn total(&self) -> f64 {
        count(self.reader.total())
    }

    /// Tells whether the stream has ended.
    #[napi]
    pub fn sealed(&self) -> bool {
        self.reader.is_sealed()
    }

    /// Tells what became of the spill.
    #[napi]
    pub fn spill(&self) -> Spilled {
        let (state, path, bytes, reason) = match self.reader.spill() {
            SpillState::Available(spilled) => {
                let path = spilled.location.to_string_lossy().into_owned();
                ("available", Some(path), Some(count(spilled.length)), None)
            }
            SpillState::Withdrawn(reason) => ("withdrawn", None, None, Some(reason)),
            _ => ("none", None, None, None),
        };
        Spilled {
            state: state.to_owned(),
            path,
            bytes,
            reason,
        }
    }
}

/// The memory of ended streams, as far as the garbage collector knows of it: an object that holds a window looks small, and a
/// host that runs thousands of commands would have thousands of windows before the first is collected.
pub(crate) struct Windows {
    executor: Rc<Executor>,
    readers: Vec<(OutputReader, u64)>,
    accounted: Cell<i64>,
}

impl Windows {
    /// Takes readers and the most bytes that each retains.
    pub(crate) fn new(executor: Rc<Executor>, readers: Vec<(OutputReader, u64)>) -> Self {
        Self {
            executor,
            readers,
            accounted: Cell::new(0),
        }
    }

    /// The streams have ended: what is retained now stays.
    pub(crate) fn settle(&self) {
        let retained: u64 = self
            .readers
            .iter()
            .map(|(reader, most)| reader.total().min(*most))
            .sum();
        let retained = i64::try_from(retained).unwrap_or(i64::MAX);
        self.executor.account(retained - self.accounted.replace(retained));
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        self.executor.account(-self.accounted.get());
    }
}

/// A window of a stream that JavaScript itself fills.
#[napi]
pub struct Collector {
    collector: dsh_subprocess::Collector,
    reader: OutputReader,
}

#[napi]
impl Collector {
    /// Makes an empty window.
    #[napi(constructor)]
    pub fn new(max_bytes: f64, head_bytes: f64) -> Self {
        let bytes = |number| usize::try_from(whole(number)).unwrap_or(usize::MAX);
        let collect = Collect {
            max_bytes: bytes(max_bytes),
            head_bytes: bytes(head_bytes),
            spill: None,
        };
        let (collector, reader) = dsh_subprocess::Collector::new(&collect, None);
        Self { collector, reader }
    }

    /// Appends bytes.
    #[napi]
    pub fn push(&mut self, chunk: Uint8Array) {
        self.collector.push(&chunk);
    }

    /// Ends the stream.
    #[napi]
    pub fn seal(&mut self) {
        self.collector.seal();
    }

    /// Copies the retained tail.
    #[napi]
    pub fn tail(&self) -> Buffer {
        self.collector.tail().into()
    }

    /// Returns a reading end.
    #[napi]
    pub fn reader(&self, env: Env) -> Result<Reader> {
        Ok(Reader::new(self.reader.clone(), Executor::of(&env)?))
    }
}
