//! `dsh-subprocess sh`: one command text, as a model sees it.

mod ending;
mod environment;
mod input;
mod json;
mod long;
mod prompts;
mod refused;
mod rendered;

use std::process::Child;

use serde_json::Value;

use crate::fixture::{Case, Finished, start};

/// The words of a call.
fn words<'a>(options: &[&'a str], text: &'a str) -> Vec<&'a str> {
    [&["sh"], options, &["--", text]].concat()
}

impl Case {
    /// Runs a text with these options.
    #[track_caller]
    fn text(&self, options: &[&str], text: &str) -> Finished {
        self.call(words(options, text))
    }

    /// Starts a text with these options.
    fn start_text(&self, options: &[&str], text: &str) -> Child {
        start(&mut self.command(words(options, text)))
    }

    /// Runs a text with --json and these options, and returns the object.
    #[track_caller]
    fn text_object(&self, options: &[&str], text: &str) -> Value {
        self.text(&[&["--json"], options].concat(), text).sh_object()
    }
}
