//! Files in memory that others are handed: sealed, so that whoever maps one is never surprised by a change of its size.

use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create, open};
use rustix::io::Errno;

use super::pipe::above_standard;

/// Nobody may change the size any more, nor these seals.
const FIXED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Makes a zeroed file of a fixed length.
pub(super) fn zeroed(length: u64) -> Result<OwnedFd, Errno> {
    let file = data_file()?;
    ftruncate(&file, length)?;
    seal(&file, FIXED)?;
    Ok(file)
}

/// Makes a file of these bytes, which nobody may change.
pub(super) fn of(bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let file = data_file()?;
    write_all(&file, bytes)?;
    seal(&file, FIXED | SealFlags::WRITE)?;
    Ok(file)
}

/// Makes a file of these bytes, which nobody may change, and which may be executed where the system's policy allows it at
/// all (`vm.memfd_noexec`, Linux 6.3).
pub(super) fn executable(bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let file = create(MemfdFlags::EXEC)?;
    write_all(&file, bytes)?;
    fcntl_add_seals(&file, FIXED | SealFlags::WRITE)?;
    Ok(file)
}

/// A file in memory; or, where a filter of system calls refuses those, one without a name on disk.
fn data_file() -> Result<OwnedFd, Errno> {
    match create(MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => nameless(),
        created => created,
    }
}

fn create(executable: MemfdFlags) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let created = match memfd_create(c"dsh-subprocess", flags | executable) {
        // A kernel before 6.3, which executes whatever has the mode for it, as every such file does.
        Err(Errno::INVAL) => memfd_create(c"dsh-subprocess", flags),
        created => created,
    };
    above_standard(created?)
}

fn nameless() -> Result<OwnedFd, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    above_standard(open(std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR)?)
}

/// A file on disk has no seals; its one other owner is a warden, and this process changes nothing.
fn seal(file: &OwnedFd, seals: SealFlags) -> Result<(), Errno> {
    match fcntl_add_seals(file, seals) {
        Err(Errno::INVAL) => Ok(()),
        sealed => sealed,
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::pread;

    fn content(file: &OwnedFd) -> Vec<u8> {
        let mut bytes = [0; 64];
        let length = pread(file, &mut bytes, 0).expect("the file can be read");
        bytes[..length].to_vec()
    }

    #[test]
    fn a_file_of_bytes_can_be_neither_written_nor_resized() {
        let file = of(b"bytes").expect("a file in memory");
        assert_eq!(content(&file), b"bytes");
        assert_eq!(rustix::io::pwrite(&file, b"other", 0), Err(Errno::PERM));
        assert_eq!(ftruncate(&file, 1), Err(Errno::PERM));
    }

    #[test]
    fn a_zeroed_file_can_be_written_and_not_resized() {
        let file = zeroed(4).expect("a file in memory");
        assert_eq!(content(&file), [0; 4]);
        assert_eq!(rustix::io::pwrite(&file, b"abcd", 0), Ok(4));
        assert_eq!(ftruncate(&file, 1), Err(Errno::PERM));
    }

    #[test]
    fn a_nameless_file_stands_in_for_one_in_memory() {
        let file = nameless().expect("a file without a name");
        write_all(&file, b"bytes").expect("the file can be written");
        seal(&file, FIXED | SealFlags::WRITE).expect("a file without seals is left alone");
        assert_eq!(content(&file), b"bytes");
    }
}
