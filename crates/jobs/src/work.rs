//! What a registry asks of the work behind a job.

use std::error::Error;

use dsh_subprocess::{OutputReader, StreamName};
use futures_core::future::BoxFuture;

/// An error of the code behind a job, of whatever type.
pub type ForeignError = Box<dyn Error + Send + Sync>;

/// Work that goes on in the background: a command, a request, a computation. The registry names it, and asks it for the
/// following only.
///
/// Each of [`outputs`](Self::outputs), [`shown`](Self::shown) and [`settled`](Self::settled) is called once, right after the start. The
/// registry lets go of the work when it has settled, and keeps the readers of its streams for as long as it keeps the
/// job.
pub trait Work: Send + Sync + 'static {
    /// Returns its streams, each name once. None for work that has only a final output.
    fn outputs(&self) -> Vec<(StreamName, OutputReader)>;

    /// Returns how much of each stream, in the order of [`outputs`](Self::outputs), the owner has been shown already: the first
    /// [read](crate::JobSession::read) begins there. The default is nothing, and so is what is missing.
    fn shown(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Begins its end, and does not wait for it. It may be called again, and at any time before the settlement was
    /// seen.
    ///
    /// # Errors
    ///
    /// Says why the work cannot be ended. A panic is taken as an error.
    fn cancel(&self) -> Result<(), ForeignError>;

    /// Resolves once the work is over, however it ended: an error settles the job as
    /// [`Failed`](crate::JobStatus::Failed), and so does a panic.
    ///
    /// After a success the registry waits for the streams to be sealed before anybody is told, so that a read made
    /// after the settlement was seen misses nothing. A work that fails seals its streams before it says so, unless the
    /// failure is that it cannot: then what still comes is read as before, and nobody is told of it.
    fn settled(&self) -> BoxFuture<'static, Result<Settlement, ForeignError>>;
}

/// How work ended that did not fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settlement {
    /// Whether it came to its own end or was ended.
    pub status: Settled,
    /// The facts of it in a few words, as in `exit code: 3` or `signal: SIGKILL`.
    pub detail: Option<String>,
    /// Its final output, where it has no streams or something to say beside them. Every read of the settled job gives
    /// it.
    pub output: Option<String>,
}

/// The two ways to end without failing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Settled {
    /// It came to its own end; a command that exited with another code than 0 did, too.
    Completed,
    /// It was ended: by whoever cancelled it, or by a signal from elsewhere.
    Killed,
}
