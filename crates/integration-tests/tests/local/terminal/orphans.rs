//! Hosts to which the orphans of sessions come: no zombie is left. Case O11.

use crate::fixture::{Host, Tier};

const UNSHARE: [&str; 5] = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

/// Twenty sessions leave an orphan each, and one later command has the status it has.
#[track_caller]
fn no_zombie_stays(host: Host) {
    let report = host.report(["terminal-orphans", "20"]);
    assert_eq!(report.get("zombies"), "0", "{report:?}");
    assert_eq!(report.get("later"), "exited with code 7");
}

mod case_o11_no_orphan_of_a_session_stays_a_zombie {
    use super::{Host, Tier, UNSHARE, no_zombie_stays};

    #[test]
    fn as_root_in_an_init() {
        no_zombie_stays(
            Host::new(Tier::Reaper)
                .peculiar("--ownership=auto")
                .under(UNSHARE),
        );
    }

    #[test]
    fn in_a_users_init() {
        no_zombie_stays(
            Host::new(Tier::Reaper)
                .unprivileged()
                .under(UNSHARE)
                .under(["--map-root-user"]),
        );
    }

    #[test]
    fn in_a_subreaper() {
        no_zombie_stays(Host::new(Tier::Reaper).peculiar("--subreaper"));
    }

    #[test]
    fn as_root_on_cgroup_in_an_init_that_asks() {
        no_zombie_stays(Host::new(Tier::Cgroup).peculiar("--reap-orphans").under(UNSHARE));
    }

    #[test]
    fn as_root_on_cgroup_in_a_subreaper_that_asks() {
        no_zombie_stays(
            Host::new(Tier::Cgroup)
                .peculiar("--reap-orphans")
                .peculiar("--subreaper"),
        );
    }
}
