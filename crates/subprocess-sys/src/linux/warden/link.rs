//! The host's end of a connection with a warden.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use dsh_subprocess_warden::protocol::{DESCRIPTORS, Packet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, RecvMsg, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg,
    socketpair,
};

use super::super::pipe::above_standard;

/// One end of a connection that carries whole packets, and descriptors beside them.
///
/// ```
/// use dsh_subprocess_sys::warden::{Link, protocol::{PACKET, Packet, ToRuntime}};
/// use std::{os::fd::AsFd, time::Duration};
/// let (ours, theirs) = Link::pair()?;
/// let theirs = Link::from(theirs);
/// let mut packet = Packet::new();
/// ToRuntime::Tree.encode(&mut packet)?;
/// ours.send(&packet, &[std::io::stdin().as_fd()])?;
///
/// assert!(theirs.wait(Duration::from_secs(1))?);
/// let (mut bytes, mut descriptors) = ([0; PACKET], Vec::new());
/// let length = theirs.receive(&mut bytes, &mut descriptors)?.expect("a packet is there");
/// assert_eq!(ToRuntime::decode(&bytes[..length])?, ToRuntime::Tree);
/// assert_eq!(descriptors.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Link(OwnedFd);

impl From<OwnedFd> for Link {
    fn from(socket: OwnedFd) -> Self {
        Self(socket)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Link {
    /// Makes a connection. Both ends are close-on-exec and numbered 3 or more.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENFILE`.
    pub fn pair() -> Result<(Self, OwnedFd), Errno> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(above_standard(ours)?), above_standard(theirs)?))
    }

    /// Sends a packet, with at most [`DESCRIPTORS`] descriptors. It never waits and never raises `SIGPIPE`.
    ///
    /// # Errors
    ///
    /// `EAGAIN` when the other side has not read for long, `EPIPE` or `ECONNRESET` when it is gone,
    /// `ETOOMANYREFS` when too many descriptors are on their way, `EINVAL` for more descriptors than a packet may have.
    pub fn send<const ROOM: usize>(
        &self,
        packet: &Packet<ROOM>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Errno> {
        // The space is rounded up, so it may hold one more.
        if descriptors.len() > DESCRIPTORS {
            return Err(Errno::INVAL);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(Errno::INVAL);
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            match sendmsg(&self.0, &[IoSlice::new(packet.bytes())], &mut beside, flags) {
                Err(Errno::INTR) => {}
                // A packet is sent whole or not at all.
                sent => return sent.map(drop),
            }
        }
    }

    /// Receives a packet into a buffer of [`PACKET`](dsh_subprocess_warden::protocol::PACKET) bytes, and returns its length: 0
    /// when the other side has hung up, `None` when there is none yet. Its descriptors, close-on-exec, are added to the
    /// list. It never waits.
    ///
    /// # Errors
    ///
    /// `EPROTO` for a packet that is longer than the buffer, or has more descriptors than the protocol knows or this process
    /// has numbers for; the descriptors are closed then.
    pub fn receive(&self, buffer: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> Result<Option<usize>, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            match self.receive_with(buffer, &mut beside) {
                Err(Errno::CONNRESET) => {}
                Ok(None) => return Ok(None),
                Ok(Some(received)) => break received,
                Err(errno) => return Err(errno),
            }
        };
        let sent: Vec<OwnedFd> = beside
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        let cut = received
            .flags
            .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
        if cut || sent.len() > DESCRIPTORS {
            return Err(Errno::PROTO);
        }
        descriptors.extend(sent);
        Ok(Some(received.bytes))
    }

    /// As [`receive`](Self::receive), for packets whose descriptors are not wanted: the kernel closes them (unix(7)), and this
    /// process needs no number for them.
    ///
    /// # Errors
    ///
    /// `EPROTO` for a packet that is longer than the buffer; `ECONNRESET`, once, when the other side has hung up with the last
    /// packet of this one unread: what it had sent itself is still to be received.
    pub fn receive_bytes(&self, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
        match self.receive_with(buffer, &mut RecvAncillaryBuffer::default())? {
            None => Ok(None),
            Some(received) if received.flags.contains(ReturnFlags::TRUNC) => Err(Errno::PROTO),
            Some(received) => Ok(Some(received.bytes)),
        }
    }

    /// `ECONNRESET` is told once, when the other side has hung up with packets of this one unread, and before the packets that
    /// it had sent itself.
    fn receive_with(
        &self,
        buffer: &mut [u8],
        beside: &mut RecvAncillaryBuffer<'_>,
    ) -> Result<Option<RecvMsg>, Errno> {
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(buffer)], beside, flags) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                result => return result.map(Some),
            }
        }
    }

    /// Waits until there is a packet, or the other side has hung up; for at most `bound`. Returns whether it is so.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn wait(&self, bound: Duration) -> Result<bool, Errno> {
        wait_readable(&self.0, bound)
    }
}

/// Waits until a descriptor is readable, for at most `bound`.
pub(super) fn wait_readable(descriptor: impl AsFd, bound: Duration) -> Result<bool, Errno> {
    let deadline = Instant::now() + bound;
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        match poll(&mut polled, Some(&left)) {
            Err(Errno::INTR) => {}
            result => return Ok(result? > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_subprocess_warden::protocol::{PACKET, ToRuntime};

    fn packet(message: ToRuntime<'_>) -> Packet {
        let mut packet = Packet::new();
        message.encode(&mut packet).expect("it fits");
        packet
    }

    fn receive(link: &Link) -> Result<Option<usize>, Errno> {
        link.receive(&mut vec![0; PACKET], &mut Vec::new())
    }

    fn pair() -> (Link, Link) {
        let (one, other) = Link::pair().expect("a connection");
        (one, Link::from(other))
    }

    #[test]
    fn nothing_to_receive_is_no_packet_and_a_hang_up_is_an_empty_one() {
        let (one, other) = pair();
        assert_eq!(receive(&one), Ok(None));
        assert_eq!(one.wait(Duration::ZERO), Ok(false));
        drop(other);
        assert_eq!(one.wait(Duration::from_secs(10)), Ok(true));
        assert_eq!(receive(&one), Ok(Some(0)));
        assert_eq!(one.send(&packet(ToRuntime::Goodbye), &[]), Err(Errno::PIPE));
    }

    #[test]
    fn packets_sent_before_a_hang_up_arrive_also_when_the_other_side_has_read_nothing() {
        let (one, other) = pair();
        one.send(&packet(ToRuntime::Tree), &[]).expect("it is sent");
        other.send(&packet(ToRuntime::Goodbye), &[]).expect("it is sent");
        drop(other);
        assert_eq!(receive(&one), Ok(Some(1)));
        assert_eq!(receive(&one), Ok(Some(0)));
    }

    #[test]
    fn more_descriptors_than_the_protocol_knows_are_refused_on_both_sides() {
        let (one, other) = pair();
        let many = [one.as_fd(); DESCRIPTORS + 1];
        assert_eq!(one.send(&packet(ToRuntime::Tree), &many), Err(Errno::INVAL));

        let more = [one.as_fd(); DESCRIPTORS + 9];
        for count in [DESCRIPTORS + 1, more.len()] {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS + 9))];
            let mut beside = SendAncillaryBuffer::new(&mut space);
            assert!(beside.push(SendAncillaryMessage::ScmRights(&more[..count])));
            sendmsg(&one, &[IoSlice::new(b"x")], &mut beside, SendFlags::empty()).expect("it is sent");
            assert_eq!(receive(&other), Err(Errno::PROTO), "{count} descriptors");
        }
    }

    #[test]
    fn a_packet_that_is_too_long_is_refused() {
        let (one, other) = pair();
        let long = vec![0; PACKET + 1];
        rustix::net::send(&one, &long, SendFlags::empty()).expect("it is sent");
        assert_eq!(receive(&other), Err(Errno::PROTO));
    }
}
