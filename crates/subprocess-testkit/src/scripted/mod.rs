//! A world without any process, for the tests of consumers.
//!
//! Every other world has processes, and processes have their own time. Here a test says what a program does
//! ([`Script`]), steps the world's clock ([`ScriptedWorld::advance`]), and reads what was asked of it
//! ([`ScriptedWorld::requests`]). A consumer that is written against `&dyn SubprocessRuntime` runs unchanged, and meets what
//! no machine of this kind would show it on demand: a start that takes minutes, an owner that fails, a tree that
//! outlives `SIGKILL`, an exit code of 32 bits, a signal with a name of another system.
//!
//! * [`ScriptedWorld`]: the runtime.
//! * [`Script`], [`ScriptedMember`], [`Reaction`]: what its programs do.
//! * [`Request`], [`TerminalRequest`]: what was asked of it.

mod agenda;
mod driver;
mod facts;
mod inner;
mod perform;
mod record;
mod script;
mod spawn;
mod spill;
mod stream;
mod terminal;
mod tree;
mod world;

pub use record::{Delivery, Request, TerminationCause, TerminationRequest};
pub use script::{Reaction, Script, ScriptedMember};
pub use terminal::{Resize, ScriptedForeground, TerminalRequest};
pub use world::{Place, ScriptedWorld};
