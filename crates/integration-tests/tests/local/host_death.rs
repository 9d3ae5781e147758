//! Whatever ends a host, its trees end and what it had is removed: issue 3, cases O2, O8 and O10.

mod delegated;
mod endings;
mod killed_wardens;
mod limits;
mod nested;
mod scene;
mod streams;
mod terminals;
pub(crate) mod wardens;

use crate::fixture::Tier;

/// Who the host is, and what owns its trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    tier: Tier,
    /// `nobody`, while the test is root; otherwise the user of the test.
    as_nobody: bool,
}

/// Makes tests of functions that take a [`Place`]: on each mechanism that outlives a host, as the user of the test and as an
/// ordinary one, who has a control group only where one was made his.
macro_rules! in_each_place {
    ($($name:ident),+ $(,)?) => {
        $(
            mod $name {
                use crate::fixture::Tier;
                use crate::host_death::Place;

                #[test]
                fn as_root_on_cgroup() {
                    super::$name(Place { tier: Tier::Cgroup, as_nobody: false });
                }

                #[test]
                fn as_root_as_nobody_on_a_delegated_cgroup() {
                    super::$name(Place { tier: Tier::Cgroup, as_nobody: true });
                }

                #[test]
                fn on_reaper() {
                    super::$name(Place { tier: Tier::Reaper, as_nobody: false });
                }

                #[test]
                fn as_root_as_nobody_on_reaper() {
                    super::$name(Place { tier: Tier::Reaper, as_nobody: true });
                }
            }
        )+
    };
}
use in_each_place;
