//! Where processes go whose parent has ended.

/// Tells whether orphans come to this process because it is the init of its pid namespace.
pub fn come_to_init() -> bool {
    std::process::id() == 1
}

/// Tells whether orphans among this process's descendants come to it because it has marked itself a subreaper
/// (`PR_SET_CHILD_SUBREAPER`, prctl(2)).
pub fn come_to_subreaper() -> bool {
    rustix::process::child_subreaper().is_ok_and(|mark| mark.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_neither_init_nor_a_subreaper() {
        assert!(!come_to_init());
        assert!(!come_to_subreaper());
    }
}
