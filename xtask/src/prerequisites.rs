//! What the test run needs and a machine with nothing but a Rust toolchain may lack.
//!
//! Programs come from Debian, when this is Debian and the user is root; otherwise the exact command is printed and
//! nothing is changed. Cargo's extensions are built into the target directory, so nothing outside the checkout and the
//! system's packages changes.

use std::collections::BTreeSet;
use std::env;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};
use cargo_metadata::semver::Version;

use crate::command;
use crate::workspace::Workspace;

/// Where programs are looked for: the place that root and `nobody` have in common.
pub(crate) const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// One thing that a step of the test run cannot do without.
#[derive(Clone, Copy)]
pub(crate) enum Prerequisite {
    /// A component of the Rust toolchain.
    Component(&'static str),
    /// A program on the system's path.
    Program(&'static Program),
    /// Debian packages without a program to look for.
    Packages(&'static [&'static str]),
    /// An extension of cargo.
    Extension(&'static Extension),
}

/// A program, and the Debian package that has it.
pub(crate) struct Program {
    name: &'static str,
    package: &'static str,
}

impl Program {
    const fn new(name: &'static str, package: &'static str) -> Self {
        Self { name, package }
    }
}

/// Drops root's rights, to run tests as `nobody`.
pub(crate) const SETPRIV: Program = Program::new("setpriv", "util-linux");

/// Installs what the Node.js package is built and tested with.
pub(crate) const NPM: Program = Program::new("npm", "npm");

/// What Python makes an environment of its own with. Debian has it apart from the interpreter.
pub(crate) const VENV: &[&str] = &["python3-venv"];

/// What the tests themselves run, beside the `probe` of this workspace. A test that runs another program adds it here.
pub(crate) const TEST_PROGRAMS: &[Program] = &[
    Program::new("bash", "bash"),
    Program::new("sh", "dash"),
    Program::new("env", "coreutils"),
    Program::new("gdb", "gdb"),
    Program::new("git", "git"),
    Program::new("grep", "grep"),
    Program::new("less", "less"),
    Program::new("mount", "mount"),
    Program::new("node", "nodejs"),
    Program::new("python3", "python3"),
    Program::new("script", "bsdutils"),
    Program::new("sed", "sed"),
    Program::new("setpriv", "util-linux"),
    Program::new("setsid", "util-linux"),
    Program::new("tmux", "tmux"),
    Program::new("top", "procps"),
    Program::new("unshare", "util-linux"),
    Program::new("vim", "vim"),
];

/// An extension of cargo, as a crate with one program.
pub(crate) struct Extension {
    /// The crate's and the program's name.
    name: &'static str,
    /// What cargo calls it.
    subcommand: &'static str,
    /// The version that is built where there is none.
    version: Version,
    /// The oldest version that is good enough where there is one.
    oldest: Version,
    /// Which of its features are built.
    features: &'static [&'static str],
}

/// The test runner. The oldest version is the first whose profiles inherit from each other.
pub(crate) static NEXTEST: Extension = Extension {
    name: "cargo-nextest",
    subcommand: "nextest",
    version: Version::new(0, 9, 143),
    oldest: Version::new(0, 9, 115),
    features: &["--no-default-features", "--features=default-no-update"],
};

/// The judge of dependencies.
pub(crate) static DENY: Extension = Extension {
    name: "cargo-deny",
    subcommand: "deny",
    version: Version::new(0, 20, 2),
    oldest: Version::new(0, 18, 4),
    features: &[],
};

/// Makes sure that everything is there: installs what may be installed, and says what else must be.
pub(crate) fn provide(workspace: &Workspace, prerequisites: &[Prerequisite]) -> Result<()> {
    for prerequisite in prerequisites {
        if let Prerequisite::Component(name) = prerequisite {
            require_component(workspace, name)?;
        }
    }
    let lacking = lacking_packages(prerequisites);
    if !lacking.is_empty() {
        install_packages(&lacking)?;
        let lacking = lacking_packages(prerequisites);
        if !lacking.is_empty() {
            bail!(
                "apt-get succeeded, and these are still not usable: {}",
                joined(&lacking)
            );
        }
    }
    for prerequisite in prerequisites {
        if let Prerequisite::Extension(extension) = prerequisite {
            extension.provide(workspace)?;
        }
    }
    Ok(())
}

fn require_component(workspace: &Workspace, name: &str) -> Result<()> {
    let subcommand = if name == "rustfmt" { "fmt" } else { name };
    if !command::succeeds(workspace.cargo().args([subcommand, "--version"])) {
        bail!("the Rust toolchain lacks {name}; add it and start again:\n  rustup component add {name}");
    }
    Ok(())
}

/// The Debian packages that have what is not here.
fn lacking_packages(prerequisites: &[Prerequisite]) -> BTreeSet<&'static str> {
    let mut lacking = BTreeSet::new();
    for prerequisite in prerequisites {
        match prerequisite {
            Prerequisite::Program(program) if find(program.name, SYSTEM_PATH.as_ref()).is_none() => {
                lacking.insert(program.package);
            }
            Prerequisite::Packages(packages) => {
                lacking.extend(packages.iter().filter(|package| !is_installed(package)));
            }
            Prerequisite::Program(_) | Prerequisite::Component(_) | Prerequisite::Extension(_) => {}
        }
    }
    lacking
}

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query
        .args(["--show", "--showformat", "${db:Status-Status}", package])
        .stderr(std::process::Stdio::null());
    query.output().is_ok_and(|output| output.stdout == b"installed")
}

fn install_packages(packages: &BTreeSet<&'static str>) -> Result<()> {
    let install = ["install", "--no-install-recommends", "-y"];
    if !rustix::process::geteuid().is_root() || find("apt-get", SYSTEM_PATH.as_ref()).is_none() {
        bail!(
            "this machine lacks what the tests need; install it, on Debian with this command, and start again:\n  \
             sudo apt-get update && sudo apt-get {} {}",
            install.join(" "),
            joined(packages)
        );
    }
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    command::run(apt().arg("update"))?;
    command::run(apt().args(install).args(packages))
}

fn joined(packages: &BTreeSet<&'static str>) -> String {
    packages.iter().copied().collect::<Vec<_>>().join(" ")
}

/// The executable file of that name in the first directory that has one.
fn find(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    let executable = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(path)
        .map(|directory| directory.join(name))
        .find(executable)
}

impl Extension {
    /// Returns the program's path, after building it where neither PATH nor the target directory has one that is
    /// recent enough.
    pub(crate) fn provide(&self, workspace: &Workspace) -> Result<PathBuf> {
        let tools = workspace.target_directory().join("tools");
        let built = tools.join("bin").join(self.name);
        let on_path = env::var_os("PATH").and_then(|path| find(self.name, &path));
        for candidate in on_path.into_iter().chain([built.clone()]) {
            if self
                .version_of(&candidate)
                .is_ok_and(|version| version >= self.oldest)
            {
                return Ok(candidate);
            }
        }

        println!("building {} {} into {}", self.name, self.version, tools.display());
        let mut install = workspace.cargo();
        install.args([
            "install",
            "--locked",
            "--force",
            self.name,
            "--version",
            &self.version.to_string(),
            "--root",
        ]);
        install.arg(&tools).args(self.features);
        // It runs once or twice: a program built in a third of the time serves better than a fast one.
        install.envs([
            ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
            ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
            ("CARGO_PROFILE_RELEASE_LTO", "off"),
            ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
        ]);
        command::run(&mut install)?;
        let version = self.version_of(&built)?;
        if version != self.version {
            bail!(
                "built {} {}, and it calls itself {version}",
                self.name,
                self.version
            );
        }
        Ok(built)
    }

    /// Asks the program for its version.
    fn version_of(&self, program: &Path) -> Result<Version> {
        let stdout = command::output(Command::new(program).args([self.subcommand, "--version"]))?;
        let line = String::from_utf8_lossy(&stdout);
        let word = line
            .split_whitespace()
            .nth(1)
            .ok_or_else(|| anyhow!("{} names no version", self.name))?;
        Version::parse(word).with_context(|| format!("{} names no version: {word}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_program_is_found_where_it_can_be_executed() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let directories = ["a", "b", "c"].map(|name| scratch.path().join(name));
        for directory in &directories {
            fs::create_dir(directory).expect("a new directory");
        }
        fs::create_dir(directories[0].join("tool")).expect("a directory of that name");
        fs::write(directories[1].join("tool"), "").expect("a file that is not executable");
        fs::write(directories[2].join("tool"), "").expect("a file");
        fs::set_permissions(directories[2].join("tool"), fs::Permissions::from_mode(0o755))
            .expect("made executable");

        let path = env::join_paths(&directories).expect("the names hold no colon");
        assert_eq!(find("tool", &path), Some(directories[2].join("tool")));
        assert_eq!(find("other", &path), None);
    }

    #[test]
    fn a_program_that_is_not_there_names_its_package() {
        static ABSENT: Program = Program {
            name: "no-such-program-anywhere",
            package: "its-package",
        };
        static PRESENT: Program = Program {
            name: "sh",
            package: "dash",
        };
        let lacking = lacking_packages(&[Prerequisite::Program(&ABSENT), Prerequisite::Program(&PRESENT)]);
        assert_eq!(joined(&lacking), "its-package");
    }
}
