//! A line of the process table: the command in it, which any program chooses for itself, does not change what is read after
//! it.

#![no_main]

use dsh_subprocess_sys::table::parse_entry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let entry = parse_entry(bytes);
    let after = bytes
        .iter()
        .rposition(|&byte| byte == b')')
        .unwrap_or(bytes.len());
    let (command, fields) = bytes.split_at(after);
    assert_eq!(parse_entry(&[b"1 (", command, command, fields].concat()), entry);
});
