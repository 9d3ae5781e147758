//! What npm installs for a package of the checkout.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::command;

/// What was installed, in a file that npm removes with everything else.
const STAMP: &str = "node_modules/.installed";

/// Installs exactly what the package's lockfile names, unless that is what is there.
pub(crate) fn install(package: &Path) -> Result<()> {
    let wanted = wanted(package)?;
    let stamp = package.join(STAMP);
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    command::run(Command::new("npm").arg("ci").current_dir(package))?;
    // There is no such directory where the lockfile names nothing for this machine.
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

/// What the installation depends on. The manifest is part of it: npm refuses a lockfile that does not fit.
fn wanted(package: &Path) -> Result<Vec<u8>> {
    let mut wanted = Vec::new();
    for name in ["package.json", "package-lock.json"] {
        let path = package.join(name);
        wanted.extend(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_installed_is_not_installed_again() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        for (name, text) in [
            ("package.json", "not JSON"),
            ("package-lock.json", "not JSON either"),
        ] {
            fs::write(scratch.path().join(name), text).expect("a new file");
        }
        fs::create_dir(scratch.path().join("node_modules")).expect("a new directory");
        fs::write(scratch.path().join(STAMP), "not JSONnot JSON either").expect("a new file");
        // npm would refuse these files.
        install(scratch.path()).expect("nothing is to be done");
    }
}
