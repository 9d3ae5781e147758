//! The conformance suite of the testkit, on each tier and on each fallback of the local world.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::NameCase;
use dsh_subprocess_local::KernelFeature;
use dsh_subprocess_testkit::conformance::{Guarantees, World};
use nix::unistd::geteuid;

use crate::fixture::Tier;

/// Names of variables that this package's build script puts into the environment of every test.
const PLANTED: [&str; 2] = ["CONFORMANCE_API_KEY", "DSH_CONFORMANCE"];

/// The local world on a tier, without some of the kernel's features. Its spawns wait for the handshake.
fn world(tier: Tier, without: &'static [KernelFeature], handshake: Duration) -> World {
    let probe = Path::new(env!("CARGO_BIN_EXE_probe"));
    let resources = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| resources.path().join(name);
    fs::create_dir(path("work")).expect("the directory is ours");
    fs::write(path("notes"), b"notes").expect("the directory is ours");
    fs::create_dir(path("locked")).expect("the directory is ours");
    fs::set_permissions(path("locked"), Permissions::from_mode(0o600)).expect("it is ours");
    for name in PLANTED {
        assert!(
            std::env::var_os(name).is_some(),
            "{name} is not in the environment: run the tests by cargo or nextest"
        );
    }
    World {
        runtime: Box::new(move || {
            let builder = without
                .iter()
                .fold(tier.builder(), |builder, &feature| builder.without(feature))
                .handshake(handshake)
                // Two checks wait for it.
                .write_bound(Duration::from_secs(2));
            Arc::new(builder.build().expect("the tier works here"))
        }),
        probe: probe.into(),
        probe_name: probe.file_name().expect("it has a name").into(),
        probe_directory: probe.parent().expect("it is in a directory").into(),
        directory: path("work").into(),
        file: path("notes").into(),
        missing: path("missing").into(),
        // Root enters every directory.
        locked_directory: (!geteuid().is_root()).then(|| path("locked").into()),
        shell: Some("/bin/sh".into()),
        hidden: PLANTED.map(Into::into).into(),
        kept: vec!["PATH".into()],
        guarantees: Guarantees {
            immediate_pid: !handshake.is_zero(),
            process_ids: true,
            name_case: NameCase::Exact,
            ends_session_leavers: tier.owns_all(),
            names_holders: true,
            measures_usage: true,
            spill: true,
            raw_descriptors: true,
            argument_limit: Some(200_000),
            terminal: true,
            proves_input_waiting: true,
        },
        resources: Box::new(resources),
    }
}

/// Makes a module of the whole suite for each tier and each set of features to do without, which may have the handshake among
/// them.
macro_rules! conformance {
    ($($name:ident: $tier:ident without [$($feature:ident),*] $($handshake:ident)?;)+) => {
        $(
            mod $name {
                use std::time::Duration;

                use super::{KernelFeature, Tier};

                const WITHOUT: &[KernelFeature] = &[$(KernelFeature::$feature),*];
                const HANDSHAKE: Duration = Duration::from_secs(conformance!(@ $($handshake)?));

                dsh_subprocess_testkit::conformance_suite!(super::world(Tier::$tier, WITHOUT, HANDSHAKE));
            }
        )+
    };
    (@) => { 1 };
    (@ unwaited) => { 0 };
}

conformance! {
    as_root_cgroup: Cgroup without [];
    as_root_cgroup_unwaited: Cgroup without [] unwaited;
    as_root_cgroup_unwaited_without_clone_into_cgroup: Cgroup without [CloneIntoCgroup] unwaited;
    as_root_cgroup_without_clone3: Cgroup without [Clone3];
    as_root_cgroup_without_clone_into_cgroup: Cgroup without [CloneIntoCgroup];
    as_root_cgroup_without_close_range: Cgroup without [CloseRange];
    as_root_cgroup_without_cgroup_kill: Cgroup without [CgroupKill];
    as_root_cgroup_without_pidfd_get_info: Cgroup without [PidfdGetInfo];
    as_root_cgroup_without_memfd_exec: Cgroup without [MemfdExec];
    reaper: Reaper without [];
    reaper_unwaited: Reaper without [] unwaited;
    reaper_without_clone3: Reaper without [Clone3];
    reaper_without_memfd_exec: Reaper without [MemfdExec];
    process_group: ProcessGroup without [];
    process_group_unwaited: ProcessGroup without [] unwaited;
    process_group_without_clone3: ProcessGroup without [Clone3];
    process_group_without_close_range: ProcessGroup without [CloseRange];
    process_group_without_pidfd_get_info: ProcessGroup without [PidfdGetInfo];
    process_group_without_any_feature: ProcessGroup without [Clone3, CloneIntoCgroup, CloseRange, CgroupKill, PidfdGetInfo];
}
