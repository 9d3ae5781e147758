//! The managed `DSH_*` facts: what a command may know of the harness that runs it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use dsh_subprocess::{CONTROL_VARIABLE, DSH_ENV_PREFIX, EnvOverlay, WorldPath, WorldString};

use crate::config::{Config, ConfigError};
use crate::error::ShellError;

/// Names that nobody but the shell itself gives a value.
const RESERVED: [&str; 5] = [
    "DSH_HOME",
    "DSH_SHELL",
    "DSH_SESSION_ID",
    CALL_VARIABLE,
    CONTROL_VARIABLE,
];

/// What tells the processes of one call from those of all others, where the runtime's mechanism lets processes get away: one that
/// left the tree is known by what it still carries.
pub(crate) const CALL_VARIABLE: &str = "DSH_SHELL_CALL";

/// The call that facts are collected for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The id of the agent's session, where there is one.
    pub session: Option<&'a str>,
    /// Where the command runs.
    pub workdir: &'a WorldPath,
}

/// Somebody who knows facts that commands may need, and says beforehand which.
///
/// It is asked anew for each call, so that no command sees a fact of yesterday. A fact that does not hold is left out.
///
/// ```
/// use dsh_shell::Contributor;
///
/// let contributor = Contributor::new("build", ["DSH_BUILD_DIR"], |call| {
///     vec![("DSH_BUILD_DIR".to_owned(), format!("{}/target", call.workdir).into())]
/// });
/// assert!(contributor.is_ok());
/// assert!(Contributor::new("build", ["BUILD_DIR"], |_| vec![]).is_err());
/// ```
pub struct Contributor {
    name: String,
    keys: BTreeSet<String>,
    facts: Box<FactSource>,
}

type FactSource = dyn Fn(&Call<'_>) -> Vec<(String, WorldString)> + Send + Sync;

impl Contributor {
    /// States who contributes, which variables, and how their values are found.
    ///
    /// `facts` is called on the caller's thread, before each command, and should not block.
    ///
    /// # Errors
    ///
    /// An empty name; a key that does not begin with `DSH_`, holds anything but upper-case letters, digits and `_`, is
    /// reserved, or is there twice.
    pub fn new<K: Into<String>>(
        name: impl Into<String>,
        keys: impl IntoIterator<Item = K>,
        facts: impl Fn(&Call<'_>) -> Vec<(String, WorldString)> + Send + Sync + 'static,
    ) -> Result<Self, ConfigError> {
        let name = name.into();
        if name.is_empty() {
            return Err(ConfigError("the name of a contributor is empty".to_owned()));
        }
        let mut declared = BTreeSet::new();
        for key in keys {
            let key = key.into();
            let rest = key.strip_prefix(DSH_ENV_PREFIX).unwrap_or_default();
            let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            if rest.is_empty() || !rest.bytes().all(plain) {
                return Err(ConfigError(format!(
                    "contributor {name}: {key:?} is no managed name: {DSH_ENV_PREFIX} and upper-case letters, digits or _"
                )));
            }
            if RESERVED.contains(&&key[..]) {
                return Err(ConfigError(format!("contributor {name}: {key} is reserved")));
            }
            if declared.contains(&key) {
                return Err(ConfigError(format!(
                    "contributor {name}: {key} is declared twice"
                )));
            }
            declared.insert(key);
        }
        Ok(Self {
            name,
            keys: declared,
            facts: Box::new(facts),
        })
    }
}

impl fmt::Debug for Contributor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contributor")
            .field("name", &self.name)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

/// All who contribute, ordered by name. A clone is the same contributors: they are asked without a lock, and may do what they like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contributors(Vec<Arc<Contributor>>);

impl Contributors {
    /// Takes one in, unless its name or one of its keys is taken.
    pub(crate) fn add(&mut self, contributor: Contributor) -> Result<(), ConfigError> {
        for present in &self.0 {
            if present.name == contributor.name {
                return Err(ConfigError(format!(
                    "there is a contributor named {} already",
                    present.name
                )));
            }
            if let Some(key) = present.keys.intersection(&contributor.keys).next() {
                return Err(ConfigError(format!(
                    "contributor {}: {key} is contributed by {} already",
                    contributor.name, present.name
                )));
            }
        }
        let at = self.0.partition_point(|present| present.name < contributor.name);
        self.0.insert(at, Arc::new(contributor));
        Ok(())
    }

    /// Collects the facts of one call.
    pub(crate) fn collect(&self, config: &Config, call: &Call<'_>) -> Result<EnvOverlay, ShellError> {
        let mut overlay = EnvOverlay::new();
        let mut set = |name: &str, value: WorldString| overlay.insert(name.into(), Some(value));
        set("DSH_SHELL", "1".into());
        if let Some(home) = &config.home {
            set("DSH_HOME", home.as_world_string().clone());
        }
        if let Some(session) = call.session {
            set("DSH_SESSION_ID", session.into());
        }
        for contributor in &self.0 {
            let name = &contributor.name;
            for (key, value) in (contributor.facts)(call) {
                if !contributor.keys.contains(&key) {
                    return Err(ShellError::Facts(format!(
                        "contributor {name} gave {key:?}, which it did not declare"
                    )));
                }
                if value.as_bytes().contains(&0) {
                    return Err(ShellError::Facts(format!(
                        "contributor {name}: the value of {key} contains a NUL byte"
                    )));
                }
                if overlay.insert(key.as_str().into(), Some(value)).is_some() {
                    return Err(ShellError::Facts(format!("contributor {name} gave {key} twice")));
                }
            }
        }
        Ok(overlay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workdir() -> WorldPath {
        "/srv".into()
    }

    fn collect(contributors: &Contributors, session: Option<&str>) -> Result<EnvOverlay, ShellError> {
        let workdir = workdir();
        let call = Call {
            session,
            workdir: &workdir,
        };
        contributors.collect(&Config::default(), &call)
    }

    fn gives(name: &str, key: &'static str, value: &'static str) -> Contributor {
        Contributor::new(name, [key], move |_| vec![(key.to_owned(), value.into())]).expect("it is right")
    }

    #[test]
    fn item_9_every_call_knows_the_shell_and_an_agent_s_call_its_session() {
        let none = Contributors::default();
        let facts = collect(&none, None).expect("there is nothing to fail");
        assert_eq!(facts, EnvOverlay::from([("DSH_SHELL".into(), Some("1".into()))]));
        let facts = collect(&none, Some("s-1")).expect("there is nothing to fail");
        assert_eq!(facts[&"DSH_SESSION_ID".into()], Some("s-1".into()));
        let home = Config {
            home: Some("/home/dsh".into()),
            ..Config::default()
        };
        let workdir = workdir();
        let call = Call {
            session: None,
            workdir: &workdir,
        };
        let facts = none.collect(&home, &call).expect("there is nothing to fail");
        assert_eq!(facts[&"DSH_HOME".into()], Some("/home/dsh".into()));
    }

    #[test]
    fn item_9_facts_are_collected_anew_for_each_call() {
        use std::sync::atomic::{AtomicU32, Ordering};
        let count = AtomicU32::new(0);
        let mut contributors = Contributors::default();
        let counting = Contributor::new("count", ["DSH_COUNT"], move |call| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            vec![(
                "DSH_COUNT".to_owned(),
                format!("{number} {}", call.workdir).into(),
            )]
        });
        contributors
            .add(counting.expect("it is right"))
            .expect("the name is free");
        for expected in ["0 /srv", "1 /srv"] {
            let facts = collect(&contributors, None).expect("the fact is declared");
            assert_eq!(facts[&"DSH_COUNT".into()], Some(expected.into()));
        }
    }

    #[test]
    fn item_9_contributors_are_asked_in_the_order_of_their_names() {
        use std::sync::{Arc, Mutex};
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut contributors = Contributors::default();
        for name in ["b", "c", "a"] {
            let order = Arc::clone(&order);
            let asked = Contributor::new(name, [] as [&str; 0], move |_| {
                order.lock().expect("nobody panicked").push(name);
                Vec::new()
            });
            contributors
                .add(asked.expect("it is right"))
                .expect("the name is free");
        }
        collect(&contributors, None).expect("there is nothing to fail");
        assert_eq!(*order.lock().expect("nobody panicked"), ["a", "b", "c"]);
    }

    #[test]
    fn item_9_wrong_facts_fail_the_call_and_name_the_contributor() {
        let undeclared = Contributor::new("odd", ["DSH_A"], |_| vec![("DSH_B".to_owned(), "1".into())]);
        let twice = Contributor::new("odd", ["DSH_A"], |_| {
            vec![("DSH_A".to_owned(), "1".into()), ("DSH_A".to_owned(), "2".into())]
        });
        let nul = Contributor::new("odd", ["DSH_A"], |_| vec![("DSH_A".to_owned(), "1\x002".into())]);
        for (contributor, named) in [(undeclared, "\"DSH_B\""), (twice, "DSH_A twice"), (nul, "NUL")] {
            let mut contributors = Contributors::default();
            contributors
                .add(contributor.expect("it is right"))
                .expect("the name is free");
            let error = collect(&contributors, None)
                .expect_err("the fact is wrong")
                .to_string();
            assert!(error.contains("odd") && error.contains(named), "{error}");
        }
    }

    #[test]
    fn item_9_reserved_foreign_and_repeated_keys_are_refused() {
        for key in [
            "DSH_HOME",
            "DSH_SHELL",
            "DSH_SESSION_ID",
            "DSH_SUBPROCESS_CONTROL",
            "PATH",
            "DSH_",
            "DSH_a",
            "DSH_A=B",
        ] {
            let refused = Contributor::new("x", [key], |_| Vec::new()).expect_err("the key is wrong");
            assert!(refused.to_string().contains(key), "{refused}");
        }
        assert!(Contributor::new("x", ["DSH_A", "DSH_A"], |_| Vec::new()).is_err());
        assert!(Contributor::new("", ["DSH_A"], |_| Vec::new()).is_err());
        let mut contributors = Contributors::default();
        contributors
            .add(gives("one", "DSH_A", "1"))
            .expect("the name is free");
        let taken = contributors
            .add(gives("two", "DSH_A", "2"))
            .expect_err("the key is taken");
        assert_eq!(
            taken.to_string(),
            "contributor two: DSH_A is contributed by one already"
        );
        assert!(contributors.add(gives("one", "DSH_B", "2")).is_err());
        let facts = collect(&contributors, None).expect("the fact is declared");
        assert_eq!(facts[&"DSH_A".into()], Some("1".into()));
    }
}
