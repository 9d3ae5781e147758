//! The registry as its users see it, item by item.

mod access;
mod concurrency;
mod end;
mod fixture;
mod kill;
mod notice;
mod read;
mod settle;
mod start;
mod wait;
