//! `dist`: what the TypeScript compiler makes of the sources, and the face of it for ECMAScript modules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use walkdir::WalkDir;

use super::addon::replace;
use super::typescript;
use crate::command;

/// Builds `dist` of the package. What is up to date there is left alone, and what has no source any more is removed.
pub(super) fn build(package: &Path) -> Result<()> {
    // Beside it, so that what is built finds the addon in the same place.
    let fresh = tempfile::Builder::new()
        .prefix(".dist-")
        .tempdir_in(package)
        .context("cannot make a directory for what is built")?;
    command::run(
        typescript(package)
            .current_dir(package)
            .args(["--noEmit", "false", "--noEmitOnError", "--outDir"])
            .arg(fresh.path()),
    )?;
    command::run(
        Command::new("node")
            .arg(package.join("scripts/modules.mjs"))
            .arg(fresh.path()),
    )?;
    update(fresh.path(), &package.join("dist"))
}

/// Makes `to` hold the files of `from` and no others.
fn update(from: &Path, to: &Path) -> Result<()> {
    let wanted = files(from)?;
    for file in &wanted {
        let path = to.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        replace(&path, &fs::read(from.join(file))?)?;
    }
    for file in files(to)?.difference(&wanted) {
        let path = to.join(file);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Every file below the directory, by its path from there.
fn files(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for entry in WalkDir::new(directory) {
        let entry = entry?;
        if entry.file_type().is_file() {
            files.insert(entry.path().strip_prefix(directory)?.to_owned());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_removes_what_has_no_source_any_more() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
        for (file, text) in [
            ("from/a/new.js", "new"),
            ("from/same.js", "same"),
            ("to/same.js", "old"),
            ("to/b/gone.js", ""),
        ] {
            let path = scratch.path().join(file);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, text).expect("written");
        }
        update(&from, &to).expect("it is updated");
        assert_eq!(
            files(&to).expect("a directory"),
            files(&from).expect("a directory")
        );
        assert_eq!(
            fs::read_to_string(to.join("same.js")).expect("it is there"),
            "same"
        );
    }
}
