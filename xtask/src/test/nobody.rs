//! What it takes to run a program as `nobody`: another identity, and a place of its own.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::command;
use crate::prerequisites::SYSTEM_PATH;

/// The user and the group `nobody` (on Debian, `nogroup`).
const NOBODY: u32 = 65534;

/// Whether the run is root's, and the tests have to run as `nobody` besides.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether `nobody` can read the file, and so enter every directory above it.
pub(super) fn can_read(path: &Path) -> bool {
    command::succeeds(as_nobody("test").arg("-r").arg(path))
}

/// A directory that everybody can enter, with a home and a place for temporary files that are `nobody`'s alone.
pub(super) struct Scratch(TempDir);

impl Scratch {
    pub(super) fn new() -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("dsh-subprocess-unprivileged-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in("/tmp")
            .context("cannot make a directory for nobody's tests")?;
        for private in ["home", "tmp"] {
            let path = directory.path().join(private);
            fs::create_dir(&path)
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o700)))
                .and_then(|()| chown(&path, Some(NOBODY), Some(NOBODY)))
                .with_context(|| format!("cannot give {} to nobody", path.display()))?;
        }
        Ok(Self(directory))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf> {
        let path = self.path().join(name);
        fs::write(&path, contents)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o644)))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// The program with `nobody`'s identity and an environment that owes nothing to root's.
    pub(super) fn command_of_nobody(&self, program: &Path) -> Command {
        let mut command = as_nobody(program);
        command
            .env_clear()
            .envs([("LANG", "C.UTF-8"), ("PATH", SYSTEM_PATH), ("USER", "nobody")]);
        command
            .env("HOME", self.path().join("home"))
            .env("TMPDIR", self.path().join("tmp"));
        command
    }
}

/// The program, started without any of root's rights.
fn as_nobody(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]);
    command
        .args(["--clear-groups", "--inh-caps=-all", "--"])
        .arg(program.as_ref());
    command
}
