//! The token that clients show, and where it is kept.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{self, Path, PathBuf};
use std::time::SystemTime;

use dsh_mcp::server::{BearerToken, TokenError};
use rustix::process::geteuid;

use crate::failure::Failure;

/// The file, in the directory that is this program's.
const NAME: &str = "mcp-token";

/// Reads the token from the file, or from the usual one, which is made with a new token where it is missing. Returns the file,
/// too.
pub(super) fn obtain(asked: Option<PathBuf>) -> Result<(BearerToken, PathBuf), Failure> {
    let file = match asked {
        Some(file) => path::absolute(&file)
            .map_err(|error| failure(format!("--token-file {}: {error}", file.display())))?,
        None => usual()?.join(NAME),
    };
    let token = match BearerToken::from_file(&file) {
        Err(TokenError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => make(&file),
        found => found,
    };
    token
        .map(|token| (token, file))
        .map_err(|error| failure(error.to_string()))
}

/// Makes the file. Of several processes that do so at once one is first, and all have its token: the file is complete when it
/// appears under its name.
fn make(file: &Path) -> Result<BearerToken, TokenError> {
    let failed = |source| TokenError::File {
        path: file.to_owned(),
        source,
    };
    // No number that another process may have: what a crash left here must not be in the way of the next start.
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let mut draft = file.as_os_str().to_owned();
    draft.push(format!(".{}-{}", std::process::id(), since.as_nanos()));
    let draft = PathBuf::from(draft);
    BearerToken::create(&draft).map_err(|error| match error {
        TokenError::File { source, .. } => failed(source),
        other => other,
    })?;
    let linked = fs::hard_link(&draft, file);
    fs::remove_file(&draft).map_err(failed)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => BearerToken::from_file(file),
    }
}

/// Makes the directory that is this program's: where this session's files are, or else where state is kept.
fn usual() -> Result<PathBuf, Failure> {
    let named = |variable| {
        env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let parent = named("XDG_RUNTIME_DIR")
        .filter(|path| path.is_dir())
        .or_else(|| named("XDG_STATE_HOME"))
        .or_else(|| named("HOME").map(|home| home.join(".local/state")))
        .ok_or_else(|| {
            failure("there is no place for the token: HOME is not set; name one with --token-file".to_owned())
        })?;
    let directory = parent.join("dsh-subprocess");
    let refused = |cause: &dyn std::fmt::Display| {
        failure(format!(
            "the token's directory {}: {cause}; name a file with --token-file",
            directory.display()
        ))
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .map_err(|error| refused(&error))?;
    // Whoever may write to it could put another token there.
    let found = fs::symlink_metadata(&directory).map_err(|error| refused(&error))?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
        return Err(refused(
            &"it is not a directory that this user alone may write to",
        ));
    }
    Ok(directory)
}

fn failure(message: String) -> Failure {
    Failure::new("token", message)
}
