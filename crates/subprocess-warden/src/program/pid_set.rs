//! Sets of processes, by number.

/// Numbers that there can be: Linux has no process beyond (`PID_MAX_LIMIT` in linux/threads.h).
const NUMBERS: usize = 4 * 1024 * 1024;
const WORDS: usize = NUMBERS / 64;

/// A set of process numbers. It has room for every number, in half a megabyte of zeroes of which only the touched pages are
/// ever there: the processes of one tree have numbers that lie together.
#[derive(Debug)]
pub struct PidSet {
    words: [u64; WORDS],
    /// All words that are not 0 are in this range. Empty at first, and after `clear`.
    begin: usize,
    end: usize,
}

impl PidSet {
    /// An empty set.
    pub const fn new() -> Self {
        Self {
            words: [0; WORDS],
            begin: 0,
            end: 0,
        }
    }

    /// Adds a number, and tells whether it is new. What is no process's number is never new.
    pub fn insert(&mut self, pid: u32) -> bool {
        let (index, bit) = place(pid);
        let Some(word) = self.words.get_mut(index) else {
            return false;
        };
        if pid == 0 || *word & bit != 0 {
            return false;
        }
        *word |= bit;
        if self.begin == self.end {
            self.begin = index;
            self.end = index + 1;
        }
        self.begin = self.begin.min(index);
        self.end = self.end.max(index + 1);
        true
    }

    /// Takes a number out.
    pub fn remove(&mut self, pid: u32) {
        let (index, bit) = place(pid);
        if let Some(word) = self.words.get_mut(index)
            && *word & bit != 0
        {
            *word &= !bit;
        }
    }

    /// Tells whether a number is in it.
    pub fn contains(&self, pid: u32) -> bool {
        let (index, bit) = place(pid);
        self.words.get(index).is_some_and(|word| word & bit != 0)
    }

    /// Returns the lowest number that is `from` or higher.
    pub fn next(&self, from: u32) -> Option<u32> {
        let (first, _) = place(from);
        let mut index = first.max(self.begin);
        while index < self.end {
            let mut word = *self.words.get(index)?;
            if index == first {
                word &= u64::MAX << (from % 64);
            }
            if word != 0 {
                return Some((index * 64) as u32 + word.trailing_zeros());
            }
            index += 1;
        }
        None
    }

    /// Takes the lowest number out.
    pub fn take(&mut self) -> Option<u32> {
        let lowest = self.next(0)?;
        self.remove(lowest);
        self.begin = place(lowest).0;
        Some(lowest)
    }

    /// Takes every number out.
    pub fn clear(&mut self) {
        if let Some(words) = self.words.get_mut(self.begin..self.end) {
            words.fill(0);
        }
        self.begin = 0;
        self.end = 0;
    }
}

const fn place(pid: u32) -> (usize, u64) {
    (pid as usize / 64, 1 << (pid % 64))
}
