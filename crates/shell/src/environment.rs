//! The environment of a command, from the bottom up.

use dsh_subprocess::{EnvOverlay, WorldString};

/// What a program needs to know to speak to a model: no colours, no pager, no editor, no prompt.
const SET: [(&str, &str); 12] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // Empty is nobody to ask. Where it is not there at all, git asks the program that its configuration names.
    ("GIT_ASKPASS", ""),
    // `false` fails at once, and what called it says that its editor did.
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// What would open a window to ask in, or colour what nobody sees.
const REMOVED: [&str; 3] = ["SSH_ASKPASS", "FORCE_COLOR", "CLICOLOR_FORCE"];

/// Returns the variables that every command gets unless its deployment or its caller says otherwise.
///
/// They switch off colours (`NO_COLOR`, `TERM=dumb`), pagers (`PAGER`, `GIT_PAGER`), prompts (`GIT_TERMINAL_PROMPT`,
/// `DEBIAN_FRONTEND`, the programs that ask for passwords in windows), and make editors fail at once instead of waiting for
/// keys that nobody presses.
///
/// ```
/// let overlay = dsh_shell::model_environment();
/// assert_eq!(overlay[&"TERM".into()], Some("dumb".into()));
/// ```
pub fn model_environment() -> EnvOverlay {
    let set = SET.map(|(name, value)| (name.into(), Some(WorldString::from(value))));
    let removed = REMOVED.map(|name| (name.into(), None));
    set.into_iter().chain(removed).collect()
}

/// Layers what a command gets on top of the scrubbed environment; the later layer wins.
pub(crate) fn layered(deployment: &EnvOverlay, request: &EnvOverlay, managed: EnvOverlay) -> EnvOverlay {
    let mut overlay = model_environment();
    for layer in [deployment, request] {
        overlay.extend(layer.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    overlay.extend(managed);
    overlay
}
