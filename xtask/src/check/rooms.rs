//! Who may depend on whom.
//!
//! Dependencies point one way: the seam and the system calls know nothing of each other, a world builds on both, and
//! whoever uses a world chooses it at the outermost edge. The warden builds on nothing at all, and the system calls on it:
//! what a host and a warden share is compiled into a program that has no other crate. The table is the rule; a package
//! that is not in it fails the check, so that a new room begins with the question whom it may know.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{Dependency, DependencyKind, Package};

use super::Violation;

/// A package, and what it may build on.
struct Room {
    package: &'static str,
    /// Packages of this workspace that it may depend on.
    builds_on: &'static [&'static str],
    /// Packages of this workspace that its tests may use besides.
    tests_use: &'static [&'static str],
    /// Crates of others that it must not depend on outside its tests, in groups with a reason.
    does_without: &'static [&'static Ban],
}

/// Crates of others that a room does without.
struct Ban {
    crates: &'static [&'static str],
    /// Features of tokio that are banned in the same way; tokio itself is not.
    tokio_features: &'static [&'static str],
    reason: &'static str,
}

const OS_CALLS: Ban = Ban {
    crates: &["libc", "nix", "rustix", "windows-sys", "windows"],
    tokio_features: &["fs", "net", "process", "signal"],
    reason: "calls of the operating system belong into dsh-subprocess-sys",
};

const EXECUTOR: Ban = Ban {
    crates: &["async-std", "smol"],
    tokio_features: &["full", "rt", "rt-multi-thread", "time"],
    reason: "no async runtime may be needed to spawn, drain, reap or terminate",
};

const ERASED_ERRORS: Ban = Ban {
    crates: &["anyhow", "eyre"],
    tokio_features: &[],
    reason: "a library's errors have kinds; erased errors are for programs",
};

const LIBRARY: &[&Ban] = &[&OS_CALLS, &EXECUTOR, &ERASED_ERRORS];

/// A consumer has deadlines and background work, so it may need tokio's runtime; processes it leaves to the seam.
const CONSUMER: &[&Ban] = &[&OS_CALLS, &ERASED_ERRORS];

const SEAM: &str = "dsh-subprocess";
const WARDEN: &str = "dsh-subprocess-warden";
const SYS: &str = "dsh-subprocess-sys";
const LOCAL: &str = "dsh-subprocess-local";
const TESTKIT: &str = "dsh-subprocess-testkit";
const JOBS: &str = "dsh-jobs";
const SHELL: &str = "dsh-shell";
const MCP: &str = "dsh-mcp";
const CLI: &str = "dsh-subprocess-cli";

const ROOMS: &[Room] = &[
    Room {
        package: SEAM,
        builds_on: &[],
        tests_use: &[],
        does_without: LIBRARY,
    },
    Room {
        package: WARDEN,
        builds_on: &[],
        tests_use: &[SYS],
        does_without: LIBRARY,
    },
    Room {
        package: SYS,
        builds_on: &[WARDEN],
        tests_use: &[],
        does_without: &[&EXECUTOR, &ERASED_ERRORS],
    },
    Room {
        package: LOCAL,
        builds_on: &[SEAM, SYS],
        tests_use: &[TESTKIT],
        does_without: LIBRARY,
    },
    Room {
        package: TESTKIT,
        builds_on: &[SEAM],
        tests_use: &[],
        does_without: LIBRARY,
    },
    Room {
        package: JOBS,
        builds_on: &[SEAM],
        tests_use: &[TESTKIT, LOCAL],
        does_without: CONSUMER,
    },
    Room {
        package: SHELL,
        builds_on: &[SEAM, JOBS],
        tests_use: &[TESTKIT, LOCAL],
        does_without: CONSUMER,
    },
    Room {
        package: MCP,
        builds_on: &[SEAM, JOBS, SHELL],
        tests_use: &[TESTKIT, LOCAL],
        // Its HTTP server has sockets, through tokio.
        does_without: &[&ERASED_ERRORS],
    },
    Room {
        package: CLI,
        builds_on: &[SEAM, JOBS, SHELL, MCP, LOCAL],
        tests_use: &[TESTKIT],
        does_without: &[],
    },
    Room {
        package: "dsh-subprocess-node",
        builds_on: &[SEAM, LOCAL],
        tests_use: &[],
        // Its executor is the event loop of Node.js.
        does_without: &[&EXECUTOR, &ERASED_ERRORS],
    },
    Room {
        package: "dsh-subprocess-integration-tests",
        builds_on: &[SEAM, JOBS, SHELL, MCP, LOCAL, TESTKIT],
        tests_use: &[],
        does_without: &[&ERASED_ERRORS],
    },
    Room {
        package: "dsh-subprocess-benches",
        builds_on: &[SEAM, SYS, JOBS, SHELL, MCP, LOCAL],
        tests_use: &[],
        does_without: &[],
    },
    Room {
        package: "xtask",
        builds_on: &[],
        tests_use: &[],
        does_without: &[],
    },
];

/// Compares the packages with the table.
pub(super) fn violations(packages: &[Package]) -> Vec<Violation> {
    let ours: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let rooms: BTreeMap<&str, &Room> = ROOMS.iter().map(|room| (room.package, room)).collect();

    let mut violations = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        let Some(room) = rooms.get(name) else {
            violations.push(Violation::new(
                name,
                "has no line in the table of rooms (xtask/src/check/rooms.rs)",
            ));
            continue;
        };
        for dependency in &package.dependencies {
            violations.extend(broken(room, &ours, dependency).map(|what| Violation::new(name, what)));
        }
    }
    let gone = rooms.keys().filter(|room| !ours.contains(*room));
    violations
        .extend(gone.map(|room| Violation::new(*room, "is in the table of rooms and not in the workspace")));
    violations
}

/// What is wrong with one dependency of a room.
fn broken(room: &Room, ours: &BTreeSet<&str>, dependency: &Dependency) -> Option<String> {
    let name = dependency.name.as_str();
    let for_tests = dependency.kind == DependencyKind::Development;
    if ours.contains(name) {
        let allowed = room.builds_on.contains(&name) || (for_tests && room.tests_use.contains(&name));
        return (!allowed).then(|| format!("must not depend on {name}"));
    }
    if for_tests {
        return None;
    }
    room.does_without.iter().find_map(|ban| {
        if ban.crates.contains(&name) {
            return Some(format!("must not depend on {name}: {}", ban.reason));
        }
        let feature = dependency
            .features
            .iter()
            .find(|feature| name == "tokio" && ban.tokio_features.contains(&feature.as_str()))?;
        Some(format!(
            "must not use tokio's feature `{feature}`: {}",
            ban.reason
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cargo_metadata::MetadataCommand;

    fn workspace() -> Vec<Package> {
        let json = r#"{"packages":[PACKAGES],"workspace_members":[],"resolve":null,"workspace_root":"/w",
            "target_directory":"/w/target","version":1}"#;
        let packages: Vec<String> = ROOMS.iter().map(|room| package(room.package)).collect();
        MetadataCommand::parse(json.replace("PACKAGES", &packages.join(",")))
            .expect("the metadata is valid")
            .packages
    }

    fn package(name: &str) -> String {
        r#"{"name":"NAME","version":"0.1.0","id":"NAME 0.1.0","dependencies":[],"targets":[],"features":{},
            "manifest_path":"/w/NAME/Cargo.toml"}"#
            .replace("NAME", name)
    }

    fn depends(packages: &mut [Package], name: &str, on: &str, kind: &str, features: &str) {
        let json = format!(
            r#"{{"name":"{on}","req":"*","kind":{kind},"optional":false,"uses_default_features":true,
                "features":{features},"target":null}}"#
        );
        let package = packages
            .iter_mut()
            .find(|package| package.name == name)
            .expect("the package is in the table");
        package.dependencies.push(dependency(&json));
    }

    fn dependency(json: &str) -> Dependency {
        let package = package("host").replace(r#""dependencies":[]"#, &format!(r#""dependencies":[{json}]"#));
        let json = r#"{"packages":[PACKAGE],"workspace_members":[],"resolve":null,"workspace_root":"/w",
            "target_directory":"/w/target","version":1}"#
            .replace("PACKAGE", &package);
        let metadata = MetadataCommand::parse(json).expect("the metadata is valid");
        metadata.packages[0].dependencies[0].clone()
    }

    fn found(packages: &[Package]) -> Vec<String> {
        violations(packages).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_workspace_that_matches_the_table_breaks_no_rule() {
        let mut packages = workspace();
        depends(&mut packages, LOCAL, SEAM, "null", "[]");
        depends(&mut packages, LOCAL, TESTKIT, r#""dev""#, "[]");
        depends(&mut packages, SYS, "libc", "null", "[]");
        depends(&mut packages, SEAM, "tokio", "null", r#"["sync"]"#);
        depends(&mut packages, SEAM, "tokio", r#""dev""#, r#"["rt"]"#);
        assert_eq!(found(&packages), [""; 0]);
    }

    #[test]
    fn a_dependency_in_the_wrong_direction_is_found() {
        let mut packages = workspace();
        depends(&mut packages, SEAM, LOCAL, "null", "[]");
        depends(&mut packages, SYS, SEAM, r#""build""#, "[]");
        depends(&mut packages, TESTKIT, SYS, r#""dev""#, "[]");
        depends(&mut packages, WARDEN, SYS, "null", "[]");
        let expected = [
            "dsh-subprocess: must not depend on dsh-subprocess-local",
            "dsh-subprocess-warden: must not depend on dsh-subprocess-sys",
            "dsh-subprocess-sys: must not depend on dsh-subprocess",
            "dsh-subprocess-testkit: must not depend on dsh-subprocess-sys",
        ];
        assert_eq!(found(&packages), expected);
    }

    #[test]
    fn what_tests_may_use_is_forbidden_to_the_crate_itself() {
        let mut packages = workspace();
        depends(&mut packages, LOCAL, TESTKIT, "null", "[]");
        assert_eq!(
            found(&packages),
            ["dsh-subprocess-local: must not depend on dsh-subprocess-testkit"]
        );
    }

    #[test]
    fn system_calls_executors_and_erased_errors_are_found_in_the_seam() {
        let mut packages = workspace();
        depends(&mut packages, SEAM, "libc", "null", "[]");
        depends(&mut packages, SEAM, "tokio", "null", r#"["sync","rt"]"#);
        depends(&mut packages, SEAM, "anyhow", "null", "[]");
        let found = found(&packages);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].starts_with("dsh-subprocess: must not depend on libc: "),
            "{found:?}"
        );
        assert!(
            found[1].starts_with("dsh-subprocess: must not use tokio's feature `rt`: "),
            "{found:?}"
        );
        assert!(
            found[2].starts_with("dsh-subprocess: must not depend on anyhow: "),
            "{found:?}"
        );
    }

    #[test]
    fn a_package_without_a_line_and_a_line_without_a_package_are_found() {
        let mut packages = workspace();
        packages.retain(|package| package.name != CLI);
        let mut stranger = packages[0].clone();
        stranger.name = dependency_name("dsh-newcomer");
        packages.push(stranger);
        let expected = [
            "dsh-newcomer: has no line in the table of rooms (xtask/src/check/rooms.rs)",
            "dsh-subprocess-cli: is in the table of rooms and not in the workspace",
        ];
        assert_eq!(found(&packages), expected);
    }

    fn dependency_name<T: std::str::FromStr>(name: &str) -> T
    where
        T::Err: std::fmt::Debug,
    {
        name.parse().expect("the name is valid")
    }
}
