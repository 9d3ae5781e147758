//! The addresses of outputs: `dsh-output:///{id}/{stream}{?offset,length}`.

use std::fmt;

use dsh_subprocess::StreamName;

/// The template that clients expand, in the notation of RFC 6570.
pub(in crate::server) const TEMPLATE: &str = "dsh-output:///{id}/{stream}{?offset,length}";

const PREFIX: &str = "dsh-output:///";

/// One stream of one command, and which part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::server) struct OutputUri {
    /// `run-N` for a command that was waited for, or a job's id.
    pub(in crate::server) id: String,
    pub(in crate::server) stream: StreamName,
    /// The first byte wanted.
    pub(in crate::server) offset: u64,
    /// The most bytes wanted; `None` leaves it to the server.
    pub(in crate::server) length: Option<u64>,
}

/// Why a text is no address of an output. The text names what is wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub(in crate::server) struct UriError(String);

impl OutputUri {
    /// Names a whole stream.
    pub(in crate::server) fn whole(id: impl Into<String>, stream: StreamName) -> Self {
        Self {
            id: id.into(),
            stream,
            offset: 0,
            length: None,
        }
    }

    /// Reads an address.
    pub(in crate::server) fn parse(uri: &str) -> Result<Self, UriError> {
        let wrong = |why: &str| UriError(format!("{} is no output: {why}", quote(uri)));
        let rest = uri
            .strip_prefix(PREFIX)
            .ok_or_else(|| wrong(&format!("its form is {TEMPLATE}")))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (id, stream) = path
            .split_once('/')
            .ok_or_else(|| wrong("the stream is missing"))?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if id.is_empty() || !id.bytes().all(plain) {
            return Err(wrong("the id must be letters, digits, `-` and `_`"));
        }
        let stream = match stream {
            "stdout" => StreamName::Stdout,
            "stderr" => StreamName::Stderr,
            "terminal" => StreamName::Terminal,
            _ => return Err(wrong("the stream must be `stdout` or `stderr`")),
        };
        let mut parsed = Self::whole(id, stream);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let number: u64 = value
                .parse()
                .map_err(|_| wrong(&format!("{} must be a whole number", quote(name))))?;
            match name {
                "offset" => parsed.offset = number,
                "length" => parsed.length = Some(number),
                _ => {
                    return Err(wrong(&format!(
                        "{} is unknown: there are `offset` and `length`",
                        quote(name)
                    )));
                }
            }
        }
        Ok(parsed)
    }
}

impl fmt::Display for OutputUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}/{}", self.id, self.stream)?;
        let mut separator = '?';
        if self.offset > 0 {
            write!(f, "{separator}offset={}", self.offset)?;
            separator = '&';
        }
        if let Some(length) = self.length {
            write!(f, "{separator}length={length}")?;
        }
        Ok(())
    }
}

/// Quotes a foreign text in an error: bounded, on one line.
fn quote(text: &str) -> String {
    let shown: String = text.chars().take(120).flat_map(char::escape_debug).collect();
    format!("`{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for uri in [
            "dsh-output:///run-1/stdout",
            "dsh-output:///bash-12/stderr?offset=5",
            "dsh-output:///bash-12/stderr?length=7",
            "dsh-output:///bash-12/stdout?offset=5&length=7",
        ] {
            let parsed = OutputUri::parse(uri).expect("the address is right");
            assert_eq!(parsed.to_string(), uri);
        }
    }

    #[test]
    fn an_expanded_template_without_values_is_the_whole() {
        let parsed = OutputUri::parse("dsh-output:///run-1/stdout?").expect("the address is right");
        assert_eq!(parsed, OutputUri::whole("run-1", StreamName::Stdout));
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said() {
        for (uri, why) in [
            ("file:///etc/passwd", "its form is"),
            ("dsh-output:///run-1", "the stream is missing"),
            ("dsh-output:///../stdout", "the id must be"),
            ("dsh-output:////stdout", "the id must be"),
            ("dsh-output:///run%2d1/stdout", "the id must be"),
            ("dsh-output:///run-1/stdin", "the stream must be"),
            ("dsh-output:///run-1/stdout/x", "the stream must be"),
            (
                "dsh-output:///run-1/stdout?offset=-1",
                "`offset` must be a whole number",
            ),
            (
                "dsh-output:///run-1/stdout?offset",
                "`offset` must be a whole number",
            ),
            ("dsh-output:///run-1/stdout?from=1", "`from` is unknown"),
        ] {
            let error = OutputUri::parse(uri).expect_err(uri).to_string();
            assert!(error.contains(why), "{uri}: {error}");
            assert!(error.contains(uri), "{uri}: {error}");
        }
    }

    #[test]
    fn a_foreign_text_is_quoted_on_one_line_and_in_part() {
        let error = OutputUri::parse(&format!("x\n\u{1b}[2J{}", "y".repeat(1000)))
            .expect_err("the address is wrong")
            .to_string();
        assert!(
            error.len() < 400 && !error.chars().any(char::is_control),
            "{error}"
        );
    }
}
