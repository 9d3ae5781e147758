//! Which of this process's variables reach the command.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use dsh_subprocess::{CONTROL_VARIABLE, DropReason, EnvOverlay, Scrub, ScrubRule, WorldString};

use crate::failure::Failure;
use crate::options::ScrubOption;

/// The scrub, and what is put on top of it.
pub(crate) struct Variables {
    pub(crate) scrub: Scrub,
    pub(crate) overlay: EnvOverlay,
}

impl Variables {
    /// Reads what --scrub and --keep say. What the overlay names already, by --env and --unset, stands.
    pub(crate) fn new(scrub: ScrubOption, keep: Vec<OsString>, overlay: EnvOverlay) -> Result<Self, Failure> {
        let mut variables = Self {
            scrub: match scrub {
                ScrubOption::All | ScrubOption::Off => Scrub::default(),
                ScrubOption::Names => Scrub::default()
                    .without(ScrubRule::ValueShapes)
                    .without(ScrubRule::UrlCredentials),
            },
            overlay,
        };
        for name in keep {
            variables.keep(&name)?;
        }
        if scrub == ScrubOption::Off {
            variables.keep_all();
        }
        Ok(variables)
    }

    fn keep(&mut self, name: &OsStr) -> Result<(), Failure> {
        let bytes = name.as_bytes();
        if bytes.is_empty() {
            return Err(Failure::bad_option("--keep: the name is empty"));
        }
        if bytes.contains(&b'=') {
            // The value is not quoted: it may be the very credential.
            return Err(Failure::bad_option(
                "--keep takes the name of a variable that is set already; --env NAME=VALUE sets one",
            ));
        }
        if let Some(None) = self.overlay.get(&WorldString::from(name)) {
            let message = format!("--keep {}: --unset removes the same variable", name.display());
            return Err(Failure::bad_option(message));
        }
        self.scrub = std::mem::take(&mut self.scrub).keep(name);
        // The managed names pass as explicit entries only.
        if self.scrub.name_is_dropped(bytes) == Some(DropReason::ManagedName)
            && let Some(value) = env::var_os(name)
        {
            self.name(name, &value);
        }
        Ok(())
    }

    /// Names every variable that there is: what is named is not scrubbed.
    fn keep_all(&mut self) {
        for (name, value) in env::vars_os() {
            let bytes = name.as_bytes();
            // One that tells of a descriptor of ours, which the command does not get; and those that nobody can name.
            if bytes != CONTROL_VARIABLE.as_bytes() && !bytes.contains(&b'=') {
                self.name(&name, &value);
            }
        }
    }

    fn name(&mut self, name: &OsStr, value: &OsStr) {
        self.overlay
            .entry(WorldString::from(name))
            .or_insert_with(|| Some(WorldString::from(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(scrub: ScrubOption, keep: &[&str]) -> Result<Variables, Failure> {
        let keep = keep.iter().map(OsString::from).collect();
        Variables::new(scrub, keep, EnvOverlay::from([("GONE".into(), None)]))
    }

    #[test]
    fn each_scrub_lets_through_what_it_says() {
        let ambient = || {
            [
                ("PLAIN".into(), "plain".into()),
                ("A_KEY".into(), "x".into()),
                ("B_KEY".into(), "y".into()),
                ("URL".into(), "https://ada:pw@host/".into()),
            ]
        };
        for (scrub, url) in [
            (ScrubOption::All, "https://host/"),
            (ScrubOption::Names, "https://ada:pw@host/"),
        ] {
            let variables = variables(scrub, &["B_KEY"]).expect("the names are names");
            let left = variables.scrub.apply(ambient()).environment;
            let left: Vec<_> = left
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            assert_eq!(
                left,
                [
                    "B_KEY=y".to_owned(),
                    "PLAIN=plain".to_owned(),
                    format!("URL={url}")
                ]
            );
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused_without_its_value() {
        for (name, words) in [
            ("", "empty"),
            ("API_KEY=hunter2", "--env NAME=VALUE"),
            ("GONE", "--unset"),
        ] {
            let failure = variables(ScrubOption::All, &[name]).err().expect("it is refused");
            assert_eq!(failure.kind, "bad_option");
            assert!(
                failure.message.contains(words) && !failure.message.contains("hunter2"),
                "{}",
                failure.message
            );
        }
    }

    #[test]
    fn with_the_scrub_off_every_variable_is_named_and_the_overlay_stands() {
        let variables = variables(ScrubOption::Off, &[]).expect("nothing is wrong with it");
        assert_eq!(variables.overlay.get(&"GONE".into()), Some(&None));
        for (name, value) in env::vars_os() {
            let named = variables.overlay.get(&WorldString::from(name.as_os_str()));
            assert!(named == Some(&Some(value.into())) || name == CONTROL_VARIABLE);
        }
    }
}
