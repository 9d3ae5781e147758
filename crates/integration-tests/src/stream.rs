//! Calls that write.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use crate::{Answer, announce, number};

/// `chatter`: writes `tick N` every 10 ms, for ever.
pub(crate) fn chatter() -> Answer {
    let mut count = 0_u64;
    loop {
        announce(format!("tick {count}"))?;
        count += 1;
        thread::sleep(Duration::from_millis(10));
    }
}

/// `flood BYTES [--stderr]`: writes that many bytes of the numbered stream as fast as they are taken.
pub(crate) fn flood(args: &[String]) -> Answer {
    let mut left: u64 = number(args, 0, "the number of bytes")?;
    let mut out = output(args.get(1));
    let mut record = 0;
    while left > 0 {
        let mut block = Vec::with_capacity(65_536);
        while block.len() < 65_536 {
            block.extend_from_slice(numbered(record).as_bytes());
            record += 1;
        }
        let length = usize::try_from(left).map_or(block.len(), |left| left.min(block.len()));
        out.write_all(&block[..length])?;
        left -= length as u64;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// `chunks BYTES [--stderr]`: writes that many bytes of the numbered stream, one byte to a write.
pub(crate) fn chunks(args: &[String]) -> Answer {
    let count: usize = number(args, 0, "the number of bytes")?;
    let mut out = output(args.get(1));
    for byte in (0..).flat_map(|record| numbered(record).into_bytes()).take(count) {
        out.write_all(&[byte])?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `pieces HEX… [--stderr]`: writes the next piece, in one write, for each byte it reads.
pub(crate) fn pieces(args: &[String]) -> Answer {
    let mut out = output(args.last());
    let mut input = io::stdin().lock();
    for piece in args.iter().filter(|argument| !argument.starts_with("--")) {
        input.read_exact(&mut [0])?;
        out.write_all(&bytes(piece)?)?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One record of the numbered stream: 16 bytes that tell their own place in it.
fn numbered(record: u64) -> String {
    format!("{record:015}\n")
}

fn output(option: Option<&String>) -> Box<dyn Write> {
    if option.is_some_and(|option| option == "--stderr") {
        Box::new(io::stderr())
    } else {
        Box::new(io::stdout())
    }
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    (0..hex.len())
        .step_by(2)
        .map(|at| {
            hex.get(at..at + 2)
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .ok_or_else(|| format!("`{hex}` is not hexadecimal"))
        })
        .collect()
}
