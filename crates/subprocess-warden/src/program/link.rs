//! Packets, and the descriptors that travel with them (unix(7), cmsg(3)).

use crate::abi::flag::{
    MSG_CMSG_CLOEXEC, MSG_CTRUNC, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_TRUNC, SCM_RIGHTS, SOL_SOCKET,
};
use crate::abi::{errno, number};
use crate::descriptor::{Descriptor, SOCKET, close};
use crate::protocol::{DESCRIPTORS, Malformed, PACKET};
use crate::syscall::{check, fd, syscall};

/// Bytes of `struct cmsghdr`: the length of the whole, a level and a type.
const CONTROL_HEADER: usize = 16;
/// Words of room for control data: a header and more descriptors than there should be, so that those can be closed.
const CONTROL_WORDS: usize = 8;

/// `struct iovec`.
#[repr(C)]
struct Part {
    base: usize,
    length: usize,
}

/// `struct msghdr`.
#[repr(C)]
struct Message {
    name: usize,
    name_length: u32,
    parts: usize,
    part_count: usize,
    control: usize,
    control_length: usize,
    flags: i32,
}

/// Descriptors that came with a packet, in their order.
#[derive(Debug, Default)]
pub struct Arrived {
    descriptors: [Option<Descriptor>; DESCRIPTORS],
    /// Some did not come, since this process or the system cannot have more, or there were too many.
    pub lost: bool,
    taken: usize,
}

impl Arrived {
    /// Takes the next one.
    pub fn take(&mut self) -> Result<Descriptor, Malformed> {
        let next = self.descriptors.get_mut(self.taken).and_then(Option::take);
        self.taken += 1;
        next.ok_or(Malformed)
    }

    /// Says that there should be no more.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.lost || self.descriptors.iter().any(Option::is_some) {
            return Err(Malformed);
        }
        Ok(())
    }
}

/// What was on the socket.
#[derive(Debug)]
pub enum Received<'packet> {
    /// A packet.
    Packet(&'packet [u8], Arrived),
    /// Nothing yet.
    Nothing,
    /// Its other end is closed; or what came is no packet.
    HungUp,
}

/// Receives a packet, if there is one.
pub fn receive(packet: &mut [u8; PACKET]) -> Received<'_> {
    let mut control = [0_u64; CONTROL_WORDS];
    let mut part = Part {
        base: packet.as_mut_ptr().expose_provenance(),
        length: PACKET,
    };
    let mut message = Message {
        name: 0,
        name_length: 0,
        parts: (&raw mut part).expose_provenance(),
        part_count: 1,
        control: control.as_mut_ptr().expose_provenance(),
        control_length: size_of_val(&control),
        flags: 0,
    };
    let flags = fd(MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    let arguments = [fd(SOCKET), (&raw mut message).expose_provenance(), flags, 0, 0, 0];
    let length = loop {
        // SAFETY: the message names a writable packet and writable control data, with their lengths.
        match check(unsafe { syscall(number::recvmsg, arguments) }) {
            Ok(length) => break length,
            // The host hung up and has not read all it was told. That is said once, and before what it had sent itself.
            Err(errno::ECONNRESET) => {}
            Err(errno::EAGAIN | errno::EINTR) => return Received::Nothing,
            Err(_) => return Received::HungUp,
        }
    };
    let mut arrived = arrived(&control, message.control_length);
    arrived.lost |= message.flags & MSG_CTRUNC != 0;
    // No packet of the protocol is empty, so nothing received is the end of all.
    match packet.get(..length) {
        Some(bytes) if length > 0 && message.flags & MSG_TRUNC == 0 => Received::Packet(bytes, arrived),
        _ => Received::HungUp,
    }
}

/// Takes over the descriptors in control data. There is one header at most: the kernel puts all descriptors of a packet
/// under one.
fn arrived(control: &[u64; CONTROL_WORDS], filled: usize) -> Arrived {
    let mut arrived = Arrived::default();
    if filled < CONTROL_HEADER {
        return arrived;
    }
    let length = (control[0] as usize).min(filled);
    let [level, kind] = halves(control[1]);
    if level != SOL_SOCKET || kind != SCM_RIGHTS {
        return arrived;
    }
    let count = length.saturating_sub(CONTROL_HEADER) / size_of::<i32>();
    let numbers = control.iter().skip(2).flat_map(|word| halves(*word));
    for (index, number) in numbers.take(count).enumerate() {
        if let Some(place) = arrived.descriptors.get_mut(index) {
            *place = Some(Descriptor::adopt(number));
        } else {
            close(number);
            arrived.lost = true;
        }
    }
    arrived
}

/// Returns the two numbers in a word, in the order in which they lie in memory.
const fn halves(word: u64) -> [i32; 2] {
    let (low, high) = (word as u32 as i32, (word >> 32) as i32);
    if cfg!(target_endian = "little") {
        [low, high]
    } else {
        [high, low]
    }
}

/// Returns the word in which two numbers lie in this order.
const fn word(numbers: [i32; 2]) -> u64 {
    let [low, high] = if cfg!(target_endian = "little") {
        numbers
    } else {
        [numbers[1], numbers[0]]
    };
    low as u32 as u64 | (high as u32 as u64) << 32
}

/// Sends a packet, with a descriptor where there is one. It never waits: the host reads what it is told, and one that has
/// let so much pile up is as good as gone.
pub fn send(packet: &[u8], descriptor: Option<&Descriptor>) -> Result<(), i32> {
    let mut control = [0_u64; 3];
    let part = Part {
        base: packet.as_ptr().expose_provenance(),
        length: packet.len(),
    };
    let mut message = Message {
        name: 0,
        name_length: 0,
        parts: (&raw const part).expose_provenance(),
        part_count: 1,
        control: 0,
        control_length: 0,
        flags: 0,
    };
    if let Some(descriptor) = descriptor {
        control[0] = (CONTROL_HEADER + size_of::<i32>()) as u64;
        control[1] = word([SOL_SOCKET, SCM_RIGHTS]);
        control[2] = word([descriptor.number(), 0]);
        message.control = control.as_ptr().expose_provenance();
        message.control_length = size_of_val(&control);
    }
    let flags = fd(MSG_DONTWAIT | MSG_NOSIGNAL);
    let arguments = [
        fd(SOCKET),
        (&raw const message).expose_provenance(),
        flags,
        0,
        0,
        0,
    ];
    // SAFETY: the message names a readable packet and whole control data, with their lengths.
    check(unsafe { syscall(number::sendmsg, arguments) }).map(drop)
}
