//! Short texts with numbers in them, and numbers in texts.

use core::ffi::CStr;

/// The longest text, in bytes with its NUL: that of `/proc/PID/task/TID/children` is 37.
const LENGTH: usize = 64;

/// A path that is put together from parts.
#[derive(Debug)]
pub struct Text {
    bytes: [u8; LENGTH],
    length: usize,
}

impl Text {
    /// An empty one.
    pub const fn new() -> Self {
        Self {
            bytes: [0; LENGTH],
            length: 0,
        }
    }

    /// Appends bytes, as far as there is room for them: the path of a text that was cut does not exist.
    pub fn with(mut self, part: &[u8]) -> Self {
        for &byte in part {
            // The last byte stays a NUL.
            if self.length < LENGTH - 1
                && let Some(place) = self.bytes.get_mut(self.length)
            {
                *place = byte;
                self.length += 1;
            }
        }
        self
    }

    /// Appends a number.
    pub fn with_number(self, number: u32) -> Self {
        let mut digits = [0_u8; 10];
        let mut left = number;
        let mut first = digits.len();
        for place in digits.iter_mut().rev() {
            *place = b'0' + (left % 10) as u8;
            left /= 10;
            first -= 1;
            if left == 0 {
                break;
            }
        }
        self.with(digits.get(first..).unwrap_or_default())
    }

    /// Returns it for a system call.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// Numbers that come in pieces, with anything between them.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The number whose end has not been seen.
    begun: Option<u32>,
}

impl Numbers {
    /// Reads the next piece.
    pub fn read(&mut self, piece: &[u8], mut each: impl FnMut(u32)) {
        for &byte in piece {
            if byte.is_ascii_digit() {
                let so_far = self.begun.unwrap_or(0);
                // One that is too long is no process's.
                self.begun = Some(so_far.saturating_mul(10).saturating_add(u32::from(byte - b'0')));
            } else {
                self.end(&mut each);
            }
        }
    }

    /// Says that there are no more pieces.
    pub fn end(&mut self, mut each: impl FnMut(u32)) {
        if let Some(number) = self.begun.take() {
            each(number);
        }
    }
}

/// Reads a text that is a number and nothing else.
pub fn number(text: &[u8]) -> Option<u32> {
    let mut number = 0_u32;
    for &byte in text {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u32::from(byte - b'0'))?;
    }
    (!text.is_empty()).then_some(number)
}
