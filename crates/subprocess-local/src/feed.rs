//! Data on its way to a child's standard input.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes};
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::pipe;

use crate::reactor::{Reactor, Source, lock};

/// Bytes written for one readiness event before the others get their turn.
const TURN: usize = 1024 * 1024;

/// The rest of the data, and the pipe that had no room for it.
#[derive(Debug)]
pub(crate) struct Feed {
    reactor: Arc<Reactor>,
    token: u64,
    rest: Mutex<Option<(OwnedFd, Bytes)>>,
}

impl Feed {
    /// Starts feeding. What fits into the pipe is in it already when this returns.
    pub(crate) fn start(
        reactor: &Arc<Reactor>,
        writer: OwnedFd,
        data: Bytes,
    ) -> std::io::Result<Option<Arc<Self>>> {
        let mut rest = data;
        if !Self::push(&writer, &mut rest) {
            return Ok(None);
        }
        let token = reactor.token();
        let feed = Arc::new(Self {
            reactor: Arc::clone(reactor),
            token,
            rest: Mutex::new(Some((writer, rest))),
        });
        let source = Source::Feed(Arc::clone(&feed));
        let held = lock(&feed.rest);
        if let Some((writer, _)) = held.as_ref() {
            reactor.watch(writer, token, Interest::Writable, source)?;
        }
        drop(held);
        Ok(Some(feed))
    }

    /// Writes what the pipe takes now. `true` when there is more to write and somebody who may read it.
    fn push(writer: &OwnedFd, rest: &mut Bytes) -> bool {
        let enough = rest.len().saturating_sub(TURN);
        while rest.len() > enough {
            match pipe::write(writer, rest) {
                Ok(written) => rest.advance(written),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return true,
                // The child does not want the rest: its right (contract item 32).
                Err(_) => return false,
            }
        }
        !rest.is_empty()
    }

    /// The pipe has room, or no reader any more.
    pub(crate) fn write(&self) {
        let mut rest = lock(&self.rest);
        if let Some((writer, data)) = rest.as_mut()
            && !Self::push(writer, data)
        {
            self.close(&mut rest);
        }
    }

    /// Stops feeding: nobody is left who could read.
    pub(crate) fn stop(&self) {
        self.close(&mut lock(&self.rest));
    }

    fn close(&self, rest: &mut Option<(OwnedFd, Bytes)>) {
        if let Some((writer, _)) = rest.take() {
            self.reactor.forget(&writer, self.token);
        }
    }
}
