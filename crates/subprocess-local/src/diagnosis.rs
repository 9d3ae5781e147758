//! What this machine gives a runtime, and what would improve it.

use dsh_subprocess::Mechanism;
use dsh_subprocess_sys::kernel::{self, Kernel};
use dsh_subprocess_sys::spawn::Session;
use dsh_subprocess_sys::{limits, pipe, table};

use crate::builder::KernelFeature;
use crate::warden::RuntimeWarden;
use crate::{choice, failure, janitor, owner, probe};

/// What this machine gives a runtime, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The mechanism that [`OwnershipChoice::Auto`](crate::OwnershipChoice::Auto) chooses here.
    pub mechanism: Mechanism,
    /// Why it is that one.
    pub why: String,
    /// What the mechanism does not guarantee.
    pub weaknesses: Vec<String>,
    /// Every mechanism, strongest first.
    pub candidates: Vec<Candidate>,
    /// The kernel features that a runtime uses.
    pub features: Vec<FeatureReport>,
    /// The limits that bear on running processes.
    pub limits: Vec<Limit>,
    /// Whether a warden can be started, who ends the trees should this process die. The first two mechanisms have one.
    pub warden: Facility,
    /// Whether what this process leaves on disk, should it and its wardens die, is found by the next start.
    pub records: Facility,
    /// What would make this machine better at it.
    pub improvements: Vec<String>,
}

/// One mechanism and whether it works here.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Whether its probe succeeded.
    pub works: bool,
    /// What the probe found.
    pub finding: String,
}

/// One kernel feature.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FeatureReport {
    /// Its name, as [`KernelFeature`] prints it.
    pub name: String,
    /// Whether it is there.
    pub present: bool,
    /// What happens without it.
    pub fallback: String,
}

/// One limit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limit {
    /// What is limited.
    pub name: String,
    /// The value, with its unit.
    pub value: String,
}

/// Something that a runtime has beside its mechanism.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Facility {
    /// Whether it can be had here.
    pub works: bool,
    /// How or where, or why not.
    pub finding: String,
}

/// Probes this machine. It starts a few processes that end at once, and leaves nothing behind.
///
/// ```
/// let diagnosis = dsh_subprocess_local::diagnose();
/// assert!(diagnosis.candidates.iter().any(|candidate| candidate.works));
/// println!("{}: {}", diagnosis.mechanism, diagnosis.why);
/// ```
pub fn diagnose() -> Diagnosis {
    let kernel = Kernel::get();
    let candidates = vec![cgroup(kernel), reaper(kernel), process_group()];
    let works = |mechanism: &Mechanism| {
        candidates
            .iter()
            .any(|candidate| candidate.works && candidate.mechanism == *mechanism)
    };
    let order = choice::order();
    let mechanism = order
        .iter()
        .find(|mechanism| works(mechanism))
        .cloned()
        .unwrap_or(Mechanism::ProcessGroup);
    let why = if mechanism == order[0] {
        if mechanism == Mechanism::Reaper {
            "this process adopts orphans (it is process 1 or a subreaper), so the reaper is the first choice, and it works here".to_owned()
        } else {
            "the strongest mechanism works here".to_owned()
        }
    } else {
        let refused = candidates.iter().filter(|candidate| !candidate.works);
        let reasons: Vec<String> = refused
            .map(|candidate| format!("{}: {}", candidate.mechanism, candidate.finding))
            .collect();
        format!("what is stronger does not work here: {}", reasons.join("; "))
    };
    let (warden, records) = (warden(kernel), records());
    Diagnosis {
        weaknesses: owner::ownership(&mechanism, true, warden.works).weaknesses,
        improvements: improvements(kernel, works(&Mechanism::Cgroup), &warden, &records),
        warden,
        records,
        mechanism,
        why,
        candidates,
        features: KernelFeature::ALL
            .into_iter()
            .map(|feature| report(feature, kernel))
            .collect(),
        limits: limits(),
    }
}

fn cgroup(kernel: Kernel) -> Candidate {
    let tried = pipe::null_device()
        .map_err(|errno| format!("/dev/null cannot be opened: {errno}"))
        .and_then(|null| probe::cgroup(kernel, &null, None));
    let (works, finding) = match tried {
        Ok((leaves, used)) => {
            let path = leaves.path().display().to_string();
            // It was empty, and this process made it.
            let _ = leaves.remove();
            let way = if used.clone_into_cgroup {
                "was born in"
            } else {
                "moved itself into"
            };
            (true, format!("a child {way} a group below {path}"))
        }
        Err(why) => (false, why),
    };
    Candidate {
        mechanism: Mechanism::Cgroup,
        works,
        finding,
    }
}

fn reaper(kernel: Kernel) -> Candidate {
    let tried = pipe::null_device()
        .map_err(|errno| format!("/dev/null cannot be opened: {errno}"))
        .and_then(|null| probe::reaper(kernel, Session::Own, &null));
    let (works, finding) = match tried {
        Ok(wardens) => {
            wardens.goodbye();
            (
                true,
                "a warden started a child, and adopts the orphans of its tree".to_owned(),
            )
        }
        Err(why) => (false, why),
    };
    Candidate {
        mechanism: Mechanism::Reaper,
        works,
        finding,
    }
}

fn process_group() -> Candidate {
    let finding = if table::is_ours() {
        "sessions and process groups are there, and the process table shows this pid namespace"
    } else {
        "sessions and process groups are there; /proc is missing or shows another pid namespace, so members cannot be named"
    };
    Candidate {
        mechanism: Mechanism::ProcessGroup,
        works: true,
        finding: finding.to_owned(),
    }
}

fn warden(kernel: Kernel) -> Facility {
    match RuntimeWarden::start(kernel, Session::Own) {
        Ok(warden) => {
            warden.goodbye();
            Facility {
                works: true,
                finding: "one was started, and would have ended the trees of this process with it".to_owned(),
            }
        }
        Err(error) => Facility {
            works: false,
            finding: failure::chain(&error),
        },
    }
}

fn records() -> Facility {
    match janitor::look() {
        Ok(path) => Facility {
            works: true,
            finding: format!("in {}", path.display()),
        },
        Err(why) => Facility {
            works: false,
            finding: why.to_string(),
        },
    }
}

fn report(feature: KernelFeature, kernel: Kernel) -> FeatureReport {
    FeatureReport {
        name: feature.to_string(),
        present: feature.is_in(kernel),
        fallback: feature.fallback().to_owned(),
    }
}

fn limits() -> Vec<Limit> {
    let pair = |(now, most): (Option<u64>, Option<u64>)| {
        let shown =
            |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
        format!("{} (can be raised to {})", shown(now), shown(most))
    };
    let limit = |name: &str, value: String| Limit {
        name: name.to_owned(),
        value,
    };
    vec![
        limit("open descriptors", pair(limits::descriptors())),
        limit("processes of this user", pair(limits::processes())),
        limit(
            "one argument or variable",
            format!("{} bytes", limits::argument_bytes() - 1),
        ),
        limit(
            "all arguments and variables",
            format!("{} bytes", limits::arguments_total_bytes()),
        ),
    ]
}

fn improvements(kernel: Kernel, cgroup_works: bool, warden: &Facility, records: &Facility) -> Vec<String> {
    let mut improvements = Vec::new();
    if !cgroup_works {
        improvements.push(
            "let this process make cgroups below its own: under systemd run it in a unit with Delegate=yes (or by \
             `systemd-run --user --scope -p Delegate=yes`), in a container mount /sys/fs/cgroup writable"
                .to_owned(),
        );
    }
    let missing: Vec<String> = KernelFeature::ALL
        .into_iter()
        .filter(|feature| !feature.is_in(kernel))
        .map(|feature| feature.to_string())
        .collect();
    if !missing.is_empty() {
        let (major, minor) = kernel::release();
        improvements.push(format!(
            "this kernel ({major}.{minor}), or a filter of system calls, lacks {}: each has a fallback, and each fallback costs something",
            missing.join(", ")
        ));
    }
    if limits::descriptors().0.is_some_and(|limit| limit < 4096) {
        improvements.push(
            "raise the limit of open descriptors (ulimit -n): each live child takes up to three".to_owned(),
        );
    }
    if !warden.works {
        improvements.push(format!(
            "let this process start a warden ({}): without, its trees run on when it is killed",
            warden.finding
        ));
    }
    if !records.works {
        improvements.push(format!(
            "make records possible ({}): without, the next start does not remove what a host that was killed left on disk",
            records.finding
        ));
    }
    if !table::is_ours() {
        improvements.push(
            "mount the /proc of this pid namespace, so that members and survivors can be named".to_owned(),
        );
    }
    improvements
}
