//! What host and wardens say to each other: bytes are no message, or the only way to say it.

#![no_main]

use dsh_subprocess_warden::protocol::{FromRuntime, FromTree, Packet, ToRuntime, ToTree};
use libfuzzer_sys::fuzz_target;

/// Reads the bytes as a message, writes it, and reads it again.
macro_rules! round_trip {
    ($message:ident, $bytes:expr) => {
        if let Ok(message) = $message::decode($bytes) {
            let mut packet = Packet::new();
            message.encode(&mut packet).expect("it came in a packet");
            assert_eq!(packet.bytes(), $bytes);
            assert_eq!($message::decode(packet.bytes()), Ok(message));
        }
    };
}

fuzz_target!(|bytes: &[u8]| {
    // A longer one is refused before it is read.
    let bytes = &bytes[..bytes.len().min(dsh_subprocess_warden::protocol::PACKET)];
    round_trip!(ToRuntime, bytes);
    round_trip!(FromRuntime, bytes);
    round_trip!(ToTree, bytes);
    round_trip!(FromTree, bytes);
});
