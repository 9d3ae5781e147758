//! What a request comes to, and what the world is asked for (items 117 to 120).

use std::time::Duration;

use dsh_shell::{EnvOverlay, ErrorKind, OnExpiry, Settings, ShellError, ShellRequest};
use dsh_subprocess::{Environment, ErrorOutput, Output, Stdin};
use dsh_subprocess_testkit::scripted::Script;

use crate::stage::Stage;

#[test]
fn item_117_defaults_fill_what_a_request_leaves_open() {
    let stage = Stage::new(Script::new().exits(0));
    let spec = stage
        .shell
        .resolve(ShellRequest::new("make"))
        .expect("it is valid");
    assert_eq!(spec.timeout, Duration::from_secs(120));
    assert_eq!((spec.stdout_max_bytes, spec.on_expiry), (64_000, OnExpiry::Kill));
    assert_eq!(spec.workdir, "/srv".into());
    stage.play(stage.shell.run(spec)).expect("it is run");

    let asked = stage.request().spec;
    assert_eq!(asked.argv, ["bash", "-c", "make"].map(Into::into));
    assert_eq!((asked.cwd, asked.grace), ("/srv".into(), Duration::from_secs(3)));
    assert!(matches!(asked.stdin, Stdin::Ignore));
    let ErrorOutput::Own(stderr) = asked.stderr else {
        panic!("error output is a stream of its own")
    };
    for stream in [asked.stdout, stderr] {
        let Output::Collect(collect) = stream else {
            panic!("both streams are collected")
        };
        assert_eq!(collect.head_bytes + collect.max_bytes, 64_000);
        assert_eq!(collect.spill.expect("it is spilled").max_bytes.get(), 64 << 20);
    }
}

#[test]
fn item_117_the_request_s_directory_wins_over_the_configured_and_that_over_the_process_s() {
    let stage = Stage::new(Script::new());
    let workdir = |named: Option<&str>| {
        let mut request = ShellRequest::new("pwd");
        request.workdir = named.map(Into::into);
        stage
            .shell
            .resolve(request)
            .expect("it is valid")
            .workdir
            .to_string()
    };
    assert_eq!(workdir(Some("/else")), "/else");
    assert_eq!(workdir(Some("below")), "/srv/below");
    assert_eq!(workdir(None), "/srv");
    let own = Stage::with(Script::new(), |config| config.cwd = None);
    let spec = own.shell.resolve(ShellRequest::new("pwd")).expect("it is valid");
    assert_eq!(
        spec.workdir,
        std::env::current_dir().expect("there is one").into()
    );
}

#[test]
fn item_118_a_longer_timeout_is_shortened_to_the_maximum() {
    let stage = Stage::new(Script::new());
    let timeout = |asked| {
        let mut request = ShellRequest::new("make");
        request.timeout = Some(asked);
        stage.shell.resolve(request).expect("it is valid").timeout
    };
    assert_eq!(timeout(Duration::from_secs(7)), Duration::from_secs(7));
    assert_eq!(timeout(Duration::from_secs(601)), Duration::from_secs(600));
    assert_eq!(timeout(Duration::MAX), Duration::from_secs(600));
    // The configured one, too.
    let settings = Settings {
        max_timeout: Some(Duration::from_secs(5)),
        ..Settings::default()
    };
    stage.shell.set_settings(Some(&settings)).expect("they are valid");
    let spec = stage
        .shell
        .resolve(ShellRequest::new("make"))
        .expect("it is valid");
    assert_eq!(spec.timeout, Duration::from_secs(5));
}

#[test]
fn item_118_a_request_s_numbers_are_checked_for_each_call() {
    let stage = Stage::new(Script::new());
    let refused = |change: fn(&mut ShellRequest)| {
        let mut request = ShellRequest::new("make");
        change(&mut request);
        match stage.shell.resolve(request) {
            Err(ShellError::Request(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(|request| request.timeout = Some(Duration::ZERO)).contains("timeout"));
    assert!(refused(|request| request.stdout_max_bytes = Some(0)).contains("stdout_max_bytes"));
    assert!(refused(|request| request.command = "".into()).contains("command"));
    assert!(refused(|request| request.workdir = Some("".into())).contains("workdir"));
    assert!(stage.world.requests().is_empty());
}

#[test]
fn item_119_more_room_is_for_standard_output_in_the_foreground_alone() {
    let retained = |output: &Output| match output {
        Output::Collect(collect) => collect.head_bytes + collect.max_bytes,
        other => panic!("{other:?}"),
    };
    for background in [false, true] {
        let stage = Stage::new(Script::new().exits(0));
        let mut request = ShellRequest::new("make");
        request.stdout_max_bytes = Some(1_000_001);
        let spec = stage.shell.resolve(request).expect("it is valid");
        stage.play(async {
            let execution = if background {
                stage.shell.start(spec)
            } else {
                stage.shell.execute(spec)
            };
            execution.expect("it starts").done().await;
        });
        let asked = stage.request().spec;
        let ErrorOutput::Own(stderr) = &asked.stderr else {
            panic!("error output is a stream of its own")
        };
        let stdout = if background { 64_000 } else { 1_000_001 };
        assert_eq!((retained(&asked.stdout), retained(stderr)), (stdout, 64_000));
    }
}

#[test]
fn item_120_each_layer_of_the_environment_wins_over_the_one_below() {
    let stage = Stage::with(Script::new().exits(0), |config| {
        config.env = EnvOverlay::from([
            ("PAGER".into(), Some("deployment".into())),
            ("TERM".into(), Some("deployment".into())),
        ]);
        config.home = Some("/home/harness".into());
    });
    let base = [
        ("PATH", "world://bin"),
        ("PAGER", "base"),
        ("EDITOR", "base"),
        ("LANG", "base"),
        ("GITHUB_TOKEN", "base"),
        ("DSH_HOME", "base"),
        ("FORCE_COLOR", "base"),
    ];
    let base = Environment::from_iter(base.map(|(name, value)| (name.into(), value.into())));
    stage.world.set_base_environment(base);
    let mut request = ShellRequest::new("env");
    request.env = EnvOverlay::from([
        ("TERM".into(), Some("request".into())),
        ("DSH_HOME".into(), Some("request".into())),
        ("API_KEY".into(), Some("request".into())),
        ("NO_COLOR".into(), None),
    ]);
    let spec = stage.shell.resolve(request).expect("it is valid");
    stage.play(stage.shell.run(spec)).expect("it is run");

    let environment = stage.request().environment;
    let value = |name: &str| environment.get(name).map(ToString::to_string);
    for (name, expected) in [
        ("LANG", Some("base")),
        ("GITHUB_TOKEN", None),
        ("FORCE_COLOR", None),
        ("EDITOR", Some("false")),
        ("GIT_PAGER", Some("cat")),
        ("PAGER", Some("deployment")),
        ("TERM", Some("request")),
        ("API_KEY", Some("request")),
        ("NO_COLOR", None),
        ("DSH_HOME", Some("/home/harness")),
        ("DSH_SHELL", Some("1")),
    ] {
        assert_eq!(value(name).as_deref(), expected, "{name}");
    }
}

#[test]
fn input_and_merging_are_handed_on() {
    let stage = Stage::new(Script::new().expects("typed").exits(0));
    let mut request = ShellRequest::new("cat");
    request.stdin = Some("typed".into());
    request.merge_stderr = true;
    let spec = stage.shell.resolve(request).expect("it is valid");
    let result = stage.play(stage.shell.run(spec)).expect("it is run");
    assert!(result.stderr.is_none());
    assert!(matches!(stage.request().spec.stderr, ErrorOutput::Merge));
    assert_eq!(stage.world.violations(), Vec::<String>::new());
}

#[test]
fn a_command_with_a_nul_byte_is_refused_without_a_start() {
    let stage = Stage::new(Script::new());
    let spec = stage
        .shell
        .resolve(ShellRequest::new("echo a\0b"))
        .expect("nothing is looked at yet");
    let error = stage
        .play(stage.shell.run(spec))
        .expect_err("no argument holds that");
    assert_eq!(error.kind(), Some(ErrorKind::InvalidSpec), "{error}");
    assert!(stage.world.requests().is_empty());
}
