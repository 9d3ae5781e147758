//! What a deployment decides once, and may change while it runs.

use std::num::NonZeroU64;
use std::time::Duration;

use dsh_subprocess::{EnvOverlay, MAX_GRACE, SpillLife, WorldPath, WorldString, validate_overlay};

/// The limits and habits of a [`Shell`](crate::Shell).
///
/// The defaults are those of the system that this contract comes from: a timeout of 120 s and at most 600 s, 64,000 bytes of
/// each stream, a spill of at most 64 MiB, a grace of 3 s.
///
/// ```
/// use std::time::Duration;
/// use dsh_shell::Config;
///
/// let config = Config { timeout: Duration::from_secs(30), ..Config::default() };
/// assert!(config.validate().is_ok());
/// let refused = Config { grace: Duration::ZERO, ..Config::default() }.validate().unwrap_err();
/// assert!(refused.to_string().starts_with("grace is 0ns"));
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The shell and its own options, without the `-c` that comes after them. Any shell with the language of `sh`.
    pub program: Vec<WorldString>,
    /// Where commands run that name no directory. `None` is this process's own directory at the time of the call.
    pub cwd: Option<WorldPath>,
    /// How long a command may take that names no timeout.
    pub timeout: Duration,
    /// The longest timeout; a longer one that is asked for is shortened to it.
    pub max_timeout: Duration,
    /// Bytes retained of each stream: a quarter from its beginning, the rest from its end.
    pub max_output_bytes: usize,
    /// The largest file for a stream that exceeds what is retained. 0 makes none.
    pub max_spill_bytes: u64,
    /// When that file goes.
    pub spill_life: SpillLife,
    /// The time between `SIGTERM` and `SIGKILL`.
    pub grace: Duration,
    /// How long nothing must be written, after the command's own end, before what it left behind is taken for settled.
    pub quiet: Duration,
    /// How long what it left behind is waited for in all.
    pub drain: Duration,
    /// What becomes of processes that outlive the command.
    pub left_behind: LeftBehindPolicy,
    /// Variables of this deployment, above the [model-friendly ones](crate::model_environment) and below a request's own.
    pub env: EnvOverlay,
    /// The harness's own directory, told to commands as `DSH_HOME`.
    pub home: Option<WorldPath>,
}

/// What becomes of processes that a command leaves behind, as `server &` does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeftBehindPolicy {
    /// They are ended, and the result names them.
    End,
    /// They go on, and the result has the handle to them; [`hand_over`](crate::hand_over) makes that a job.
    Keep,
}

/// What a user may change while the shell is in use: each value that is there replaces the [`Config`]'s.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Settings {
    /// See [`Config::cwd`].
    pub cwd: Option<WorldPath>,
    /// See [`Config::timeout`].
    pub timeout: Option<Duration>,
    /// See [`Config::max_timeout`].
    pub max_timeout: Option<Duration>,
    /// See [`Config::max_output_bytes`].
    pub max_output_bytes: Option<usize>,
    /// See [`Config::max_spill_bytes`].
    pub max_spill_bytes: Option<u64>,
    /// See [`Config::grace`].
    pub grace: Option<Duration>,
    /// See [`Config::left_behind`].
    pub left_behind: Option<LeftBehindPolicy>,
}

/// A configuration that no command could run with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

/// Timers beyond a century are of no use, and some clocks cannot count that far.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Default for Config {
    fn default() -> Self {
        Self {
            program: vec!["bash".into()],
            cwd: None,
            timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            max_output_bytes: 64_000,
            max_spill_bytes: 64 << 20,
            spill_life: SpillLife::Handle,
            grace: Duration::from_secs(3),
            quiet: Duration::from_millis(500),
            drain: Duration::from_millis(1500),
            left_behind: LeftBehindPolicy::End,
            env: EnvOverlay::new(),
            home: None,
        }
    }
}

impl Config {
    /// Checks what no command could run with.
    ///
    /// # Errors
    ///
    /// The first value out of its bounds, by its name: a program that is missing; a timeout, a number of bytes or a grace
    /// of zero; a grace, quiet or drain above [`MAX_GRACE`]; a variable that no environment can hold.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.program.first().is_none_or(WorldString::is_empty) {
            return Err(ConfigError("program is empty: it must name a shell".to_owned()));
        }
        positive("timeout", self.timeout, LONGEST)?;
        positive("max_timeout", self.max_timeout, LONGEST)?;
        if self.max_output_bytes == 0 {
            return Err(ConfigError(
                "max_output_bytes is 0: it must be more than zero".to_owned(),
            ));
        }
        positive("grace", self.grace, MAX_GRACE)?;
        positive("quiet", self.quiet, MAX_GRACE)?;
        positive("drain", self.drain, MAX_GRACE)?;
        if self.cwd.as_ref().is_some_and(|cwd| cwd.as_bytes().is_empty()) {
            return Err(ConfigError("cwd is empty: it must name a directory".to_owned()));
        }
        validate_overlay(&self.env).map_err(|error| ConfigError(error.to_string()))
    }

    /// Puts the settings on top.
    pub(crate) fn with(&self, settings: &Settings) -> Self {
        let Settings {
            cwd,
            timeout,
            max_timeout,
            max_output_bytes,
            max_spill_bytes,
            grace,
            left_behind,
        } = settings;
        let mut config = self.clone();
        if let Some(cwd) = cwd {
            config.cwd = Some(cwd.clone());
        }
        config.timeout = timeout.unwrap_or(config.timeout);
        config.max_timeout = max_timeout.unwrap_or(config.max_timeout);
        config.max_output_bytes = max_output_bytes.unwrap_or(config.max_output_bytes);
        config.max_spill_bytes = max_spill_bytes.unwrap_or(config.max_spill_bytes);
        config.grace = grace.unwrap_or(config.grace);
        config.left_behind = left_behind.unwrap_or(config.left_behind);
        config
    }

    /// Returns the spill of each stream.
    pub(crate) fn spill(&self) -> Option<dsh_subprocess::Spill> {
        NonZeroU64::new(self.max_spill_bytes).map(|max_bytes| dsh_subprocess::Spill {
            max_bytes,
            life: self.spill_life,
        })
    }
}

fn positive(name: &str, value: Duration, most: Duration) -> Result<(), ConfigError> {
    if value.is_zero() || value > most {
        return Err(ConfigError(format!(
            "{name} is {value:?}: it must be more than zero and at most {} ms",
            most.as_millis()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_118_each_number_out_of_its_bounds_is_refused_by_name() {
        type Change = fn(&mut Config);
        let wrong: [(&str, Change); 10] = [
            ("program", |config| config.program.clear()),
            ("timeout", |config| config.timeout = Duration::ZERO),
            ("timeout", |config| config.timeout = Duration::MAX),
            ("max_timeout", |config| config.max_timeout = Duration::ZERO),
            ("max_output_bytes", |config| config.max_output_bytes = 0),
            ("grace", |config| config.grace = Duration::ZERO),
            ("grace", |config| {
                config.grace = MAX_GRACE + Duration::from_millis(1);
            }),
            ("quiet", |config| config.quiet = Duration::ZERO),
            ("drain", |config| config.drain = MAX_GRACE * 2),
            ("cwd", |config| config.cwd = Some("".into())),
        ];
        for (name, change) in wrong {
            let mut config = Config::default();
            change(&mut config);
            let refused = config.validate().expect_err("the value is wrong").to_string();
            assert!(refused.starts_with(name), "{refused}");
        }
    }

    #[test]
    fn item_117_the_defaults_are_those_of_the_contract() {
        let Config {
            program,
            cwd,
            timeout,
            max_timeout,
            max_output_bytes,
            max_spill_bytes,
            grace,
            quiet,
            drain,
            ..
        } = Config::default();
        assert_eq!(program, ["bash".into()]);
        assert_eq!(cwd, None);
        assert_eq!(
            (timeout.as_secs(), max_timeout.as_secs(), grace.as_secs()),
            (120, 600, 3)
        );
        assert_eq!((max_output_bytes, max_spill_bytes), (64_000, 64 << 20));
        assert_eq!((quiet.as_millis(), drain.as_millis()), (500, 1500));
    }

    #[test]
    fn item_127_settings_replace_what_they_name_and_nothing_else() {
        let config = Config {
            timeout: Duration::from_secs(7),
            ..Config::default()
        };
        let settings = Settings {
            grace: Some(Duration::from_secs(1)),
            ..Settings::default()
        };
        let both = config.with(&settings);
        assert_eq!((both.timeout.as_secs(), both.grace.as_secs()), (7, 1));
        assert_eq!(both.max_output_bytes, config.max_output_bytes);
    }
}
