//! The scripted world: that it keeps the contract, and that it shows consumers what no machine would on demand.

mod conformance;
mod ends;
mod late;
mod output;
mod pipes_only;
mod probe;
mod record;
mod setup;
mod terminal;
