//! A program that writes as fast as a pipe takes it.

use anyhow::Result;

/// Bytes per write. More than a pipe holds, so that the kernel refills the pipe without a call in between.
const CHUNK: usize = 256 * 1024;

/// Writes this many bytes to standard output.
pub(super) fn write(total: u64) -> Result<()> {
    let chunk = vec![b'.'; CHUNK];
    let mut left = total;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK);
        left -= rustix::io::write(rustix::stdio::stdout(), &chunk[..length])? as u64;
    }
    Ok(())
}
