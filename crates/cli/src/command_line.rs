//! Reading the command line, and refusing it in one line.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};

use crate::failure::Failure;
use crate::options::Cli;
use crate::quantity::one_line;
use crate::request;
use crate::sh;

/// What the command line comes to, where it does not come to options.
pub(crate) enum Instead {
    /// What was asked for: --help or --version.
    Text(String),
    /// Help that nobody asked for: there was not even a subcommand.
    Usage(String),
    /// The reason why nothing is done.
    Refusal(Failure),
}

/// Reads the words, the first of which names this program.
pub(crate) fn parse(words: &[OsString]) -> Result<Cli, Instead> {
    Cli::try_parse_from(words).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Instead::Text(error.to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Instead::Usage(error.to_string()),
        _ => Instead::Refusal(Failure::bad_option(refusal(&error))),
    })
}

/// Folds clap's paragraph into a line.
fn refusal(error: &clap::Error) -> String {
    let mut text = error.to_string();
    // The user's own words may span lines, too, and must not look like the paragraph's end.
    for (kind, value) in error.context() {
        if let (ContextKind::InvalidArg | ContextKind::InvalidValue | ContextKind::InvalidSubcommand, value) =
            (kind, value)
            && let ContextValue::String(word) = value
        {
            text = text.replace(word.as_str(), &one_line(word, usize::MAX));
        }
    }
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let mut paragraphs = text.split("\n\n");
    let mut line = folded(paragraphs.next().unwrap_or_default());
    for tip in paragraphs
        .flat_map(str::lines)
        .filter_map(|line| line.trim().strip_prefix("tip: "))
    {
        line.push_str("; ");
        line.push_str(&folded(tip));
    }
    line
}

fn folded(paragraph: &str) -> String {
    paragraph
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A command that was refused, and that is reported as JSON all the same: what it would have run.
pub(crate) enum Refused {
    /// By run, or on a terminal.
    Run(request::Subject),
    /// By sh.
    Sh(sh::Subject),
}

/// The subcommands that report as JSON whatever becomes of them.
const REPORTING: [&str; 3] = ["run", "sh", "term"];

/// Tells whether the words ask for a run that is reported as JSON, and names what it would have run.
///
/// For words that do not parse: whoever asked for an object gets one even then. The rules are the parser's own, from the
/// same definition: an option that takes a value takes the next word, and the first other word begins the command. An
/// option that there is not may have been meant to take a value, so the next word is not yet the command.
pub(crate) fn refused_json_run(words: &[OsString]) -> Option<Refused> {
    let mut definition = Cli::command();
    // Adds --help.
    definition.build();
    let mut words = words.iter().skip(1).peekable();
    let name = words.next()?.to_str().filter(|name| REPORTING.contains(name))?;
    let run = definition.find_subcommand(name)?;
    let mut asked = false;
    while let Some(word) = words.next_if(|word| is_option(word)) {
        if word == "--" {
            break;
        }
        asked |= word == "--json";
        let takes_next = match option_of(run, word) {
            Some(option) => option.get_action().takes_values(),
            None => words.peek().is_some_and(|next| !is_option(next)),
        };
        if takes_next && !word.as_encoded_bytes().contains(&b'=') {
            words.next();
        }
    }
    let argv = words.map(|word| word.as_os_str().into()).collect();
    asked.then(|| match name {
        "sh" => Refused::Sh(sh::Subject::of_words(argv)),
        _ => Refused::Run(request::Subject { argv, cwd: None }),
    })
}

fn is_option(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

/// Finds the option that a word names.
fn option_of<'a>(command: &'a clap::Command, word: &OsStr) -> Option<&'a clap::Arg> {
    let name = word.to_str()?.strip_prefix("--")?;
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn refused(line: &str) -> String {
        match parse(&words(line)) {
            Err(Instead::Refusal(failure)) => failure.message,
            _ => panic!("`{line}` is not refused"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_refusal_is_one_line_that_names_the_option() {
        for (line, named) in [
            ("x run --timeout 5 -- true", "--timeout"),
            ("x run --timout 5s -- true", "--timout"),
            ("x run --ownership job -- true", "process-group"),
            ("x run --stdin a --stdin-file b -- true", "--stdin-file"),
            ("x run --grace", "--grace"),
            ("x run --quiet", "COMMAND"),
            ("x rum", "rum"),
            ("x run --timeout a\n\nb -- true", "a\\n\\nb"),
            ("x term --rows 0", "--rows"),
            ("x term --cols 65536", "65535"),
            ("x term --stdin -", "--stdin"),
            ("x sh --timeout 5 ls", "--timeout"),
            ("x sh --no-timeout --timeout 5s ls", "--no-timeout"),
            ("x sh --spill-max-bytes 1M ls", "--keep-spill"),
            ("x sh --file f ls", "--file"),
            ("x sh --max-bytes 0 ls", "--max-bytes"),
            ("x sh --json", "COMMAND"),
        ] {
            let message = refused(line);
            assert!(
                message.contains(named) && !message.contains('\n'),
                "{line}: {message}"
            );
            assert!(
                !message.contains("Usage") && !message.contains("--help"),
                "{line}: {message}"
            );
        }
    }

    #[test]
    fn a_json_run_is_recognised_before_its_command_only() {
        let asked = |line| refused_json_run(&words(line));
        assert!(asked("x run --json").is_some());
        assert!(asked("x run --timeout 5 --json -- a").is_some());
        assert!(asked("x run --bogus --json a").is_some());
        assert!(asked("x run a --json").is_none());
        assert!(asked("x run -- --json").is_none());
        assert!(asked("x run --stdin --json a").is_none(), "there it is a value");
        assert!(asked("x doctor --json").is_none());
        assert!(asked("x term --rows 0 --json").is_some());
        assert!(asked("x term --record --json a").is_none(), "there it is a value");
        let Some(Refused::Run(subject)) = asked("x run --bogus --json -- a -b") else {
            panic!("it asks for the JSON of a run");
        };
        assert_eq!(subject.argv, ["a".into(), "-b".into()]);
        let Some(Refused::Sh(subject)) = asked("x sh --bogus --json -- ls") else {
            panic!("it asks for the JSON of a command text");
        };
        assert_eq!(subject.command, Some("ls".into()));
    }
}
