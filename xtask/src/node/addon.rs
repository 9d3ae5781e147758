//! The native half of the package: a library that is named after its platform, and lies beside `package.json`.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use cargo_metadata::Message;

use super::platform::Platform;
use super::{ADDON_PACKAGE, directory};
use crate::command;
use crate::workspace::Workspace;

/// Builds the addon for release, puts it in its place, and returns where that is.
pub(super) fn build(workspace: &Workspace, platform: &Platform) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--release", "--package", ADDON_PACKAGE]);
    if !platform.is_host {
        cargo.args(["--target", platform.target]);
    }
    if platform.target.ends_with("-musl") {
        // A library that others load cannot be static, which is what the target is by itself.
        let variable = format!(
            "CARGO_TARGET_{}_RUSTFLAGS",
            platform.target.to_uppercase().replace('-', "_")
        );
        cargo.env(variable, "-Ctarget-feature=-crt-static");
    }
    // Without line tables the file is a fifth as large.
    cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    let messages = command::output(cargo.arg("--message-format=json-render-diagnostics"))?;
    let built = library(&messages)?;
    let place = directory(workspace)?.join(platform.file_name());
    replace(
        &place,
        &fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?,
    )?;
    Ok(place)
}

/// Finds the library among the files that cargo tells of.
fn library(messages: &[u8]) -> Result<PathBuf> {
    for message in Message::parse_stream(messages) {
        let Message::CompilerArtifact(artifact) = message.context("cannot read what cargo tells")? else {
            continue;
        };
        if !artifact.package_id.repr.contains(ADDON_PACKAGE) || !artifact.target.is_cdylib() {
            continue;
        }
        let library = artifact
            .filenames
            .iter()
            .find(|file| matches!(file.extension(), Some("dll" | "dylib" | "so")));
        return library
            .map(|file| file.as_std_path().to_owned())
            .ok_or_else(|| anyhow!("{ADDON_PACKAGE} has built no library that can be loaded"));
    }
    Err(anyhow!("{ADDON_PACKAGE} is no library that can be loaded"))
}

/// Gives the file these contents, unless it has them. A process that has loaded the old file keeps it, and none ever sees half of
/// the new one.
pub(super) fn replace(path: &Path, contents: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|present| present == contents) {
        return Ok(());
    }
    let write = || -> Result<()> {
        let beside = path.parent().context("a file is in a directory")?;
        let mut new = tempfile::Builder::new()
            .prefix(".new-")
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(beside)?;
        new.write_all(contents)?;
        new.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_only_where_it_differs() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let path = scratch.path().join("addon.node");
        replace(&path, b"one").expect("it is written");
        let first = fs::File::open(&path).expect("it is there");
        replace(&path, b"one").expect("nothing is to be done");
        replace(&path, b"two").expect("it is replaced");

        assert_eq!(fs::read(&path).expect("it is there"), b"two");
        assert_eq!(first.metadata().expect("it is open").len(), 3);
        let names: Vec<_> = fs::read_dir(scratch.path())
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["addon.node"]);
    }

    #[test]
    fn the_library_is_the_one_of_the_addon() {
        let artifact = |package: &str, kind: &str, file: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///w/{package}#0.1.0","manifest_path":"/w/Cargo.toml",
                    "target":{{"kind":["{kind}"],"crate_types":["{kind}"],"name":"x","src_path":"/w/lib.rs","edition":"2024",
                    "doctest":false,"test":false,"doc":true}},"profile":{{"opt_level":"3","debuginfo":0,
                    "debug_assertions":false,"overflow_checks":false,"test":false}},"features":[],
                    "filenames":["{file}"],"executable":null,"fresh":true}}"#
            )
            .replace('\n', "")
        };
        let messages = [
            artifact("dsh-subprocess-sys", "lib", "/t/libsys.rlib"),
            artifact(ADDON_PACKAGE, "custom-build", "/t/build-script-build"),
            artifact(ADDON_PACKAGE, "cdylib", "/t/libnode.so"),
        ]
        .join("\n");
        assert_eq!(
            library(messages.as_bytes()).expect("it is there"),
            Path::new("/t/libnode.so")
        );
        let others = artifact("dsh-subprocess-sys", "lib", "/t/libsys.rlib");
        assert!(library(others.as_bytes()).is_err());
    }
}
