//! The server as its clients meet it: rmcp's own client over byte streams and over HTTP, in the local world.

mod cases;
mod concurrency;
mod endings;
mod fixture;
mod http;
mod jobs;
mod modern;
mod notifications;
mod ownership;
mod raw;
mod resources;
mod stdio;
mod tools;
