//! What is read of a thread that may wait for input: its own words and memory, so any program chooses them. What was read of a
//! line is read again when it is written as the kernel writes it.

#![no_main]

#[path = "../../crates/subprocess-sys/src/linux/foreground/text.rs"]
mod text;

use libfuzzer_sys::fuzz_target;
use text::{POLLED, Position, WORD};

fuzz_target!(|bytes: &[u8]| {
    if let Some(Position::Call(call)) = text::position(bytes) {
        let mut line = call.number.to_string();
        for word in call
            .arguments
            .iter()
            .chain([&call.stack_pointer, &call.program_counter])
        {
            line += &format!(" {word:#x}");
        }
        assert_eq!(text::position(line.as_bytes()), Some(Position::Call(call)));
    }
    if let Ok(Some(watch)) = text::watch(bytes) {
        let line = format!(
            "tfd: {:8} events: {:8x} data: {:16x}  pos:0 ino:{:x} sdev:{:x}",
            watch.descriptor, watch.events, 0, watch.inode, watch.device,
        );
        assert_eq!(text::watch(line.as_bytes()), Ok(Some(watch)));
    }
    // The command, which any program chooses for itself, does not change what is read after it.
    let after = bytes
        .iter()
        .rposition(|&byte| byte == b')')
        .unwrap_or(bytes.len());
    let (command, fields) = bytes.split_at(after);
    let doubled = [b"1 (", command, command, fields].concat();
    assert_eq!(text::stat(&doubled), text::stat(bytes));

    assert_eq!(text::polled(bytes).count(), bytes.len() / POLLED);
    let words = &bytes[..bytes.len() / WORD * WORD];
    let set: u32 = words.iter().map(|byte| byte.count_ones()).sum();
    assert_eq!(text::members(bytes, 0).count(), set as usize);
});
