//! Whether the foreground process group of a terminal waits for input from it.
//!
//! A program at its prompt is blocked in a system call on the terminal. [`input_waiting`] looks for such a thread and says
//! [`Proven`](InputWaiting::Proven) of nothing less: standard input may be a pipe, and the terminal may be read by any other
//! descriptor. Where the look was not possible the answer is [`Unknown`](InputWaiting::Unknown), with the reason.
//!
//! * `waiting`: the members of the group, and their threads
//! * `thread`: one thread, seen to wait twice
//! * `call`: the system calls that wait for input, by their numbers
//! * `wanted`: the descriptors that such a call waits for
//! * `descriptor`: what a descriptor is, and what an epoll set holds
//! * `terminal`: which descriptor is the terminal
//! * `directory`: one process's or thread's directory of `/proc`, by descriptor
//! * `text`: what is read there; pure
//! * `answer`: what a look comes to

mod answer;
mod call;
mod descriptor;
mod directory;
mod terminal;
mod text;
mod thread;
mod waiting;
mod wanted;

#[cfg(test)]
mod tests;

pub use answer::{InputWaiting, Unseen};
pub use terminal::TerminalId;
pub use waiting::input_waiting;
