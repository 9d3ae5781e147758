//! Environments, as one string: `NAME=value`, separated by NUL, which neither a name nor a value can contain.
//!
//! What JavaScript calls the environment is `process.env` of the very thread, which in a worker is a copy of its own. So the
//! process's `environ` is never read here, and no other thread can change it meanwhile.

use std::cell::RefCell;
use std::ffi::OsString;
use std::sync::Arc;

use dsh_subprocess::{EnvOverlay, Scrub, WorldString};

/// The host's variables, in the order they came in.
pub(crate) type Ambient = Arc<Vec<(OsString, OsString)>>;

/// The environment that was read last. A host's hardly ever changes between two spawns.
#[derive(Default)]
pub(crate) struct AmbientCache(RefCell<Option<(String, Ambient)>>);

impl AmbientCache {
    pub(crate) fn read(&self, joined: String) -> Ambient {
        let mut last = self.0.borrow_mut();
        match &*last {
            Some((text, ambient)) if *text == joined => Arc::clone(ambient),
            _ => {
                let read: Ambient = Arc::new(
                    entries(&joined)
                        .map(|(name, value)| (name.into(), value.into()))
                        .collect(),
                );
                *last = Some((joined, Arc::clone(&read)));
                read
            }
        }
    }
}

/// Scrubs an environment: what a child may have of it.
pub(crate) fn scrub(joined: &str) -> String {
    let pairs = entries(joined).map(|(name, value)| (WorldString::from(name), WorldString::from(value)));
    let kept = Scrub::default().apply(pairs).environment;
    let mut text = String::with_capacity(joined.len());
    for (name, value) in &kept {
        if !text.is_empty() {
            text.push('\0');
        }
        // What came in was text, and a scrub adds nothing.
        text.push_str(&name.to_string_lossy());
        text.push('=');
        text.push_str(&value.to_string_lossy());
    }
    text
}

/// Makes an overlay of pairs; no value removes a variable.
pub(crate) fn overlay(pairs: Vec<(String, Option<String>)>) -> EnvOverlay {
    pairs
        .into_iter()
        .map(|(name, value)| (name.into(), value.map(WorldString::from)))
        .collect()
}

fn entries(joined: &str) -> impl Iterator<Item = (&str, &str)> {
    joined.split('\0').filter_map(|entry| {
        // A name may begin with the sign on other systems. By bytes: the first character may have more than one.
        let sign = entry.bytes().skip(1).position(|byte| byte == b'=')? + 1;
        Some((&entry[..sign], &entry[sign + 1..]))
    })
}
