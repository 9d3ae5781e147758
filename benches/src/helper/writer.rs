//! A program that writes as fast as a pipe or a terminal takes it.

use anyhow::Result;

/// Bytes per write. More than a pipe holds, so that the kernel refills the pipe without a call in between.
pub(super) const CHUNK: usize = 256 * 1024;

/// Writes this many bytes to standard output, of this chunk over and over.
pub(super) fn write(total: u64, chunk: &[u8]) -> Result<()> {
    let mut left = total;
    let mut at = 0;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len() - at);
        let written = rustix::io::write(rustix::stdio::stdout(), &chunk[at..at + length])?;
        left -= written as u64;
        at = (at + written) % chunk.len();
    }
    Ok(())
}
