//! The program, as the build script made it.

/// The bytes of the program, a static executable for this target.
///
/// It is run with its end of a `SOCK_SEQPACKET` pair as descriptor 3, and speaks [`protocol`](crate::protocol) on it;
/// `dsh_subprocess_sys::warden::start` does that.
pub static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/dsh-warden"));

#[cfg(test)]
mod tests {
    use super::PROGRAM;

    /// Types of program headers (elf(5)).
    const INTERPRETER: u32 = 3;
    const DYNAMIC: u32 = 2;
    const STACK: u32 = 0x6474_e551;
    const EXECUTABLE: u32 = 1;

    fn field<const N: usize>(at: usize) -> [u8; N] {
        PROGRAM
            .get(at..at + N)
            .and_then(|bytes| bytes.try_into().ok())
            .expect("the field is in the file")
    }

    fn half(at: usize) -> usize {
        u16::from_le_bytes(field(at)).into()
    }

    /// The type and the flags of every program header.
    fn headers() -> impl Iterator<Item = (u32, u32)> {
        let begin = usize::try_from(u64::from_le_bytes(field(32))).expect("an offset in memory");
        let (size, count) = (half(54), half(56));
        (0..count).map(move |index| {
            let at = begin + index * size;
            (u32::from_le_bytes(field(at)), u32::from_le_bytes(field(at + 4)))
        })
    }

    #[test]
    fn the_program_is_a_static_executable_for_this_machine() {
        const FIXED_ADDRESSES: usize = 2;
        let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
        assert_eq!(field(0), *b"\x7fELF\x02\x01", "64 bits, little-endian");
        assert_eq!((half(16), half(18)), (FIXED_ADDRESSES, machine));
        assert!(
            headers().all(|(kind, _)| kind != INTERPRETER && kind != DYNAMIC),
            "it is dynamic"
        );
    }

    #[test]
    fn nothing_on_the_programs_stack_can_be_executed() {
        let stack = headers().find(|(kind, _)| *kind == STACK);
        let (_, flags) = stack.expect("the program says what its stack may do");
        assert_eq!(flags & EXECUTABLE, 0);
    }

    #[test]
    fn the_program_is_small() {
        assert!(PROGRAM.len() < 40 * 1024, "{} bytes", PROGRAM.len());
    }
}
