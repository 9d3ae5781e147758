//! Configuration and settings are checked before they hold (items 118 and 127).

use std::sync::Arc;
use std::time::Duration;

use dsh_shell::{Config, LeftBehindPolicy, Settings, Shell, ShellRequest};
use dsh_subprocess::MAX_GRACE;
use dsh_subprocess_testkit::scripted::{Script, ScriptedWorld};

use crate::stage::Stage;

/// Makes a configuration wrong.
type Change = fn(&mut Config);

const TOO_LONG: Duration = MAX_GRACE.saturating_add(Duration::from_millis(1));

#[test]
fn item_118_a_configuration_that_no_command_could_run_with_is_refused_by_name() {
    let refused = |change: Change| {
        let mut config = Config::default();
        change(&mut config);
        let world = Arc::new(ScriptedWorld::stepped());
        match Shell::new(world, config) {
            Ok(_) => panic!("it was taken"),
            Err(error) => error.to_string(),
        }
    };
    let cases: [(&str, Change); 12] = [
        ("program", |config| config.program.clear()),
        ("program", |config| config.program = vec!["".into()]),
        ("timeout", |config| config.timeout = Duration::ZERO),
        ("timeout", |config| config.timeout = Duration::MAX),
        ("max_timeout", |config| config.max_timeout = Duration::ZERO),
        ("max_output_bytes", |config| config.max_output_bytes = 0),
        ("grace", |config| config.grace = Duration::ZERO),
        ("grace", |config| {
            config.grace = TOO_LONG;
        }),
        ("quiet", |config| config.quiet = Duration::ZERO),
        ("drain", |config| {
            config.drain = TOO_LONG;
        }),
        ("cwd", |config| config.cwd = Some("".into())),
        ("A=B", |config| drop(config.env.insert("A=B".into(), None))),
    ];
    for (name, change) in cases {
        let why = refused(change);
        assert!(why.contains(name), "{name}: {why}");
    }
}

#[test]
fn item_118_settings_are_checked_when_they_are_written_and_change_nothing_when_refused() {
    let stage = Stage::new(Script::new());
    let good = Settings {
        timeout: Some(Duration::from_secs(9)),
        ..Settings::default()
    };
    stage.shell.set_settings(Some(&good)).expect("they are valid");
    for bad in [
        Settings {
            timeout: Some(Duration::ZERO),
            ..Settings::default()
        },
        Settings {
            max_timeout: Some(Duration::ZERO),
            ..Settings::default()
        },
        Settings {
            max_output_bytes: Some(0),
            ..Settings::default()
        },
        Settings {
            grace: Some(Duration::ZERO),
            ..Settings::default()
        },
        Settings {
            cwd: Some("".into()),
            ..Settings::default()
        },
    ] {
        stage
            .shell
            .set_settings(Some(&bad))
            .expect_err("no command could run with them");
        assert_eq!(stage.shell.config().timeout, Duration::from_secs(9), "{bad:?}");
    }
}

#[test]
fn item_127_settings_layer_over_the_configuration_live_and_fall_back_to_it() {
    let stage = Stage::with(Script::new(), |config| {
        config.timeout = Duration::from_secs(30);
        config.max_output_bytes = 500;
    });
    let resolved = || {
        let spec = stage
            .shell
            .resolve(ShellRequest::new("make"))
            .expect("it is valid");
        (
            spec.timeout.as_secs(),
            spec.stdout_max_bytes,
            spec.workdir.to_string(),
        )
    };
    assert_eq!(resolved(), (30, 500, "/srv".to_owned()));

    let settings = Settings {
        timeout: Some(Duration::from_secs(40)),
        cwd: Some("/set".into()),
        left_behind: Some(LeftBehindPolicy::Keep),
        ..Settings::default()
    };
    stage.shell.set_settings(Some(&settings)).expect("they are valid");
    assert_eq!(resolved(), (40, 500, "/set".to_owned()));
    assert_eq!(stage.shell.config().left_behind, LeftBehindPolicy::Keep);

    // In place of those before, not on top of them.
    let settings = Settings {
        max_output_bytes: Some(700),
        ..Settings::default()
    };
    stage.shell.set_settings(Some(&settings)).expect("they are valid");
    assert_eq!(resolved(), (30, 700, "/srv".to_owned()));

    // Every clone is the same executor.
    stage
        .shell
        .clone()
        .set_settings(None)
        .expect("the configuration is valid");
    assert_eq!(resolved(), (30, 500, "/srv".to_owned()));
    assert_eq!(stage.shell.config().left_behind, LeftBehindPolicy::End);
}
