//! Contract B: finding an executable.

use dsh_subprocess::{EnvOverlay, Error, ErrorKind, Lookup, WorldPath, WorldString};
use tokio_util::sync::CancellationToken;

use super::World;
use super::child::{done_error, finish};
use super::watchdog::within;

async fn resolve(
    world: &World,
    command: &WorldString,
    path: Option<&WorldString>,
) -> Result<WorldPath, Error> {
    let env = path
        .map(|path| ("PATH".into(), Some(path.clone())))
        .into_iter()
        .collect();
    let lookup = Lookup {
        command: command.clone(),
        env,
        cancel: CancellationToken::new(),
    };
    within("a look-up", world.runtime().resolve_executable(lookup)).await
}

async fn refusal(world: &World, command: &WorldString, path: Option<&WorldString>) -> (ErrorKind, String) {
    match resolve(world, command, path).await {
        Ok(found) => panic!("`{command}` was found at {found}"),
        Err(error) => (error.kind(), error.to_string()),
    }
}

/// An empty command is refused.
pub async fn item_10_an_empty_command_is_refused(world: &World) {
    assert_eq!(refusal(world, &"".into(), None).await.0, ErrorKind::InvalidSpec);
}

/// A look-up whose token is cancelled already finds nothing.
pub async fn item_11_a_cancelled_lookup_finds_nothing(world: &World) {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let lookup = Lookup {
        command: world.probe.clone(),
        env: EnvOverlay::new(),
        cancel,
    };
    let answer = within("a look-up", world.runtime().resolve_executable(lookup)).await;
    assert_eq!(
        answer.expect_err("a cancelled look-up").kind(),
        ErrorKind::Cancelled
    );
}

/// An absolute path of an executable file is answered verbatim; that of anything else, or of nothing, is refused and
/// named, all alike.
pub async fn item_12_an_absolute_path_is_answered_verbatim_or_refused(world: &World) {
    let found = resolve(world, &world.probe, None)
        .await
        .expect("the probe is executable");
    assert_eq!(found.as_world_string(), &world.probe);
    for path in [&world.file, &world.directory, &world.missing] {
        let (kind, text) = refusal(world, path.as_world_string(), None).await;
        assert_eq!(kind, ErrorKind::ProgramNotExecutable, "{path}: {text}");
        assert!(text.contains(&*path.to_string_lossy()), "{text}");
    }
}

/// A relative path with a separator is refused, never guessed against a base.
pub async fn item_13_a_relative_path_is_refused(world: &World) {
    let (kind, text) = refusal(world, &"./probe".into(), None).await;
    assert_eq!(kind, ErrorKind::InvalidSpec);
    assert!(text.contains("relative"), "{text}");
}

/// A bare name is searched on the `PATH` of the child, and its location is absolute.
pub async fn item_14_a_bare_name_is_searched_on_path(world: &World) {
    let found = resolve(world, &world.probe_name, Some(&world.probe_directory))
        .await
        .expect("the probe is there");
    assert_eq!(found.as_world_string(), &world.probe);
}

/// A completed search that found nothing has a kind of its own, and names what it searched for.
pub async fn item_179_a_miss_has_a_kind_of_its_own(world: &World) {
    let elsewhere = world.missing.as_world_string();
    let (kind, text) = refusal(world, &world.probe_name, Some(elsewhere)).await;
    assert_eq!(kind, ErrorKind::ProgramNotFound);
    assert!(text.contains(&*world.probe_name.to_string_lossy()), "{text}");
}

/// A spawn searches a bare name on the child's own `PATH`, explicit entries included.
pub async fn item_177_the_childs_own_path_decides(world: &World) {
    let spec = |path: &WorldString| {
        let mut spec = world.spec(&["exit", "7"]);
        spec.argv[0] = world.probe_name.clone();
        spec.env.insert("PATH".into(), Some(path.clone()));
        spec
    };
    let runtime = world.runtime();
    let found = runtime.spawn(spec(&world.probe_directory)).expect("a valid spec");
    assert_eq!(finish(&found).await.outcome.code(), Some(7));
    let missed = runtime
        .spawn(spec(world.missing.as_world_string()))
        .expect("a valid spec");
    assert_eq!(done_error(&missed).await.kind(), ErrorKind::ProgramNotFound);
}
