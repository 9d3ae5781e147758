//! Background work with an owner: started, listed, read, awaited, ended, and never lost.
//!
//! A registry, [`Jobs`], gives names to work that goes on by itself, and keeps each job within reach of the one who
//! started it. It knows nothing of processes: what a job does is a [`Work`], and what it prints is read through the
//! [readers](dsh_subprocess::OutputReader) of the seam.
//!
//! * A [`JobSession`] is what an owner (a conversation, a connection) holds. It sees its own jobs and those that belong
//!   to nobody, and its end ends its jobs.
//! * A job settles once, whatever happens at the same time, and only after its streams have: who sees it settled and
//!   then reads misses nothing.
//! * Its owner is told of the end once: by the read, the wait or the kill that was answered with it, or else by a
//!   [`Notice`].
//!
//! An example is at [`Jobs`].
#![forbid(unsafe_code)]

// Pure, with time as an argument.
mod ledger;
mod life;
mod notice;

// The registry, by what happens to a job.
mod end;
mod owner;
mod reading;
mod registry;
mod settle;
mod start;
mod state;
mod wait;

mod error;
mod id;
mod job;
mod limits;
mod session;
mod work;

pub use error::{JobError, Orphan};
pub use id::{JobId, OwnerId, ParseJobIdError};
pub use job::{JobInfo, JobRead, JobStatus, Kill, NewJob, StreamDelta};
pub use limits::Limits;
pub use notice::{Delivery, Notice};
pub use registry::Jobs;
pub use session::JobSession;
pub use work::{ForeignError, Settled, Settlement, Work};
