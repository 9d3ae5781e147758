//! The shell in a world without processes: what needs no process to be shown, in virtual time.
#![forbid(unsafe_code)]

mod background;
mod causes;
mod configuration;
mod facts;
mod holders;
mod jobs;
mod kept;
mod reads;
mod requests;
mod settlement;
mod stage;
