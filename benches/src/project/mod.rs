//! This project, used the way its README says: a thread that blocks on a future, no executor.

mod terminal;
mod tier;
mod world;

pub(crate) use terminal::WorldTerminals;
pub(crate) use tier::{CGROUP, REAPER, Tier, owning_tiers, tiers};
pub(crate) use world::{World, spill};
