//! Contract A: what reaches a child of the world's own environment, and what the caller adds.

use dsh_subprocess::{EnvOverlay, Environment, NameCase, WorldString};

use super::World;
use super::child::{finish, start};

/// The environment a child sees, with this overlay.
async fn seen(world: &World, overlay: &[(&str, Option<&str>)]) -> Environment {
    let mut spec = world.spec(&["env"]);
    spec.env = overlay
        .iter()
        .map(|(name, value)| ((*name).into(), value.map(Into::into)))
        .collect::<EnvOverlay>();
    let finished = finish(&start(world, spec)).await;
    finished
        .stdout
        .split(|&byte| byte == 0)
        .filter(|variable| !variable.is_empty())
        .map(|variable| {
            let equals = variable
                .iter()
                .position(|&byte| byte == b'=')
                .expect("a variable has a value");
            (
                WorldString::from(&variable[..equals]),
                WorldString::from(&variable[equals + 1..]),
            )
        })
        .collect()
}

/// Credentials and `DSH_` names of the world's own environment do not reach a child.
pub async fn item_1_credentials_and_managed_names_do_not_reach_a_child(world: &World) {
    assert!(
        !world.hidden.is_empty(),
        "the world must plant variables that have to be left out: see `World::hidden`"
    );
    let environment = seen(world, &[]).await;
    for name in &world.hidden {
        assert!(!environment.contains(name.clone()), "{name} reached the child");
    }
    for name in environment.names() {
        assert!(
            !name.as_bytes().to_ascii_uppercase().starts_with(b"DSH_"),
            "{name} reached the child"
        );
    }
}

/// Ordinary variables of the world's own environment reach a child.
pub async fn item_2_ordinary_variables_reach_a_child(world: &World) {
    assert!(
        !world.kept.is_empty(),
        "the world must name variables that have to arrive: see `World::kept`"
    );
    let environment = seen(world, &[]).await;
    for name in &world.kept {
        assert!(
            environment.contains(name.clone()),
            "{name} did not reach the child"
        );
    }
}

/// An explicit entry reaches the child whatever its name is, with its value as it was given.
pub async fn item_3_an_explicit_entry_wins_whatever_its_name(world: &World) {
    let hidden = world
        .hidden
        .first()
        .expect("the world names a hidden variable")
        .to_string();
    let values = [
        ("CONFORMANCE_TOKEN", "t"),
        ("DSH_CONFORMANCE", ""),
        (hidden.as_str(), "a=b c\n"),
        ("PLAIN", "$HOME `x`"),
    ];
    let environment = seen(world, &values.map(|(name, value)| (name, Some(value)))).await;
    for (name, value) in values {
        assert_eq!(
            environment.get(name).map(WorldString::as_bytes),
            Some(value.as_bytes()),
            "{name}"
        );
    }
}

/// A removed entry is absent in the child; removing an absent one does nothing.
pub async fn item_4_a_removed_entry_is_absent(world: &World) {
    let kept = world
        .kept
        .first()
        .expect("the world names a kept variable")
        .to_string();
    let environment = seen(
        world,
        &[
            (&kept, None),
            ("CONFORMANCE_NEVER_THERE", None),
            ("STAYS", Some("1")),
        ],
    )
    .await;
    assert!(
        !environment.contains(kept.as_str()),
        "{kept} was removed and reached the child"
    );
    assert!(environment.contains("STAYS"));
}

/// Names of variables are compared as the world says: exactly, or without regard to case.
pub async fn item_5_names_are_compared_as_the_world_compares_them(world: &World) {
    let kept = world
        .kept
        .first()
        .expect("the world names a kept variable")
        .to_string();
    let other = if kept.to_lowercase() == kept {
        kept.to_uppercase()
    } else {
        kept.to_lowercase()
    };
    assert_ne!(
        kept, other,
        "the first kept variable must have letters in its name"
    );
    let environment = seen(world, &[(&other, Some("explicit"))]).await;
    assert_eq!(environment.get(other.as_str()), Some(&"explicit".into()));
    let both = environment.contains(kept.as_str());
    assert_eq!(
        both,
        world.guarantees.name_case == NameCase::Exact,
        "{kept} beside {other}"
    );
}

/// An ordinary spawn neither sets nor changes the terminal type.
pub async fn item_6_the_terminal_type_is_the_callers(world: &World) {
    let environment = seen(world, &[("TERM", Some("conformance"))]).await;
    assert_eq!(environment.get("TERM"), Some(&"conformance".into()));
    let environment = seen(world, &[("TERM", None)]).await;
    assert_eq!(environment.get("TERM"), None);
}
