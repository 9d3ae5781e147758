//! Hosts to which orphans come: no zombie is left, and no status is taken. Case O11, and issue 3's fourth point.

use crate::fixture::{Host, Tier};

/// How a host comes to adopt orphans.
#[derive(Clone, Copy)]
enum Adopter {
    /// Process 1 of a pid namespace, made by root.
    Init,
    /// Process 1 of a pid namespace in a user namespace, made by an ordinary user.
    UserInit,
    /// It has asked for it.
    Subreaper,
}

const UNSHARE: [&str; 5] = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

impl Adopter {
    /// A host with the mechanism that it gets when none is asked for.
    fn host(self) -> Host {
        self.of(Tier::Reaper).peculiar("--ownership=auto")
    }

    fn of(self, tier: Tier) -> Host {
        match self {
            Self::Init => Host::new(tier).under(UNSHARE),
            Self::UserInit => Host::new(tier)
                .unprivileged()
                .under(UNSHARE)
                .under(["--map-root-user"]),
            Self::Subreaper => Host::new(tier).peculiar("--subreaper"),
        }
    }
}

/// Makes tests of functions that take an adopter.
macro_rules! for_each_adopter {
    ($($name:ident),+ $(,)?) => {
        $(
            mod $name {
                use super::Adopter;

                #[test]
                fn as_root_in_an_init() {
                    super::$name(Adopter::Init);
                }

                #[test]
                fn in_a_users_init() {
                    super::$name(Adopter::UserInit);
                }

                #[test]
                fn in_a_subreaper() {
                    super::$name(Adopter::Subreaper);
                }
            }
        )+
    };
}

for_each_adopter! {
    case_o11_no_orphan_stays_a_zombie,
    case_o11_no_child_of_a_dropped_handle_stays_a_zombie,
    issue_3_no_status_is_stolen_beside_orphans,
    issue_3_wardens_leave_no_zombie,
    issue_3_wardens_that_are_killed_leave_no_zombie,
    a_diagnosis_leaves_no_zombie,
}

const SEVEN: &str = "exited with code 7";

fn case_o11_no_orphan_stays_a_zombie(adopter: Adopter) {
    let report = adopter.host().report(["orphans", "20", "0"]);
    assert_eq!(report.get("mechanism"), "reaper");
    assert_eq!(report.get("zombies"), "0");
    assert_eq!(report.get("later"), SEVEN);
}

fn case_o11_no_child_of_a_dropped_handle_stays_a_zombie(adopter: Adopter) {
    let report = adopter.host().report(["dropped", "100"]);
    assert_eq!(report.get("left"), "0");
    assert_eq!(report.get("later"), SEVEN);
}

fn issue_3_no_status_is_stolen_beside_orphans(adopter: Adopter) {
    assert_statuses(adopter.host());
}

fn issue_3_wardens_leave_no_zombie(adopter: Adopter) {
    let report = adopter.host().report(["end"]);
    assert_eq!(report.get("run"), SEVEN);
    assert_eq!(report.get("left"), "");
}

/// The wardens of the trees come to the host when the runtime's is killed.
fn issue_3_wardens_that_are_killed_leave_no_zombie(adopter: Adopter) {
    let report = adopter.host().report(["killed-wardens"]);
    assert_eq!(report.get("wardens"), "1");
    assert_eq!(report.get("zombies"), "0");
    assert_eq!(report.get("later"), SEVEN);
    assert_eq!(report.get("left"), "");
}

/// Its wardens are let go of before a thread could have watched them.
fn a_diagnosis_leaves_no_zombie(adopter: Adopter) {
    let report = adopter.host().report(["diagnosis"]);
    assert_eq!(report.get("warden"), "true");
    assert_eq!(report.get("left"), "");
}

#[track_caller]
fn assert_statuses(host: Host) {
    let report = host.report(["statuses", "2000"]);
    // Of every 32 runs, and of the 16 in the last wave, one in eight has a child of the host's own beside it.
    assert_eq!(
        report.all("outcome").collect::<Vec<_>>(),
        ["2000 exited with code 7", "250 own exit status: 9"]
    );
    assert_eq!(report.get("zombies"), "0");
}

mod issue_3_orphans_of_control_groups_are_reaped_where_that_is_asked_for {
    use super::{Adopter, SEVEN, Tier};

    fn reaped(adopter: Adopter) {
        let host = adopter.of(Tier::Cgroup).peculiar("--reap-orphans");
        let report = host.report(["orphans", "20", "0"]);
        assert_eq!(report.get("zombies"), "0");
        assert_eq!(report.get("later"), SEVEN);
        let host = adopter.of(Tier::Cgroup).peculiar("--reap-orphans");
        assert_eq!(host.report(["dropped", "100"]).get("left"), "0");
        super::assert_statuses(adopter.of(Tier::Cgroup).peculiar("--reap-orphans"));
    }

    #[test]
    fn as_root_in_an_init() {
        reaped(Adopter::Init);
    }

    #[test]
    fn as_root_in_a_subreaper() {
        reaped(Adopter::Subreaper);
    }
}

/// They are the host's, which may have a reaper of its own.
#[test]
fn as_root_orphans_of_control_groups_are_left_to_an_init_that_does_not_ask() {
    let report = Adopter::Init.of(Tier::Cgroup).report(["orphans", "20", "20"]);
    assert_eq!(report.get("zombies"), "20");
    assert_eq!(report.get("later"), SEVEN);
}

#[test]
fn as_root_wardens_of_control_groups_leave_no_zombie() {
    for scenario in ["end", "killed-wardens"] {
        let report = Adopter::Init.of(Tier::Cgroup).report([scenario]);
        assert_eq!(report.get("left"), "", "{scenario}");
    }
}

/// Without a parent that hands its orphans over there is nothing to reap, and nothing is different.
#[test]
fn as_root_reaping_is_no_matter_to_a_host_that_adopts_nobody() {
    let report = Host::new(Tier::Cgroup)
        .peculiar("--reap-orphans")
        .report(["orphans", "20", "0"]);
    assert_eq!(report.get("zombies"), "0");
    assert_eq!(report.get("later"), SEVEN);
}
