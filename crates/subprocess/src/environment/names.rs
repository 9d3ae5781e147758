//! Which names are credentials.
//!
//! | a name that | is | because |
//! |---|---|---|
//! | contains `KEY`, `PASSWORD`, `SECRET` or `TOKEN` | dropped | the contract's four words, anywhere, in any case |
//! | starts with `DSH_` | dropped | a fact about the parent, stale in the child |
//! | is in [`HARMLESS`], or is `GIT_CONFIG_KEY_n` | kept | it matches by accident: see the reason beside each |
//! | is in [`ESSENTIAL`] | kept | a child without it breaks; its value is never looked at |
//! | contains `PASSPHRASE`, `PASSWD`, `CREDENTIAL`, `BEARER` | dropped | other words for the same things |
//! | has the word `AUTH`, `AUTHORIZATION`, `COOKIE` | dropped | `DOCKER_AUTH_CONFIG`, npm's `_auth`, `RELEASE_COOKIE` |
//! | ends in the word `PASS`, `PWD`, `PAT`, `PRIVATE`, … | dropped | `MYSQL_PWD`, `SMTP_PASS`, `AZURE_DEVOPS_EXT_PAT` |
//! | is in [`CREDENTIALS`] | dropped | see the reason beside each |
//!
//! A word is a run of letters and digits. A name of the lower half that ends in a word of [`PLAIN_ENDINGS`] says where
//! a credential is or how it is used, which a program needs and which opens nothing: `AWS_SHARED_CREDENTIALS_FILE`,
//! `OS_AUTH_URL`. For the same reason `KUBECONFIG`, `PGPASSFILE`, `XAUTHORITY`, `KRB5CCNAME`, `SSH_ASKPASS` and
//! `GIT_ASKPASS` match nothing here. The four words of the contract have no such exception: `TOKEN_FILE` is dropped
//! unless the user keeps it.

/// What makes a name a credential, as the text of a regular expression that ignores case and matches anywhere.
///
/// It is here for those who show it or give it to another program; [`Scrub`](crate::Scrub) applies it.
pub const SENSITIVE_ENV_PATTERN: &str = "KEY|PASSWORD|SECRET|TOKEN";

/// The prefix, in any case, of the names that this project manages. An ambient one never reaches a child.
pub const DSH_ENV_PREFIX: &str = "DSH_";

/// The alternatives of [`SENSITIVE_ENV_PATTERN`].
const SENSITIVE: Parts = Parts::new(&["KEY", "PASSWORD", "SECRET", "TOKEN"]);

/// The name of the count. Git refuses to run when one that it counts is absent.
pub(super) const GIT_CONFIG_COUNT: &str = "GIT_CONFIG_COUNT";

// Every function takes a name whose ASCII letters are in upper case.

/// Tells whether a name matches [`SENSITIVE_ENV_PATTERN`].
pub(super) fn sensitive(name: &[u8]) -> bool {
    SENSITIVE.are_in(name)
}

/// Tells whether a name is in the managed namespace.
pub(super) fn managed(name: &[u8]) -> bool {
    name.starts_with(DSH_ENV_PREFIX.as_bytes())
}

/// Tells whether a name that may match one of the rules names no credential.
pub(super) fn harmless(name: &[u8]) -> bool {
    listed(name, HARMLESS) || git_config(name, "GIT_CONFIG_KEY_")
}

/// Tells whether a child breaks without this variable.
pub(super) fn essential(name: &[u8]) -> bool {
    listed(name, ESSENTIAL)
}

/// Tells whether a name is a credential by the rules beyond the contract's.
pub(super) fn credential(name: &[u8]) -> bool {
    if listed(name, CREDENTIALS) {
        return true;
    }
    let mut words = name
        .split(|byte| !byte.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    let mut last = first;
    let mut has_word = listed(first, WORDS);
    for word in words {
        has_word |= listed(word, WORDS);
        last = word;
    }
    if listed(last, PLAIN_ENDINGS) {
        return false;
    }
    has_word || first == b"PRIVATE" || listed(last, LAST_WORDS) || PARTS.are_in(name)
}

/// Tells whether a variable names a proxy: `http_proxy`, `HTTPS_PROXY`, `npm_config_proxy`, …
pub(super) fn proxy(name: &[u8]) -> bool {
    name.strip_suffix(b"PROXY")
        .is_some_and(|before| before.is_empty() || before.ends_with(b"_"))
}

/// Tells whether a variable is a data source name, whose URL is useless without its user (Sentry's for one).
pub(super) fn data_source(name: &[u8]) -> bool {
    name.ends_with(b"DSN")
}

/// Tells whether a variable is a member of the numbered set that [`GIT_CONFIG_COUNT`] counts.
pub(super) fn counted_by_git(name: &[u8]) -> bool {
    git_config(name, "GIT_CONFIG_KEY_") || git_config(name, "GIT_CONFIG_VALUE_")
}

fn git_config(name: &[u8], prefix: &str) -> bool {
    name.strip_prefix(prefix.as_bytes())
        .is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// Words to look for anywhere in a name.
pub(super) struct Parts {
    words: &'static [&'static str],
    /// The first letters, by their low five bits: most bytes of most names begin none of the words.
    firsts: u32,
}

impl Parts {
    pub(super) const fn new(words: &'static [&'static str]) -> Self {
        let (mut firsts, mut index) = (0, 0);
        while index < words.len() {
            firsts |= 1 << (words[index].as_bytes()[0] & 31);
            index += 1;
        }
        Self { words, firsts }
    }

    pub(super) fn are_in(&self, name: &[u8]) -> bool {
        name.iter().enumerate().any(|(at, &byte)| {
            self.firsts & (1 << (byte & 31)) != 0
                && self
                    .words
                    .iter()
                    .any(|word| name[at..].starts_with(word.as_bytes()))
        })
    }
}

fn listed(name: &[u8], list: &[&str]) -> bool {
    list.iter().any(|entry| name == entry.as_bytes())
}

/// Names without which programs fail (no `HOME`: git stops; no `PATH`: exit status 127). They pass unchanged whatever
/// they hold. `TERM` is among them: which terminal it is, is the caller's to say.
const ESSENTIAL: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "PWD",
    "OLDPWD",
    "TZ",
    // The location of the agent's socket. The agent signs for its user and gives no key away.
    "SSH_AUTH_SOCK",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    // Windows.
    "SYSTEMROOT",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
];

/// Names that match a rule and are no credentials. Their values are still looked at.
const HARMLESS: &[&str] = &[
    // A switch of a text-processing library.
    "TOKENIZERS_PARALLELISM",
    // Limits, counted in tokens of text.
    "MAX_TOKENS",
    "MAX_THINKING_TOKENS",
    "MAX_MCP_OUTPUT_TOKENS",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    // Keyboards: zsh's escape delay, the console's and the compositor's layout, less's bindings.
    "KEYTIMEOUT",
    "KEYMAP",
    "KEYBOARD_LAYOUT",
    "KEYBOARD_VARIANT",
    "QT_QPA_EVDEV_KEYBOARD_PARAMETERS",
    "LESSKEY",
    "LESSKEYIN",
    "LESSKEY_SYSTEM",
    "LESSKEYIN_SYSTEM",
    // Where the key ring listens, and which implementation to ask: it decides itself whom it answers.
    "GNOME_KEYRING_CONTROL",
    "GNOME_KEYRING_PID",
    "PYTHON_KEYRING_BACKEND",
    "PIP_KEYRING_PROVIDER",
    "UV_KEYRING_PROVIDER",
    // Paths of files, which their programs open with the rights of the user.
    "GOOGLE_APPLICATION_CREDENTIALS",
    "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE",
    "NSS_WRAPPER_PASSWD",
    "PULSE_COOKIE",
];

/// Credentials that no rule finds.
const CREDENTIALS: &[&str] = &[
    // The password that sshpass types.
    "SSHPASS",
    // A path on the metadata service; whoever knows it is given the role's credentials.
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    // Every variable that direnv and mise changed, with its values, compressed and in base64.
    "DIRENV_DIFF",
    "__MISE_DIFF",
];

/// Parts of a name, anywhere.
const PARTS: Parts = Parts::new(&["PASSPHRASE", "PASSWD", "CREDENTIAL", "BEARER"]);

/// Words of a name, at any place.
const WORDS: &[&str] = &["AUTH", "AUTHORIZATION", "COOKIE", "COOKIES"];

/// Words that end a name.
const LAST_WORDS: &[&str] = &[
    "PASS", "USERPASS", "DBPASS", "PWD", "PW", "PAT", "PRIVATE", "JWT", "OAUTH", "MNEMONIC",
];

/// Words that end the name of a location or of a setting.
const PLAIN_ENDINGS: &[&str] = &[
    "FILE",
    "PATH",
    "DIR",
    "DIRECTORY",
    "HOME",
    "SOCK",
    "SOCKET",
    "URL",
    "HOST",
    "PORT",
    "DOMAIN",
    "REALM",
    "TYPE",
    "METHOD",
    "MODE",
    "PROVIDER",
    "PROVIDERS",
    "PLUGIN",
    "HELPER",
    "ENABLED",
    "DISABLED",
    "TIMEOUT",
    "VERSION",
    "ID",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_what_is_applied() {
        assert_eq!(SENSITIVE.words.join("|"), SENSITIVE_ENV_PATTERN);
    }

    #[test]
    fn the_lists_are_in_upper_case_and_say_nothing_twice() {
        for list in [
            ESSENTIAL,
            HARMLESS,
            CREDENTIALS,
            PARTS.words,
            WORDS,
            LAST_WORDS,
            PLAIN_ENDINGS,
        ] {
            for (index, entry) in list.iter().enumerate() {
                assert_eq!(*entry, entry.to_ascii_uppercase());
                assert!(!list[..index].contains(entry), "{entry}");
            }
        }
        for entry in HARMLESS {
            let name = entry.as_bytes();
            assert!(sensitive(name) || credential(name), "{entry} matches no rule");
        }
    }
}
