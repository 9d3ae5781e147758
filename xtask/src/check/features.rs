//! Features that are for tests alone.
//!
//! `steps` lets a variable of the environment kill a host in the midst of a spawn. No program that anybody installs may have
//! it, so no package turns it on but the one that has those tests, which is never published.

use cargo_metadata::{Dependency, Package};

use super::Violation;

const STEPS: &str = "steps";
/// Who may turn it on.
const TESTS: &str = "dsh-subprocess-integration-tests";

/// Looks for whoever else turns it on.
pub(super) fn violations(packages: &[Package]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages.iter().filter(|package| package.name.as_str() != TESTS) {
        let name = package.name.as_str();
        let dependencies = package
            .dependencies
            .iter()
            .filter(|dependency| turns_on(dependency));
        violations.extend(dependencies.map(|dependency| {
            Violation::new(
                name,
                format!("must not turn on {}'s feature `{STEPS}`", dependency.name),
            )
        }));
        let features = package.features.iter().filter(|(feature, _)| *feature != STEPS);
        for (feature, others) in features {
            if others
                .iter()
                .any(|other| other == STEPS || other.ends_with("/steps"))
            {
                let what = format!("its feature `{feature}` must not turn on `{STEPS}`");
                violations.push(Violation::new(name, what));
            }
        }
    }
    violations
}

fn turns_on(dependency: &Dependency) -> bool {
    dependency.features.iter().any(|feature| feature == STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cargo_metadata::MetadataCommand;

    /// A package with some features, and a dependency with some of its.
    fn found(name: &str, features: &str, of_dependency: &str) -> Vec<String> {
        let json = format!(
            r#"{{"packages":[{{"name":"{name}","version":"0.1.0","id":"{name} 0.1.0","targets":[],"features":{features},
                "manifest_path":"/w/Cargo.toml","dependencies":[{{"name":"lib","req":"*","kind":null,"optional":false,
                "uses_default_features":true,"features":{of_dependency},"target":null}}]}}],"workspace_members":[],
                "resolve":null,"workspace_root":"/w","target_directory":"/w/target","version":1}}"#
        );
        let metadata = MetadataCommand::parse(json).expect("the metadata is valid");
        violations(&metadata.packages)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_feature_for_tests_may_be_had_and_handed_on_and_turned_on_by_tests() {
        assert_eq!(found("local", r#"{"steps":["lib/steps"]}"#, "[]"), [""; 0]);
        assert_eq!(found(TESTS, "{}", r#"["steps"]"#), [""; 0]);
    }

    #[test]
    fn whoever_else_turns_it_on_is_found() {
        assert_eq!(
            found("cli", "{}", r#"["steps"]"#),
            ["cli: must not turn on lib's feature `steps`"]
        );
        for other in ["steps", "lib/steps"] {
            let features = format!(r#"{{"default":["{other}"],"steps":[]}}"#);
            assert_eq!(
                found("cli", &features, "[]"),
                ["cli: its feature `default` must not turn on `steps`"]
            );
        }
    }
}
