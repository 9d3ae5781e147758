//! The whole suite, against a world without processes, ids or a shell.

use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{Environment, NameCase};
use dsh_subprocess_testkit::conformance::{Guarantees, World};
use dsh_subprocess_testkit::scripted::{Place, ScriptedWorld};

use crate::pipes_only::PipesOnly;
use crate::probe::probe;

fn world(case: NameCase, terminal: bool) -> World {
    World {
        runtime: Box::new(move || {
            let world = ScriptedWorld::free_running();
            world
                .program_by("probe", probe)
                .place("world://work", Place::Directory)
                .place("world://work/notes", Place::File)
                .place("world://cellar", Place::Locked)
                .set_name_case(case)
                // The checks' patience is longer than this, and the graces that they expect to run out are shorter.
                .set_horizon(Duration::from_secs(10))
                .set_base_environment(Environment::from_iter([
                    ("PATH".into(), "world://bin".into()),
                    ("SCRIPTED_API_KEY".into(), "sk".into()),
                    ("DSH_SCRIPTED".into(), "1".into()),
                ]));
            if terminal {
                Arc::new(world)
            } else {
                Arc::new(PipesOnly(world))
            }
        }),
        probe: "world://bin/probe".into(),
        probe_name: "probe".into(),
        probe_directory: "world://bin".into(),
        directory: "world://work".into(),
        file: "world://work/notes".into(),
        missing: "world://nowhere".into(),
        locked_directory: Some("world://cellar".into()),
        shell: None,
        hidden: vec!["SCRIPTED_API_KEY".into(), "DSH_SCRIPTED".into()],
        kept: vec!["PATH".into()],
        guarantees: Guarantees {
            immediate_pid: false,
            process_ids: false,
            name_case: case,
            ends_session_leavers: true,
            names_holders: true,
            measures_usage: false,
            spill: true,
            raw_descriptors: false,
            argument_limit: None,
            terminal,
            proves_input_waiting: true,
        },
        resources: Box::new(()),
    }
}

mod posix_names {
    dsh_subprocess_testkit::conformance_suite!(super::world(dsh_subprocess::NameCase::Exact, true));
}

mod windows_names {
    dsh_subprocess_testkit::conformance_suite!(super::world(dsh_subprocess::NameCase::Insensitive, true));
}

mod no_terminals {
    dsh_subprocess_testkit::conformance_suite!(super::world(dsh_subprocess::NameCase::Exact, false));
}
