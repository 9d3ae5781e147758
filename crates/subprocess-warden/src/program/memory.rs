//! All that a warden keeps in memory.

use crate::directories::Directories;
use crate::members::Members;
use crate::pid_set::PidSet;
use crate::protocol::{PACKET, Packet};

/// Buffers and sets of a fixed size, for the longest packet and the highest process number. Each is zeroes at first, and
/// most of it stays so: a page that is not touched takes no memory.
#[derive(Debug)]
pub struct Memory {
    /// What was received.
    pub packet: [u8; PACKET],
    /// What is to be sent.
    pub reply: Packet,
    /// The members of this warden's trees.
    pub members: Members,
    /// What is to be removed; the runtime warden's.
    pub directories: Directories,
    /// Empty between two uses.
    pub scratch: PidSet,
}

impl Memory {
    /// As the program begins with it.
    pub const fn new() -> Self {
        Self {
            packet: [0; PACKET],
            reply: Packet::new(),
            members: Members::new(),
            directories: Directories::new(),
            scratch: PidSet::new(),
        }
    }
}
